"""Kafka Streams' own smoke tests with exactly-once, while processors and the broker are killed and restarted,
each over the classic protocol and over the streams protocol of KIP-1071.

The driver of the first writes records with many transforms of them to be had, waits until all transactions
are over, and compares every sum, count, minimum, window and join with what it sent. In 4.3 it is the program
of exactly-once as well: EosTestClient and its driver are gone, and what they verified is verified here. The
second joins two tables by a foreign key.
"""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka import TopicPartition

from interop.exactly_once import topics
from interop.exactly_once.lane import Kind, Story
from interop.exactly_once.program import Program, until
from interop.world import Broker
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.offsets import LATEST, committed_offsets, list_offsets
from pykafka_broker.testing.apache.jars import VERSION, fetched, libs

#: Kafka Streams' own test programs; they run with Kafka's jars beside.
PROGRAMS = Path(__file__).with_name("streams-programs.pom.xml")

PARTITIONS = 5
#: Of the smoke test, as Kafka's system tests create them.
TOPICS = (
    *("data", "echo", "max", "min", "min-suppressed", "min-raw", "dif", "sum"),
    *("sws-raw", "sws-suppressed", "cnt", "avg", "tagg", "fk"),
)
GROUP, SOURCE, RECORDS = "SmokeTest", "data", 20_000
READ_COMMITTED = 1
RELATIONAL_SOURCES = ("in-article", "in-comment")
RELATIONAL_RESULTS = ("out-augmented-article", "out-augmented-comment")
#: The driver takes 90 s to write, and reads until all is there.
PATIENCE_S = 420

PROPERTIES = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    # With the streams protocol it is the broker that says how soon a processor is missed.
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.heartbeat.interval.ms": "1000",
    "group.streams.heartbeat.interval.ms": "1000",
}


def streams_programs() -> Path:
    """The folder of Kafka Streams' own test programs, fetched on first use."""
    return fetched("streams-programs", PROGRAMS, VERSION, "-DexcludeTransitive=true")


def program(
    broker: Broker, name: str, *arguments: str, test: str = "StreamsSmokeTest", level: str = "ERROR"
) -> Program:
    main_class = f"org.apache.kafka.streams.tests.{test}"
    return Program(name, broker.folder, [libs(), streams_programs()], main_class, arguments, level=level)


def the_smoke_test_counts_exactly(kind: Kind) -> str:
    return _smoke_test(kind, "group.protocol=classic\nsession.timeout.ms=6000\n")


def the_smoke_test_counts_exactly_in_a_streams_group(kind: Kind) -> str:
    return _smoke_test(kind, "group.protocol=streams\n")


def _smoke_test(kind: Kind, protocol: str) -> str:
    with kind(PROPERTIES) as broker:
        topics.create(broker.address, PARTITIONS, *TOPICS)
        settings = broker.folder / "streams.properties"
        settings.write_text(
            f"bootstrap.servers={broker.address}\nprocessing.guarantee=exactly_once_v2\n"
            f"replication.factor=-1\nnum.stream.threads=2\ncommit.interval.ms=100\n{protocol}"
        )
        processors = [program(broker, f"processor-{number}", str(settings), "process") for number in (1, 2)]
        with (
            program(broker, "driver", str(settings), "run") as driver,
            processors[0] as first,
            processors[1] as second,
        ):
            driver.wait_until_printed(" 2000 records produced")
            first.wait_until_printed("SMOKE-TEST-CLIENT-STARTED")
            broker.kill()
            broker.start()
            driver.wait_until_printed(" 6000 records produced")
            second.kill()
            second.start()
            driver.wait_until_printed(" 10000 records produced")
            broker.restart()
            driver.wait_until_printed(" 14000 records produced")
            first.kill()
            broker.kill()
            time.sleep(1)
            broker.start()
            first.start()
            # The driver does not wait for processors that are behind. It takes a transaction for a fault that
            # ends between two of its looks at a partition.
            driver.wait_until_printed(f" {RECORDS} records produced")
            driver.pause()
            with Client(broker.address) as client:
                until(lambda: has_caught_up(client), PATIENCE_S, "the processors catch up")
            driver.go_on()
            status = driver.wait(PATIENCE_S)
            printed = driver.printed()
            assert status == 0 and "\nSUCCESS\n" in printed, (
                f"the driver ended with {status}:\n{driver.tail(60)}"
            )
            assert "ALL-RECORDS-DELIVERED" in printed and "PROCESSED-MORE" not in printed, driver.tail(60)
            for processor in processors:
                assert "SMOKE-TEST-CLIENT-EXCEPTION" not in processor.printed(), processor.tail()
            # A processor that stops may still be given tasks of the other, and fail then: its JVM deletes the
            # temporary folder of its stores meanwhile.
            for processor in processors:
                processor.ask_to_stop()
        figures = [line for line in printed.splitlines() if line.startswith("record")]
        return f"{', '.join(figures)}; broker killed twice and restarted, processors killed twice"


def has_caught_up(client: Client) -> bool:
    """Whether all that is in the topic `data` is processed, and no transaction is open."""
    everything = dict.fromkeys([(name, number) for name in TOPICS for number in range(PARTITIONS)], LATEST)
    ends = list_offsets(client, everything)
    offsets = client.at_coordinator(GROUP, lambda node_id: committed_offsets(client, node_id, GROUP))
    read = all(offsets.get(key, 0) >= end for key, end in ends.items() if key[0] == SOURCE)
    return read and list_offsets(client, everything, isolation_level=READ_COMMITTED) == ends


def the_relational_smoke_test_joins_exactly(kind: Kind) -> str:
    return _relational_smoke_test(kind, "classic")


def the_relational_smoke_test_joins_exactly_in_a_streams_group(kind: Kind) -> str:
    return _relational_smoke_test(kind, "streams")


def _relational_smoke_test(kind: Kind, protocol: str) -> str:
    """Each processor is an application of its own, that makes all results; two are killed, a third is not."""
    with kind(PROPERTIES) as broker:
        topics.create(broker.address, PARTITIONS, *RELATIONAL_SOURCES, *RELATIONAL_RESULTS)

        def relational(name: str, mode: str, *arguments: str) -> Program:
            return program(
                broker, name, mode, broker.address, *arguments, test="RelationalSmokeTest", level="INFO"
            )

        def processor(number: int) -> Program:
            name = f"processor-{number}"
            state = str(broker.folder / name)
            return relational(name, "application", name, "exactly_once_v2", protocol, state)

        with processor(1) as first, processor(2) as second, relational("driver", "driver") as driver:
            until(lambda: has_results(broker), PATIENCE_S, "something is joined")
            first.kill()
            broker.kill()
            broker.start()
            with processor(3) as third:
                third.wait_until_printed("Streams has started")
                second.kill()
                broker.kill()
                broker.start()
                assert "Smoke test complete" not in driver.printed(), "the driver was done before the kills"
                driver.wait_until_printed("Smoke test complete", PATIENCE_S)
                assert "Smoke test complete: passed" in driver.printed(), driver.tail(60)
        return "broker killed twice, processors twice"


def has_results(broker: Broker) -> bool:
    return all(
        any(
            topics.end_offsets(
                broker.address, [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
            ).values()
        )
        for topic in RELATIONAL_RESULTS
    )


STORIES: tuple[Story, ...] = (
    the_smoke_test_counts_exactly,
    the_smoke_test_counts_exactly_in_a_streams_group,
    the_relational_smoke_test_joins_exactly,
    the_relational_smoke_test_joins_exactly_in_a_streams_group,
)
