"""Apache Kafka's own SharePartition beside ours: the same events for both, and the same outcome of each.

`tests/share/SharePartitions.java` drives it. Left out is what ours does otherwise on purpose: a log that is
cut, and states that are loaded with gaps (`tests/share/test_share_beside_apache.py` says why).
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Optional

from pykafka_broker.machine.step import Reply, Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.share.core import acknowledge, events
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import AcknowledgementBatch
from pykafka_broker.share.core.records import Persisted, StateWrite
from pykafka_broker.share.core.state import SharePartition
from pykafka_broker.testing.apache.jars import java, libs
from tests.support.share_partition_world import World, by_offset, view

PROGRAM = Path(__file__).parent.parent / "share" / "SharePartitions.java"


class ApacheFailedError(Exception):
    """Apache's code has thrown what it does not expect."""


class Outcome(NamedTuple):
    """What came of a command."""

    answer: str
    answered: dict[int, tuple[str, str]]
    #: Start offset, records that are done with, and the states by offset, of each write.
    writes: list[tuple[int, int, dict[int, tuple[int, int]]]]
    offsets: tuple[int, int, int]
    records: dict[int, tuple[str, int, str, bool]]


class ApacheShares:
    """A JVM with Apache's share partitions, one after another."""

    def __init__(self, folder: Path) -> None:
        jars = f"{libs().resolve()}/*"
        # A JRE has the module, but no `javac`.
        compiler = [java(), "-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn", "-XDignore.symbol.file"]
        each_jar = ":".join(str(jar) for jar in libs().resolve().glob("*.jar"))
        subprocess.run([*compiler, "-cp", each_jar, "-d", str(folder), str(PROGRAM)], check=True)
        self.process = subprocess.Popen(
            [java(), "-Dlog4j2.level=OFF", "-cp", f"{folder}:{jars}", "kafka.server.share.SharePartitions"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def run(self, *words: object) -> Outcome:
        """Run a command.

        Raises:
            ApacheFailedError: Apache's code has thrown an exception.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(" ".join(map(_word, words)) + "\n")
        self.process.stdin.flush()
        line = ""
        while not line.startswith("> "):
            line = self.process.stdout.readline()
            assert line, "the JVM has ended"
        answer, answered, writes, offsets, records, failure = line[2:].rstrip("\n").split("|")
        if failure:
            raise ApacheFailedError(failure)
        start, end, done = map(int, offsets.split())
        return Outcome(
            answer,
            dict(map(_answered, answered.split(";")[:-1])),
            list(map(_write, writes.split(";")[:-1])),
            (start, end, done),
            dict(map(_record, records.split())),
        )


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _answered(text: str) -> tuple[int, tuple[str, str]]:
    place, _, told = text.partition("=")
    error, _, message = told.partition("~")
    return int(place), (error, message)


def _write(text: str) -> tuple[int, int, dict[int, tuple[int, int]]]:
    start, done, *batches = text.split()
    states = {}
    for batch in batches:
        first, last, delivery, count = map(int, batch.split(","))
        states.update(dict.fromkeys(range(first, last + 1), (delivery, count)))
    return int(start), int(done), states


def _record(text: str) -> tuple[int, tuple[str, int, str, bool]]:
    offset, delivery, count, member, waits = text.split(":")
    return int(offset), (delivery, int(count), member, waits == "true")


@dataclass
class WorldBesideApache(World):
    """A world that tells Apache's share partition of every event, and compares."""

    apache: Optional[ApacheShares] = None
    #: The tokens of requests, in the order in which Apache got them.
    requests: list[int] = field(default_factory=list)
    #: Apache writes for each lock that timed out: how many writes stand for one of ours.
    writes_for_one: dict[int, int] = field(default_factory=dict)
    compared: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.read_committed = True
        self.config = ShareConfig(
            partition_max_record_locks=self.config.partition_max_record_locks,
            delivery_count_limit=self.config.delivery_count_limit,
            record_lock_duration_ms=self.config.record_lock_duration_ms,
        )
        self._run("init", self.now_ms, *self.config[:3])

    def reload(self) -> None:
        if self.apache is None or not self.tokens:
            super().reload()

    def cut_log(self) -> None:
        """Not here."""

    def drain(self) -> None:
        """Apache's may never come to the end."""

    def _check_start_is_behind_done(self) -> None:
        """Apache's stands still after a write that failed."""

    def say(self, member: str, batches: tuple[AcknowledgementBatch, ...]) -> None:
        """Only what Apache's request handler lets pass."""
        super().say(member, tuple(said for said in batches if _is_well_formed(said)))

    def _run(self, *words: object) -> Outcome:
        assert self.apache is not None
        return self.apache.run(*words)

    def submit(self, event: events.Event) -> Step[SharePartition]:
        step = super().submit(event)
        command = self._command(event)
        if command is None:
            return step
        if not isinstance(event, events.TimerFired):
            self._run("time", self.now_ms)
        outcome = self._run(*command)
        self.compared += 1
        answers: list[Any] = [effect.result for effect in step.effects if isinstance(effect, Reply)]
        if isinstance(event, events.BeginFetch):
            assert outcome.answer == str(answers[0])
            return step
        if isinstance(event, events.Acquire):
            assert outcome.answer == " ".join(",".join(map(str, part)) for part in answers[0].records)
        self._compare_answers(event, step, outcome)
        self._compare_writes(event, step, outcome)
        if isinstance(event, events.WriteDone):
            for _ in range(self.writes_for_one.pop(event.write_id, 1) - 1):
                outcome = self._run(*command)
        state = self.state
        assert outcome.offsets == (state.start_offset, state.end_offset, state.delivery_complete_count)
        assert outcome.records == {
            offset: (delivery.name, count, member, waits is not None)
            for offset, (delivery, count, member, _, waits, _) in view(state).items()
        }
        return step

    def _compare_answers(self, event: events.Event, step: Step[SharePartition], outcome: Outcome) -> None:
        ours = {}
        for effect in step.effects:
            if isinstance(effect, Reply) and isinstance(effect.result, events.Result):
                error, message = effect.result
                ours[self.requests.index(effect.token)] = (error.name, message or "")
        theirs = outcome.answered
        if isinstance(event, events.WriteDone):
            ours, theirs = _without_text(ours), _without_text(theirs)
        assert _alike(theirs) == _alike(ours)

    def _compare_writes(self, event: events.Event, step: Step[SharePartition], outcome: Outcome) -> None:
        theirs = {offset: state for _, _, states in outcome.writes for offset, state in states.items()}
        ours: dict[int, tuple[int, int]] = {}
        for write in step.records:
            assert isinstance(write, StateWrite)
            known = by_offset(Persisted(0, write.batches))
            ours = {offset: (delivery.value, count) for offset, (delivery, count) in known.items()}
            if isinstance(event, events.TimerFired):
                self.writes_for_one[write.write_id] = len(outcome.writes)
            else:
                assert [w[:2] for w in outcome.writes] == [
                    (write.start_offset, write.delivery_complete_count)
                ]
        assert theirs == ours

    def _command(self, event: events.Event) -> Optional[tuple[Any, ...]]:
        """The event in the words of SharePartitions.java; None if Apache knows no such event."""
        match event:
            case events.BeginFetch() if event.fetch_id:
                return ("fetch",)
            case events.Acquire():
                batches = [part for batch in event.batches for part in batch]
                aborted = [part for transaction in event.aborted for part in transaction]
                how = (int(event.mode), event.batch_size, event.max_records, event.fetch_offset)
                return (
                    "acquire",
                    event.member_id,
                    *how,
                    len(event.batches),
                    *batches,
                    len(event.aborted),
                    *aborted,
                )
            case events.Acknowledge():
                self.requests.append(event.token)
                said = [
                    word
                    for first, last, types in event.batches
                    for word in (first, last, len(types), *map(int, types))
                ]
                return ("acknowledge", event.member_id, len(event.batches), *said)
            case events.ReleaseMember():
                self.requests.append(event.token)
                return ("release", event.member_id)
            case events.TimerFired():
                return ("time", event.now_ms)
            case events.WriteDone():
                return ("written", 0 if event.error is ErrorCode.NONE else event.error.value)
            case _:
                return None


#: Apache keeps a batch by offset where only its neighbour was archived, and then uses the words for offsets.
_WORDS = {
    acknowledge.OFFSET_NOT_ACQUIRED.message: acknowledge.BATCH_NOT_ACQUIRED.message,
    acknowledge.OFFSET_OF_OTHER.message: acknowledge.BATCH_OF_OTHER.message,
}


def _alike(answers: dict[int, tuple[str, str]]) -> dict[int, tuple[str, Optional[str]]]:
    return {place: (error, _WORDS.get(text, text)) for place, (error, text) in answers.items()}


def _without_text(answers: dict[int, tuple[str, str]]) -> dict[int, tuple[str, str]]:
    """What the share coordinator says goes to the client word by word, or not: tested elsewhere."""
    return {place: (error, "") for place, (error, _) in answers.items()}


def _is_well_formed(said: AcknowledgementBatch) -> bool:
    size = said.last_offset - said.first_offset + 1
    return set(said.types) <= set(range(5)) and len(said.types) in (1, size)
