"""Ctrl-C and SIGTERM: `consume` and `produce` as processes end in good order, and say how far they came.

Before, the last commit of `consume --group` went over the connection on which a fetch was pending, and took
the answer to that for its own; without records nothing was committed at all.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from pykafka_broker.cli.interrupts import Interrupts
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.offsets import committed_offsets
from tests.cli.conftest import Run

Start = Callable[..., "subprocess.Popen[bytes]"]

#: So that no two tests share a topic.
numbers = count()
#: Runs `pykafka-broker` with auto-commits due soon.
EAGER = (
    "import sys; from pykafka_broker.cli import main; from pykafka_broker.cli.consume import places; "
    "places.COMMIT_INTERVAL_S = 0.3; main(sys.argv[1:])"
)


@pytest.fixture
def start(broker: str) -> Iterator[Start]:
    processes = []

    def run(*arguments: str, program: tuple[str, ...] = ("-m", "pykafka_broker")) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            env={**os.environ, "PYKAFKA_BROKER_BOOTSTRAP_SERVER": broker},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        processes.append(process)
        return process

    yield run
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def topic(run: Run) -> str:
    """A topic with three records."""
    name = f"interrupted-{next(numbers)}"
    run("topics", "create", name)
    run("produce", name, "a", "b", "c")
    return name


def committed(broker: str, topic: str) -> int | None:
    """How far the group of the topic's name has come."""
    with Client(broker) as client:
        return committed_offsets(client, client.coordinator(topic), topic).get((topic, 0))


def read_lines(process: subprocess.Popen[bytes], number: int) -> list[bytes]:
    assert process.stdout is not None
    return [process.stdout.readline() for _ in range(number)]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_reader_that_is_stopped_commits_what_it_has_printed(
    start: Start, broker: str, topic: str, number: signal.Signals, status: int
) -> None:
    process = start("consume", topic, "--group", topic)
    assert read_lines(process, 3) == [b"a\n", b"b\n", b"c\n"]
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (status, b"", b"Processed a total of 3 messages\n")
    assert committed(broker, topic) == 3


def test_a_reader_without_a_group_ends_as_well(start: Start, topic: str) -> None:
    process = start("consume", topic)
    assert read_lines(process, 3) == [b"a\n", b"b\n", b"c\n"]
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"Processed a total of 3 messages\n")


def test_a_reader_that_stops_at_a_number_commits_no_more_than_that(run: Run, broker: str, topic: str) -> None:
    result = run("consume", topic, "--group", topic, "--max-messages", "2")
    assert result == (0, "a\nb\n", "Processed a total of 2 messages\n")
    assert committed(broker, topic) == 2


def test_an_idle_reader_commits_too(start: Start, broker: str, topic: str) -> None:
    process = start("consume", topic, "--group", topic, program=("-c", EAGER))
    assert read_lines(process, 3) == [b"a\n", b"b\n", b"c\n"]
    while committed(broker, topic) != 3:
        assert process.poll() is None


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_writer_that_is_stopped_says_what_is_written(
    start: Start, run: Run, topic: str, number: signal.Signals, status: int
) -> None:
    process = start("produce", topic, "--verbose")
    assert process.stdin is not None
    process.stdin.write(b"d\ne\n")
    process.stdin.flush()
    assert read_lines(process, 1) == [b"Partition:0\tOffset:3-4\n"]
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (status, b"", b"Interrupted: 2 records written.\n")
    assert run("consume", topic, "--until", "end").out == "a\nb\nc\nd\ne\n"


def test_the_first_signal_cuts_short_only_what_waits_and_the_second_anything() -> None:
    with Interrupts() as interrupts:
        assert interrupts.exit_status == 0
        signal.raise_signal(signal.SIGTERM)
        assert interrupts.exit_status == 143
        with pytest.raises(KeyboardInterrupt), interrupts.waiting():
            raise AssertionError("what came before cuts short at once")
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_that_is_ignored_stays_so() -> None:
    """As in a background job of a shell, which Ctrl-C does not concern."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts, interrupts.waiting():
            signal.raise_signal(signal.SIGINT)
        assert interrupts.exit_status == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_signal_while_waiting_cuts_that_short() -> None:
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt), interrupts.waiting():
            signal.raise_signal(signal.SIGINT)
        assert interrupts.exit_status == 130
