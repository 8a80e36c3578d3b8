"""`metadata shell` beside a running broker and its controller, and over the log that they left."""

from __future__ import annotations

from pathlib import Path

from pykafka_broker.cli.metadata_shell.live import LiveMetadata
from pykafka_broker.client.addresses import Address
from pykafka_broker.testing.processes import free_port
from tests.cli.conftest import RunningBroker, run_command


def test_a_shell_follows_a_running_cluster_and_reads_what_it_left(tmp_path: Path) -> None:
    port = free_port()
    overrides = (
        "process.roles=broker,controller",
        "node.id=1",
        "controller.listener.names=CONTROLLER",
        f"controller.quorum.bootstrap.servers=127.0.0.1:{port}",
        f"listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}",
    )
    with RunningBroker(tmp_path / "data", overrides=overrides) as running:
        live = LiveMetadata([Address("127.0.0.1", port)], 30.0)
        before = live.newest().image
        created = run_command("topics", "create", "orders", "-b", running.address)
        assert created.status == 0, created.err
        after = live.newest().image
        live.close()
        assert ("orders" in before.topics, "orders" in after.topics) == (False, True)

        look = ("ls", "/image/topics/byName")
        by_broker = run_command("metadata", "shell", "-b", running.address, *look)
        assert by_broker == (0, "orders\n", "")

    for folder in (tmp_path / "data", tmp_path / "data" / "__cluster_metadata-0"):
        assert run_command("metadata", "shell", "--folder", str(folder), *look) == (0, "orders\n", "")
