"""Play conversations to both brokers and judge each: equal, other words, accepted, different, or broken."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TypeVar

from interop.conformance.accepted import ACCEPTED, Accepted
from interop.conformance.compare import Difference, compare
from interop.conformance.conversation import NO_SETTINGS, Case
from interop.conformance.talk import BrokenOffError, SetUpError, Side, Talk, Transcript
from interop.conformance.wire import Closed, NoAnswer
from pykafka_broker.testing.apache.broker import ApacheBroker
from pykafka_broker.testing.processes import BrokerProcess, PykafkaNode

#: The settings with which both brokers are started.
SETTINGS = {
    # Conversations write records of long ago, which no clean-up must remove meanwhile.
    "log.retention.ms": "-1",
    "num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.max.size": "4",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
#: Ours is told as well to be the node that the oracle is.
OUR_SETTINGS = {**SETTINGS, "node.id": "1"}

#: Conversations wait more than they compute, and Apache answers several connections at once.
WORKERS = 6

T = TypeVar("T")


class Verdict(Enum):
    EQUAL = "equal"
    #: Every value is the same, a message says it in other words.
    WORDS = "words"
    #: Every difference of value is in the list of accepted ones.
    ACCEPTED = "accepted"
    DIFFERENT = "different"
    #: Apache does not do what the conversation expects, or it could not be played to Apache.
    BROKEN = "broken"


@dataclass(frozen=True)
class Result:
    case: Case
    verdict: Verdict
    differences: tuple[Difference, ...] = ()
    #: The names of the entries that accept the differences of value.
    accepted: tuple[str, ...] = ()
    #: Why it is broken.
    problem: str = ""

    @property
    def of_value(self) -> tuple[Difference, ...]:
        return tuple(difference for difference in self.differences if not difference.is_of_words)

    @property
    def of_words(self) -> tuple[Difference, ...]:
        return tuple(difference for difference in self.differences if difference.is_of_words)


def side_of(broker: BrokerProcess) -> Side:
    ports = {broker.port}
    fixed = {broker.address: "<address>", str(broker.data_dir): "<log dir>"}
    controller_address = None
    if isinstance(broker, (ApacheBroker, PykafkaNode)):
        ports.add(broker.controller_port)
        controller_address = broker.controller_address
        fixed[controller_address] = "<controller address>"
    fixed.update(ids_of(broker.data_dir))
    return Side(broker.name, broker.address, fixed, frozenset(ports), controller_address)


def ids_of(data_dir: Path) -> dict[str, str]:
    """The random ids of a formatted directory, which texts of errors name, and what stands for them."""
    file = data_dir / "meta.properties"
    lines = file.read_text().splitlines() if file.exists() else []
    properties = dict(line.split("=", 1) for line in lines if "=" in line)
    named = {"cluster.id": "<cluster id>", "directory.id": "<directory id>"}
    return {properties[key].replace("\\", ""): name for key, name in named.items() if key in properties}


@contextmanager
def both_brokers(settings: Mapping[str, str] = NO_SETTINGS) -> Iterator[tuple[Side, Side]]:
    """Apache Kafka and ours, each a fresh node with the same settings, and with `settings`."""
    apache_settings, our_settings = {**SETTINGS, **settings}, {**OUR_SETTINGS, **settings}
    with ApacheBroker(apache_settings) as apache, PykafkaNode(our_settings) as ours:
        yield side_of(apache), side_of(ours)


def by_settings(cases: Iterable[Case]) -> list[tuple[Mapping[str, str], list[Case]]]:
    """Those that are held with the same two brokers, the most usual first."""
    found: dict[tuple[tuple[str, str], ...], list[Case]] = {(): []}
    for case in cases:
        found.setdefault(case.conversation.settings, []).append(case)
    return [(dict(settings), chosen) for settings, chosen in found.items() if chosen]


def play(case: Case, side: Side) -> Transcript:
    """Hold one conversation with one broker."""
    transcript = Transcript()
    talk = Talk(case.subject, side, transcript=transcript)
    try:
        case.conversation.function(talk)
    except (BrokenOffError, SetUpError) as error:
        transcript.broke_off = f"{type(error).__name__}: {error}"
    except Closed:
        transcript.broke_off = "the connection was closed"
    except NoAnswer:
        transcript.broke_off = "there was no answer"
    except Exception:
        transcript.broke_off = traceback.format_exc(limit=-2)
    finally:
        try:
            talk.tidy()
        except (Closed, NoAnswer, OSError) as error:
            transcript.broke_off = transcript.broke_off or f"the topics could not be deleted: {error!r}"
        talk.close()
    return transcript


def judge(
    case: Case, apache: Transcript, ours: Transcript, accepted: Sequence[Accepted] = ACCEPTED
) -> Result:
    """The outcome of a case."""
    found = tuple(compare(apache, ours))
    if apache.broke_off or apache.unexpected:
        problem = "; ".join([*apache.unexpected, *([apache.broke_off] if apache.broke_off else [])])
        return Result(case, Verdict.BROKEN, found, problem=f"with Apache Kafka: {problem}")
    if not apache.answers:
        return Result(case, Verdict.BROKEN, problem="nothing is compared in it")
    return judge_differences(case, found, ours.broke_off or "", accepted)


def judge_differences(
    case: Case, found: tuple[Difference, ...], problem: str, accepted: Sequence[Accepted]
) -> Result:
    """The outcome of a case that Apache Kafka was heard out in; `problem` says why ours was not."""
    of_value = [difference for difference in found if not difference.is_of_words]
    if not of_value:
        return Result(case, Verdict.WORDS if found else Verdict.EQUAL, found)
    by = {
        difference: [entry for entry in accepted if entry.matches(case, difference)]
        for difference in of_value
    }
    if all(by.values()):
        names = tuple(dict.fromkeys(entry.name for entries in by.values() for entry in entries))
        return Result(case, Verdict.ACCEPTED, found, names)
    return Result(case, Verdict.DIFFERENT, found, problem=problem)


def run(
    cases: Iterable[Case],
    apache: Side,
    ours: Side,
    report: Callable[[Result], None] = lambda result: None,
    accepted: Sequence[Accepted] = ACCEPTED,
    workers: int = WORKERS,
) -> list[Result]:
    """Play every case to both, so many at the same time."""

    def one(case: Case) -> Result:
        result = judge(case, play(case, apache), play(case, ours), accepted)
        report(result)
        return result

    return each(cases, one, workers)


def each(cases: Iterable[Case], do: Callable[[Case], T], workers: int = WORKERS) -> list[T]:
    """`do` every case; those that want to be alone first, or last, and one after the other."""
    cases = list(cases)
    last = [case for case in cases if case.conversation.last]
    done = [do(case) for case in cases if case.conversation.alone and case not in last]
    with ThreadPoolExecutor(workers) as pool:
        done += pool.map(do, [case for case in cases if not case.conversation.alone])
    return done + [do(case) for case in last]


def unnoticed(cases: Iterable[Case], honest_side: Side, other_side: Side) -> list[str]:
    """The cases that go on as if nothing had happened when every answer of the other side is spoilt."""

    def one(case: Case) -> str | None:
        honest, spoilt = play(case, honest_side), play(case, replace(other_side, sabotaged=True))
        if judge(case, honest, spoilt, ()).verdict not in (Verdict.DIFFERENT, Verdict.BROKEN):
            return f"{case}: a spoilt answer is not noticed"
        if spoilt.error_spoilt and spoilt.unexpected == honest.unexpected:
            return f"{case}: another error code than expected is not noticed"
        return None

    return [found for found in each(cases, one) if found]


def sample(cases: Sequence[Case], seed: int, size: int) -> list[Case]:
    """`size` cases chosen by `seed`, in their order."""
    chosen = random.Random(seed).sample(range(len(cases)), min(size, len(cases)))
    return [cases[index] for index in sorted(chosen)]


def stale(
    results: Sequence[Result], declared: Sequence[Case], accepted: Sequence[Accepted] = ACCEPTED
) -> list[Accepted]:
    """The entries that accepted nothing, although every declared case that they concern was played."""
    used = {name for result in results for name in result.accepted}
    played = {result.case for result in results}
    return [
        entry
        for entry in accepted
        if entry.name not in used and played.issuperset(case for case in declared if entry.concerns(case))
    ]
