"""`start` and `format` as a process: the lines tools wait for, signals, and what is refused."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from pykafka_broker.cli.startup_topics import parse_topics
from pykafka_broker.client.blocking import Client
from pykafka_broker.config import ConfigError
from pykafka_broker.testing.processes import free_port
from tests.cli.conftest import run_command

Start = Callable[..., "Process"]
READY = re.compile(r"Bootstrap servers: (127\.0\.0\.1:\d+) \(data in (.*)\)")


class Process:
    """`pykafka-broker start` in a process of its own."""

    def __init__(self, folder: Path, arguments: tuple[str, ...], environ: dict[str, str]) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "pykafka_broker", "start", *arguments],
            cwd=folder,
            env={**clean, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []

    def address(self) -> str:
        """Where it listens, once it serves."""
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            self.lines.append(line.rstrip("\n"))
            if found := READY.fullmatch(self.lines[-1]):
                return found[1]
        raise AssertionError("it ended instead:\n" + "\n".join(self.lines))

    def end(self) -> tuple[int, str]:
        """Wait for its end: exit status and everything it said."""
        rest, _ = self.popen.communicate(timeout=120)
        return self.popen.returncode, "\n".join([*self.lines, rest])


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    processes = []

    def run(*arguments: str, **environ: str) -> Process:
        processes.append(Process(tmp_path, arguments, environ))
        return processes[-1]

    yield run
    for process in processes:
        if process.popen.poll() is None:
            process.popen.kill()
        process.popen.communicate()


def test_metrics_are_served_where_the_option_says(start: Start) -> None:
    address = f"127.0.0.1:{free_port()}"
    start("--listen", "127.0.0.1:0", "--metrics", address).address()

    with urlopen(f"http://{address}/health/ready") as ready:
        assert ready.read() == b"ok\n"


def test_a_broker_says_when_it_serves_and_stops_in_good_order(start: Start, tmp_path: Path) -> None:
    process = start("--listen", "127.0.0.1:0")
    with Client(process.address()) as client:
        assert client.metadata([]).brokers[0].node_id == 1
    process.popen.send_signal(signal.SIGTERM)
    status, output = process.end()
    assert status == 0
    for line in (
        "[KafkaRaftServer nodeId=1] Kafka Server started (kafka.server.KafkaRaftServer)",
        "[BrokerLifecycleManager id=1] The broker has been unfenced. Transitioning from RECOVERY to RUNNING.",
        "Awaiting socket connections on 127.0.0.1:",
        "[BrokerServer id=1] shut down completed",
    ):
        assert output.count(line) == 1, line
    assert f"(data in {tmp_path / 'pykafka-data'})" in output
    assert (tmp_path / "pykafka-data" / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize(
    ("arguments", "environ"), [(["--log-format", "json"], {}), ([], {"PYKAFKA_BROKER_LOG_FORMAT": "json"})]
)
def test_a_log_of_objects_has_no_line_of_another_form(
    start: Start, arguments: list[str], environ: dict[str, str], tmp_path: Path
) -> None:
    process = start("--listen", "127.0.0.1:0", *arguments, **environ)
    assert process.popen.stdout is not None
    serving = None
    for line in process.popen.stdout:
        process.lines.append(line)
        message = json.loads(line)["message"]
        if serving := READY.fullmatch(message):
            break
    assert serving is not None
    assert serving[2] == str(tmp_path / "pykafka-data")
    process.popen.send_signal(signal.SIGTERM)
    status, output = process.end()
    assert status == 0
    told = [json.loads(line) for line in output.splitlines() if line]
    assert all(told_one.keys() == {"time", "level", "logger", "message"} for told_one in told)
    assert told[-1]["message"] == "[BrokerServer id=1] shut down completed"


def test_a_second_signal_does_not_wait(start: Start) -> None:
    process = start("--listen", "127.0.0.1:0", "--data-dir", "d")
    process.address()
    # Stopped, so that both signals are there when it goes on.
    process.popen.send_signal(signal.SIGSTOP)
    process.popen.send_signal(signal.SIGINT)
    process.popen.send_signal(signal.SIGTERM)
    process.popen.send_signal(signal.SIGCONT)
    status, output = process.end()
    assert status == 130
    assert "Stopped by a second signal" in output


def test_a_broker_under_nohup_goes_on_when_its_terminal_is_closed(start: Start) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = start("--listen", "127.0.0.1:0", "--data-dir", "d")
    finally:
        signal.signal(signal.SIGHUP, before)
    process.address()
    process.popen.send_signal(signal.SIGHUP)
    process.popen.send_signal(signal.SIGTERM)
    status, output = process.end()
    assert status == 0, output


def test_the_echo_of_a_signal_is_not_a_second_one(start: Start, tmp_path: Path) -> None:
    """As when a process group is signalled and make passes the signal on."""
    process = start("--listen", "127.0.0.1:0", "--data-dir", "d")
    process.address()
    process.popen.send_signal(signal.SIGSTOP)
    process.popen.send_signal(signal.SIGTERM)
    process.popen.send_signal(signal.SIGCONT)
    process.popen.send_signal(signal.SIGTERM)
    status, output = process.end()
    assert status == 0, output
    assert (tmp_path / "d" / ".kafka_cleanshutdown").exists()


def test_configuration_comes_from_everywhere(start: Start, tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text(
        "process.roles=broker,controller\n"
        "node.id=3\n"
        "controller.listener.names=CONTROLLER\n"
        "controller.quorum.voters=3@127.0.0.1:19093\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\n"
        "no.such.key=1\n"
        "num.io.threads=2\n"
    )
    process = start(
        *("--config", "server.properties", "--override", "num.partitions=5", "--data-dir", "d"),
        KAFKA_MESSAGE_MAX_BYTES="77777",
        KAFKA_LOG4J_ROOT_LOGLEVEL="INFO",
    )
    address = process.address()
    described = run_command("configs", "describe", "-b", address, "--broker", "3", "--all").out
    for value in ("num.partitions=5", "message.max.bytes=77777", "node.id=3"):
        assert f"  {value} sensitive=false synonyms={{STATIC_BROKER_CONFIG" in described
    output = "\n".join(process.lines)
    assert "WARN These configuration keys are unknown: no.such.key (kafka.server.KafkaConfig)" in output
    assert "INFO These configuration keys make no difference to this broker: num.io.threads (" in output
    assert "group.initial.rebalance.delay.ms=3000 " in described
    assert "Without a properties file" not in output


def test_without_a_file_groups_begin_at_once_and_log_and_answers_say_so(start: Start) -> None:
    process = start("--listen", "127.0.0.1:0")
    described = run_command("configs", "describe", "-b", process.address(), "--broker", "1", "--all").out
    key = "group.initial.rebalance.delay.ms"
    synonyms = f"synonyms={{STATIC_BROKER_CONFIG:{key}=0, DEFAULT_CONFIG:{key}=3000}}"
    assert f"  {key}=0 sensitive=false {synonyms}\n" in described
    line = f"Without a properties file {key} is 0: groups do not wait for more members before they begin ("
    assert "\n".join(process.lines).count(line) == 1


def test_topics_of_the_environment_are_there_when_it_serves(start: Start) -> None:
    process = start("-l", "127.0.0.1:0", KAFKA_CREATE_TOPICS="plain:2:1, latest:1:1:compact,a/b:1:1")
    address = process.address()
    described = run_command("topics", "describe", "-b", address).out
    assert "Topic: plain\t" in described
    assert "PartitionCount: 2" in described
    assert "cleanup.policy=compact" in described
    assert "Topic a/b of KAFKA_CREATE_TOPICS is not created: Topic name is invalid" in "\n".join(
        process.lines
    )


@pytest.mark.parametrize("value", ["name", "name:1", "name:x:1", ":1:1", "name:1:1:compact:more"])
def test_topics_of_the_environment_that_cannot_be_read_are_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="is not name:partitions:replicas"):
        parse_topics(value)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            ["-o", "num.partitions=0"],
            "Invalid value 0 for configuration num.partitions: Value must be at least 1",
        ),
        (["-c", "nowhere"], "No such file or directory: nowhere"),
        (["-l", "somewhere"], "'somewhere' is not an address to listen on: write HOST:PORT"),
        (
            ["-l", "http://127.0.0.1:9092"],
            "'http://127.0.0.1:9092' is not an address to listen on: write HOST:PORT",
        ),
        (["-o", "oops"], "'oops' is not an override: write key=value"),
        (
            ["-o", "listeners=CLIENTS://127.0.0.1:0"],
            "Error creating broker listeners from '[CLIENTS://127.0.0.1:0]': No security protocol defined "
            "for listener CLIENTS; listener.security.protocol.map has to name it, as in CLIENTS:PLAINTEXT",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_bad_configuration_is_one_line(start: Start, arguments: list[str], reason: str) -> None:
    assert start(*arguments).end() == (1, f"Error: {reason}\n")


def test_a_bad_log_level_is_one_line(start: Start) -> None:
    status, output = start(KAFKA_LOG4J_ROOT_LOGLEVEL="LOUD").end()
    assert (status, output.splitlines()[0][:35]) == (1, "Error: 'LOUD' is not a log level; u")


def test_a_port_in_use_is_one_line_that_says_by_whom_and_what_is_free(start: Start, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        status, output = start("-l", address).end()
    assert status == 1
    error = output.splitlines()[-1]
    found = re.fullmatch(
        rf"Error: Socket server failed to bind to {address}: Address already in use by process {os.getpid()} "
        r"\(.*python.*\)\. Port (\d+) is free: start with --listen 127\.0\.0\.1:(\d+), or change `listeners`",
        error,
    )
    assert found, error
    assert found[1] == found[2] != address.partition(":")[2]
    assert list(tmp_path.iterdir()) == [], "no folder is left behind"


def test_a_port_in_use_leaves_a_folder_of_before_as_it_was(start: Start, tmp_path: Path) -> None:
    process = start("-l", "127.0.0.1:0", "-d", "d")
    process.address()
    process.popen.send_signal(signal.SIGTERM)
    process.end()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        status, output = start("-l", f"127.0.0.1:{taken.getsockname()[1]}", "-d", "d").end()
    assert (status, output.count("Address already in use by process")) == (1, 1)
    assert (tmp_path / "d" / ".kafka_cleanshutdown").exists()


def test_a_folder_in_use_is_one_line_that_says_by_whom(start: Start) -> None:
    process = start("-l", "127.0.0.1:0", "-d", "d")
    process.address()
    status, output = start("-l", "127.0.0.1:0", "-d", "d").end()
    assert status == 1
    assert re.search(
        r"\nError: Failed to acquire lock on file \.lock in .*/d\. A Kafka instance in another process or "
        rf"thread is using this directory: process {process.popen.pid} \(.*pykafka_broker start .* d\)\.\n$",
        output,
    ), output


def test_a_folder_of_another_cluster_is_refused(start: Start, tmp_path: Path) -> None:
    first = run_command("format", "--data-dir", str(tmp_path / "d"))
    assert first.status == 0
    cluster_id = first.out.split()[-1]
    other = "4L6g3nShT-eMCtK--X86sw"
    status, output = start("-d", "d", "-l", "127.0.0.1:0", "--cluster-id", other).end()
    assert status == 1
    last = output.splitlines()[-1]
    assert last.startswith("Error: ")
    assert cluster_id in last
    assert other in last


def test_formatting_prepares_a_folder_once(tmp_path: Path) -> None:
    folder = str(tmp_path / "d")
    given = "4L6g3nShT-eMCtK--X86sw"
    result = run_command("format", "-d", folder, "--cluster-id", given)
    assert result.out == (
        f"Formatting dynamic metadata voter directory {folder} with metadata.version 4.3-IV0.\n"
        f"Cluster id: {given}\n"
    )
    assert f"cluster.id={given}" in (tmp_path / "d" / "meta.properties").read_text()
    again = run_command("format", "-d", folder)
    assert (again.status, again.err[:20]) == (1, "Error: Log directory")
    ignored = run_command("format", "-d", folder, "--ignore-formatted")
    assert ignored.out == f"All of the log directories are already formatted.\nCluster id: {given}\n"
