"""`health`: the exit status tells whether a broker answers, and whether its disks take records."""

from __future__ import annotations

import asyncio
import errno
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pykafka_broker import Cluster
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.home import until as arrives
from tests.cli.conftest import Result, Run, run_command
from tests.cli.test_main import unused_address
from tests.support.pages import REPOSITORY
from tests.support.waiting import until

HEALTH_CHECK = REPOSITORY / "docker" / "health"


def test_a_broker_that_answers_is_healthy(run: Run, broker: str) -> None:
    result = run("health", broker)
    assert re.fullmatch(rf"healthy: broker 1 of cluster [\w-]{{22}} at {broker}\n", result.out)
    assert result.status == 0


def test_a_broker_that_is_away_is_not(run: Run) -> None:
    assert run("health", unused_address()).status == 1
    for stage in ("alive", "serving", "ready"):
        assert run("health", unused_address(), f"--{stage}").status == 1


def test_a_broker_that_answers_is_alive_serving_and_ready(run: Run, broker: str) -> None:
    for stage in ("alive", "serving", "ready"):
        result = run("health", broker, f"--{stage}")
        assert (result.status, result.out.split(":")[0]) == (0, stage)
        assert json.loads(run("health", broker, f"--{stage}", "--json").out)["stage"] == stage


def test_the_probes_of_the_page_ask_for_the_three_stages(broker: str) -> None:
    page = (REPOSITORY / "docs" / "operations.md").read_text()
    probes = re.findall(r"(\w+)Probe:\n *exec: \{command: \[pykafka-broker, (.*?)\]\}", page)
    stages = {}
    for probe, words in probes:
        command, address, stage = words.replace('"', "").split(", ")
        assert address == "localhost:9092"
        result = run_command(command, broker, stage)
        assert result.status == 0
        stages[probe] = result.out.split(":")[0]
    assert stages == {"startup": "serving", "liveness": "alive", "readiness": "ready"}


def test_a_controller_is_alive_and_a_broker_is_ready_if_it_may_commit_what_it_leads() -> None:
    with Cluster(controllers=1, brokers=2) as cluster:
        controller, one, other = cluster.node_ids
        assert run_command("health", cluster.address(controller), "--alive").status == 0
        strict = ("topics", "create", "strict", "-r", "2", "--config", "min.insync.replicas=2")
        assert run_command(*strict, "-b", cluster.address(one)).status == 0
        cluster.leader("strict")
        assert run_command("health", cluster.address(one), "--ready").status == 0
        cluster.stop(other)
        is_ready = ("health", cluster.address(one), "--ready")
        until(lambda: run_command(*is_ready).status == 3, "it knows of the stop")
        assert run_command("health", cluster.address(one)).status == 0, "replicas are not asked about"
        result = run_command(*is_ready)
    assert result.status == 3
    first, second = result.out.splitlines()
    assert first.startswith(f"serving, not ready: broker {one} of cluster ")
    assert second == "  it leads 1 partition with fewer replicas in sync than min.insync.replicas (strict-0)"


async def health_of(home: Home, *options: str) -> Result:
    return await asyncio.to_thread(run_command, "health", home.broker.bootstrap_servers, *options)


async def test_a_broker_with_a_directory_out_of_service_is_degraded() -> None:
    home = Home(data_dir="/a,/b")
    async with home.running() as user:
        await user.create_topic("one")
        await user.create_topic("other")
        on_b = "one" if home.files.exists("/b/one-0") else "other"
        assert (await health_of(home)).status == 0
        home.files.fail("pwrite", errno.EIO, path="/b/", times=-1)
        answer = await user.try_to_produce(on_b, b"x")
        assert ErrorCode(answer.error_code) == ErrorCode.KAFKA_STORAGE_ERROR
        result = await health_of(home)
        told = rf"degraded: broker 1 of cluster [\w-]{{22}} at {home.broker.bootstrap_servers}"
        assert re.fullmatch(rf"{told}\n  /b is out of service\n", result.out)
        assert result.status == 3


async def test_a_broker_whose_disk_refuses_records_is_degraded_until_there_is_room() -> None:
    home = Home()
    async with home.running() as user:
        await user.create_topic("orders")
        home.files.free_bytes = 2 << 20
        assert (await health_of(home)).status == 0
        home.files.fail("pwrite", errno.EDQUOT)
        answer = await user.try_to_produce("orders", b"x")
        assert ErrorCode(answer.error_code) == ErrorCode.KAFKA_STORAGE_ERROR

        result = await health_of(home, "--json")
        shown = json.loads(result.out)
        assert re.fullmatch(r"[\w-]{22}", shown.pop("cluster_id"))
        assert shown == {
            "status": "degraded",
            "stage": "serving",
            "node_id": 1,
            "address": home.broker.bootstrap_servers,
            "problems": [
                {
                    "log_dir": "/data",
                    "usable_bytes": 0,
                    "problem": "full",
                    "text": f"/data takes no more records: 0 of {1 << 40} bytes are usable",
                }
            ],
            "checked": "metadata",
        }
        assert result.status == 3

        home.files.free_bytes = None
        await home.pass_time(12_000)
        await arrives(lambda: home.broker.node.logs.dirs.metadata.refusal is None)
        assert json.loads((await health_of(home, "--json")).out)["problems"] == []


async def test_a_disk_without_room_for_a_batch_is_full_before_one_was_refused() -> None:
    home = Home()
    async with home.running():
        home.files.free_bytes = (1 << 20) - 1
        assert (await health_of(home)).status == 3
        home.files.free_bytes = 1 << 20
        assert (await health_of(home)).status == 0
        home.files.free_bytes = None


@pytest.mark.parametrize(("status", "reported"), [(0, 0), (1, 1), (2, 2), (3, 0)])
def test_a_container_is_not_restarted_for_being_degraded(tmp_path: Path, status: int, reported: int) -> None:
    program = tmp_path / "pykafka-broker"
    program.write_text(
        f"#!/bin/bash\n[ $1 = health ] || exit 9\necho told$PYKAFKA_BROKER_BOOTSTRAP_SERVER\nexit {status}\n"
    )
    program.chmod(0o755)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin", "PYKAFKA_BROKER_BOOTSTRAP_SERVER": "a:1,b:1"}
    done = subprocess.run(
        ["/bin/bash", str(HEALTH_CHECK)], env=path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (reported, "told\n")


def test_in_a_container_the_listener_tells_the_port(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = broker.rpartition(":")[2]
    monkeypatch.setenv("KAFKA_LISTENERS", f"CONTROLLER://0.0.0.0:1,PLAINTEXT://:{port}")
    assert run_command("health").status == 0


def test_a_bad_address_is_wrong_usage(run: Run) -> None:
    assert run("health", "localhost").status == 2


def test_a_health_check_imports_neither_the_broker_nor_its_configuration() -> None:
    script = (
        "import sys\nfrom pykafka_broker.cli import main\n"
        f"try: main(['health', '{unused_address()}'])\nexcept SystemExit: pass\n"
        "heavy = ('asyncio', 'logging', 'dataclasses', 'pykafka_broker.config', 'pykafka_broker.broker',"
        " 'pykafka_broker.log')\n"
        "sys.exit(', '.join(name for name in heavy if name in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()[1:]) == (0, [])


def test_the_address_is_taken_as_other_commands_take_it(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    away = unused_address()
    for option in ("-b", "--bootstrap-server"):
        assert run_command("health", option, broker).status == 0
    monkeypatch.setenv("PYKAFKA_BROKER_BOOTSTRAP_SERVER", away)
    assert [run_command("health", *where).status for where in ([], ["-b", broker], [broker])] == [1, 0, 0]


def test_two_addresses_are_wrong_usage(broker: str) -> None:
    result = run_command("health", broker, "-b", broker)
    assert result.status == 2
    assert result.err.splitlines()[-1] == ("Error: HOST:PORT is given twice, once with --bootstrap-server.")


def test_it_is_about_one_address(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With several it told of the one that answered, and the dead one was healthy."""
    several = f"{unused_address()},{broker}"
    monkeypatch.setenv("PYKAFKA_BROKER_BOOTSTRAP_SERVER", several)
    for asked in (("-b", several), (several,), (several, "--alive"), ()):
        result = run_command("health", *asked)
        assert (result.status, result.out) == (2, "")
        assert result.err.splitlines()[-1] == (
            f"Error: health is about one broker, and {several} names 2 addresses: ask one at a time. "
            "`pykafka-broker cluster status` and `doctor` are about all brokers of a cluster."
        )
    assert run_command("health", broker).status == 0, "named, it goes before the variable"
