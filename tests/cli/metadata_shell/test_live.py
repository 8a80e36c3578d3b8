"""`metadata shell` beside a running broker and its controller, and over the log that they left."""

from __future__ import annotations

from pathlib import Path

from pykafka_broker.cli.metadata_shell.live import LiveMetadata
from pykafka_broker.client.core.addresses import Address
from pykafka_broker.testing.processes import free_port
from tests.cli.conftest import Run, RunningBroker, run_command
from tests.cli.secured import PLAIN_LOGIN, config_of_bob, make_certificates


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


def test_who_asks_a_lone_node_is_told_of_its_files(run: Run) -> None:
    assert run("metadata", "shell", "ls", "/image") == (
        1,
        "",
        "Error: the controller of this node has no listener of its own: read its files with --folder\n",
    )


def test_a_shell_on_a_secured_cluster_logs_in_to_brokers_and_controllers(tmp_path: Path) -> None:
    """It had no options to, and was shut out."""
    make_certificates(tmp_path)
    port = free_port()
    users = f'{PLAIN_LOGIN} username="bob" password="bob-secret" user_bob="bob-secret";'
    overrides = (
        "process.roles=broker,controller",
        "node.id=1",
        "controller.listener.names=CONTROLLER",
        f"controller.quorum.bootstrap.servers=127.0.0.1:{port}",
        f"listeners=CLIENTS://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}",
        "listener.security.protocol.map=CLIENTS:SASL_SSL,CONTROLLER:SASL_SSL",
        "inter.broker.listener.name=CLIENTS",
        "sasl.enabled.mechanisms=PLAIN",
        "sasl.mechanism.inter.broker.protocol=PLAIN",
        "sasl.mechanism.controller.protocol=PLAIN",
        f"listener.name.clients.plain.sasl.jaas.config={users}",
        f"listener.name.controller.plain.sasl.jaas.config={users}",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={tmp_path}/server.pem",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={tmp_path}/ca.pem",
    )
    look = ("metadata", "shell", "ls", "/image/cluster/brokers")
    as_bob = ("--command-config", config_of_bob(tmp_path))
    with RunningBroker(tmp_path / "data", None, overrides) as running:
        for where in (("-b", running.address), ("--bootstrap-controller", f"127.0.0.1:{port}")):
            assert run_command(*look, *where, *as_bob) == (0, "1\n", "")
            short = ("--user", "bob:bob-secret", "--ca", str(tmp_path / "ca.pem"))
            assert run_command(*look, *where, *short) == (0, "1\n", "")
            assert run_command(*look, *where, "--timeout", "2").status == 1
