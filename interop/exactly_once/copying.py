"""Apache Kafka's TransactionalMessageCopier, with random aborts and kills, between its verifiable clients."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from interop.exactly_once import topics
from interop.exactly_once.lane import Kind, Story
from interop.exactly_once.program import Program, StoryError, until
from interop.world import Broker
from pykafka_broker.testing.apache.jars import libs

PARTITIONS = 3
MESSAGES = 20_000
#: Small, so that there are many transactions for a kill to hit.
TRANSACTION_SIZE = 50
#: Kills of the broker while a story runs, and the seconds it lives in between.
KILLS = 4
LIFE_S = (1.0, 3.0)
PATIENCE_S = 300

PROPERTIES = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
}


@contextmanager
def stage(kind: Kind) -> Iterator[Broker]:
    with kind(PROPERTIES) as broker:
        topics.create(broker.address, PARTITIONS, "input", "output")
        yield broker


def tool(broker: Broker, name: str, main_class: str, *arguments: str) -> Program:
    return Program(name, broker.folder, [libs()], f"org.apache.kafka.tools.{main_class}", arguments)


def kill_and_start(broker: Broker) -> None:
    broker.kill()
    broker.start()


def events(program: Program, name: str) -> list[dict[str, object]]:
    """The lines of one kind that a verifiable client or a copier printed. The last may be half written."""
    found = []
    for line in program.printed().splitlines():
        if line.startswith("{") and line.endswith("}"):
            event = json.loads(line)
            if event.get("name", event.get("stage")) == name:
                found.append(event)
    return found


def what_was_acknowledged_is_there_once(kind: Kind) -> str:
    """VerifiableProducer does not send again: what it was told is there, and there once."""
    with stage(kind) as broker:
        arguments = ("--topic", "input", "--max-messages", str(MESSAGES), "--throughput", "2000")
        with tool(
            broker, "producer", "VerifiableProducer", "--bootstrap-server", broker.address, *arguments
        ) as producer:
            kills = 0
            while kills < 3:
                until(
                    more_than_or_over(producer, acknowledged(producer) + 1000), 60, "records are acknowledged"
                )
                if producer.status is not None:
                    break
                kill_and_start(broker)
                kills += 1
            producer.wait(PATIENCE_S)
            told = {str(event["value"]) for event in events(producer, "producer_send_success")}
        stored = list(itertools.chain(*topics.values(broker.address, "input")))
    assert kills, "the producer was over before anything was killed"
    assert len(stored) == len(set(stored)), f"{len(stored) - len(set(stored))} records are there twice"
    lost = told - set(stored)
    assert not lost, f"{len(lost)} acknowledged records are gone: {sorted(lost)[:10]}"
    return f"{len(told)} of {MESSAGES} acknowledged, {len(stored)} stored, {kills} kills"


def acknowledged(producer: Program) -> int:
    return len(events(producer, "producer_send_success"))


def more_than_or_over(producer: Program, least: int) -> Callable[[], bool]:
    return lambda: acknowledged(producer) > least or producer.status is not None


def copies_of_partitions_equal_them(kind: Kind) -> str:
    """One copier for each partition, none of them in a group's membership."""
    with stage(kind) as broker:
        fill(broker)
        copiers = [
            copier(broker, f"copier-{partition}", "--input-partition", str(partition))
            for partition in range(PARTITIONS)
        ]
        counts = let_copy(broker, copiers)
        return f"{check_copy(broker)} in {PARTITIONS} partitions; {counts}"


def copies_by_members_of_a_group_equal_what_they_copy(kind: Kind) -> str:
    """Two copiers share the partitions in a group and commit with its metadata; one is killed and returns."""
    with stage(kind) as broker:
        fill(broker)
        grouped = ("--input-partition", "-1", "--group-mode", "--use-group-metadata")
        copiers = [copier(broker, f"copier-{number}", *grouped) for number in range(2)]
        counts = let_copy(broker, copiers)
        return f"{check_copy(broker)} by 2 members; {counts}"


def fill(broker: Broker) -> None:
    sent = tool(
        broker,
        "producer",
        "VerifiableProducer",
        *("--bootstrap-server", broker.address, "--topic", "input", "--max-messages", str(MESSAGES)),
    )
    with sent:
        sent.wait(PATIENCE_S)
        (summary,) = events(sent, "tool_data")
    assert summary["acked"] == MESSAGES, summary


def copier(broker: Broker, name: str, *arguments: str) -> Program:
    return tool(
        broker,
        name,
        "TransactionalMessageCopier",
        *("--broker-list", broker.address, "--input-topic", "input", "--output-topic", "output"),
        *("--transactional-id", name, "--consumer-group", "copiers", "--enable-random-aborts"),
        *("--transaction-size", str(TRANSACTION_SIZE), "--transaction-timeout", "10000"),
        *arguments,
    )


def let_copy(broker: Broker, copiers: Sequence[Program]) -> str:
    """Until all have ended; the broker is killed now and then, and the first copier once."""
    chance = random.Random(6)
    kills = 0
    deadline = time.monotonic() + PATIENCE_S
    with ExitStack() as running:
        for program in copiers:
            running.enter_context(program)
        next_kill_s = time.monotonic()
        victim_lives = True
        until(lambda: copied(copiers) >= TRANSACTION_SIZE, 60, "a transaction is committed")
        while [program for program in copiers if still_runs(program)]:
            if time.monotonic() > deadline:
                tails = "\n".join(f"{program.name}:\n{program.tail(5)}" for program in copiers)
                raise StoryError(f"the copiers did not come to the end\n{tails}\n{broker.log_tail()}")
            if kills < KILLS and time.monotonic() >= next_kill_s:
                kill_and_start(broker)
                kills += 1
                next_kill_s = time.monotonic() + chance.uniform(*LIFE_S)
            if victim_lives and kills >= 1:
                victim_lives = False
                copiers[0].kill()
                copiers[0].start()
            time.sleep(0.1)
    assert kills >= 1 and not victim_lives, "the copiers were over before anything was killed"
    return f"broker killed {kills} times, copiers started {sum(p.starts for p in copiers)} times"


def copied(copiers: Sequence[Program]) -> int:
    return sum(
        max((int(str(event["totalProcessed"])) for event in events(program, "ProcessLoop")), default=0)
        for program in copiers
    )


def still_runs(program: Program) -> bool:
    """A copier gives up when an answer takes too long; its caller starts it again."""
    if program.status is None:
        return True
    if program.status == 0:
        return False
    if program.starts > 10:
        raise StoryError(f"{program.name} does not live:\n{program.tail()}")
    program.start()
    return True


def check_copy(broker: Broker) -> str:
    source, copy = (topics.values(broker.address, topic) for topic in ("input", "output"))
    for partition, (wanted, got) in enumerate(zip(source, copy, strict=True)):
        found = difference(wanted, got)
        assert not found, f"partition {partition}: {found}"
    with_aborted = sum(map(len, topics.values(broker.address, "output", isolation="read_uncommitted")))
    total = sum(map(len, copy))
    assert total == MESSAGES and with_aborted > total, f"{total} copied, {with_aborted} with those aborted"
    for protocol in ("classic", "consumer"):
        verify(broker, protocol, total)
    return f"{total} records copied exactly, {with_aborted - total} in aborted transactions"


def difference(wanted: Sequence[str], got: Sequence[str]) -> str:
    """The records that a copy has twice, lacks, or has in another order; empty when it is equal."""
    twice, missing, strange = len(got) - len(set(got)), set(wanted) - set(got), set(got) - set(wanted)
    if twice or missing or strange:
        return (
            f"{twice} twice, {len(missing)} missing, {len(strange)} that were not written, of {len(wanted)}"
        )
    return "" if list(got) == list(wanted) else "in another order"


def verify(broker: Broker, protocol: str, total: int) -> None:
    """A member of a group, who reads committed records alone, counts the same."""
    settings = broker.folder / "verifier.properties"
    settings.write_text("isolation.level=read_committed\n")
    consumer = tool(
        broker,
        f"verifier-{protocol}",
        "VerifiableConsumer",
        *("--bootstrap-server", broker.address, "--topic", "output", "--group-protocol", protocol),
        *("--group-id", f"verifier-{protocol}", "--max-messages", str(total)),
        *("--command-config", str(settings)),
    )
    with consumer:
        consumer.wait(PATIENCE_S)
        read = sum(int(str(event["count"])) for event in events(consumer, "records_consumed"))
    assert read == total, f"{protocol} verifier read {read} of {total}"


STORIES: tuple[Story, ...] = (
    what_was_acknowledged_is_there_once,
    copies_of_partitions_equal_them,
    copies_by_members_of_a_group_equal_what_they_copy,
)
