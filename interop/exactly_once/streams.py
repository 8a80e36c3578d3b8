"""Kafka Streams' own smoke test with exactly-once, while a processor and the broker are killed.

The driver writes records with many transforms of them to be had, waits until all transactions are over, and
compares every sum, count, minimum, window and join with what it sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from interop.brokers import BrokerProcess
from interop.exactly_once import topics
from interop.exactly_once.program import Program
from interop.oracle import libs, streams_programs

PARTITIONS = 5
#: Of the smoke test, as Kafka's system tests create them.
TOPICS = (
    *("data", "echo", "max", "min", "min-suppressed", "min-raw", "dif", "sum"),
    *("sws-raw", "sws-suppressed", "cnt", "avg", "tagg", "fk"),
)
#: The driver takes 90 s to write, and reads until all is there.
PATIENCE_S = 420

PROPERTIES = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
}


def program(broker: BrokerProcess, name: str, *arguments: str) -> Program:
    main_class = "org.apache.kafka.streams.tests.StreamsSmokeTest"
    return Program(name, broker.folder, [libs(), streams_programs()], main_class, *arguments, level="ERROR")


def the_smoke_test_counts_exactly(kind: type[BrokerProcess]) -> str:
    with kind(PROPERTIES) as broker:
        topics.create(broker.address, PARTITIONS, *TOPICS)
        settings = broker.folder / "streams.properties"
        settings.write_text(
            f"bootstrap.servers={broker.address}\nprocessing.guarantee=exactly_once_v2\n"
            "replication.factor=1\nnum.stream.threads=2\ncommit.interval.ms=100\nsession.timeout.ms=6000\n"
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
            broker.kill()
            broker.start()
            driver.wait_until_printed(" 14000 records produced")
            first.kill()
            broker.kill()
            time.sleep(1)
            broker.start()
            first.start()
            status = driver.wait(PATIENCE_S)
            printed = driver.printed()
            assert status == 0 and "\nSUCCESS\n" in printed, (
                f"the driver ended with {status}:\n{driver.tail(60)}"
            )
            assert "ALL-RECORDS-DELIVERED" in printed and "PROCESSED-MORE" not in printed, driver.tail(60)
            for processor in processors:
                processor.ask_to_stop()
                assert "SMOKE-TEST-CLIENT-CLOSED" in processor.printed(), processor.tail()
                assert "SMOKE-TEST-CLIENT-EXCEPTION" not in processor.printed(), processor.tail()
        figures = [line for line in printed.splitlines() if line.startswith("record")]
        return f"{', '.join(figures)}; broker killed 3 times, processors twice"


STORIES: tuple[Callable[[type[BrokerProcess]], str], ...] = (the_smoke_test_counts_exactly,)
