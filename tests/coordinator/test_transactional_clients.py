"""Real clients in transactions: librdkafka, aiokafka and kafka-python (transaction.version 1), Java (2), and
the stock `kafka-transactions` tool.
"""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.testing.apache.tools import command, run_tool
from pykafka_broker.testing.processes import PykafkaBroker
from pykafka_broker.testing.user import User
from tests.apis.transacting import Producer as RawProducer

pytestmark = pytest.mark.acknowledged

TOOLS = "org.apache.kafka.tools"
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "4"}
GROUP = "readers"
TRANSACTIONS = 9
PER_TRANSACTION = 10
#: Every third transaction is aborted; positions are those of the last one that was committed.
ABORTED = range(2, TRANSACTIONS, 3)
EXPECTED = sorted(
    f"{number}-{count}"
    for number in range(TRANSACTIONS)
    if number not in ABORTED
    for count in range(PER_TRANSACTION)
)
LAST_POSITION = TRANSACTIONS - 1


def create_topics(broker: PykafkaBroker, **partitions: int) -> None:
    topics = [NewTopic(name, count, 1) for name, count in partitions.items()]
    admin = AdminClient({"bootstrap.servers": broker.address})
    for created in admin.create_topics(topics).values():
        created.result(60)


def read_committed(broker: PykafkaBroker, topic: str, partitions: int) -> list[str]:
    """Every record a read_committed consumer sees, to the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": "checker",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    values: list[str] = []
    ends = 0
    while ends < partitions:
        message = consumer.poll(60)
        assert message is not None, "the end does not come"
        if message.error():
            ends += 1
        else:
            value = message.value()
            assert value is not None
            values.append(value.decode())
    consumer.close()
    return values


def position(broker: PykafkaBroker, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": group})
    [found] = consumer.committed([TopicPartition(topic, 0)], timeout=60)
    consumer.close()
    offset: int = found.offset
    return offset


def with_librdkafka(address: str) -> None:
    producer = Producer({"bootstrap.servers": address, "transactional.id": "copier"})
    consumer = Consumer({"bootstrap.servers": address, "group.id": GROUP})
    producer.init_transactions(60)
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        for count in range(PER_TRANSACTION):
            producer.produce("out", f"{number}-{count}", partition=count % 2)
        at = [TopicPartition("in", 0, number + 1)]
        producer.send_offsets_to_transaction(at, consumer.consumer_group_metadata(), 60)
        if number in ABORTED:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    consumer.close()


def with_aiokafka(address: str) -> None:
    import aiokafka

    async def copy() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=address, transactional_id="copier")
        await producer.start()
        for number in range(TRANSACTIONS):
            await producer.begin_transaction()
            for count in range(PER_TRANSACTION):
                await producer.send_and_wait("out", f"{number}-{count}".encode(), partition=count % 2)
            at = {aiokafka.TopicPartition("in", 0): number + 1}
            await producer.send_offsets_to_transaction(at, GROUP)
            if number in ABORTED:
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()
        await producer.stop()

    asyncio.run(copy())


def with_kafka_python(address: str) -> None:
    import kafka

    producer = kafka.KafkaProducer(bootstrap_servers=address, transactional_id="copier")
    producer.init_transactions()
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        for count in range(PER_TRANSACTION):
            producer.send("out", f"{number}-{count}".encode(), partition=count % 2)
        at = {kafka.TopicPartition("in", 0): kafka.OffsetAndMetadata(number + 1, "", -1)}
        producer.send_offsets_to_transaction(at, GROUP)
        if number in ABORTED:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()


@pytest.mark.parametrize("client", [with_librdkafka, with_aiokafka, with_kafka_python])
def test_what_a_client_commits_is_there_and_what_it_aborts_is_not(
    client: Callable[[str], None], tmp_path: Path
) -> None:
    with PykafkaBroker(SETTINGS, tmp_path) as broker:
        create_topics(broker, **{"in": 1, "out": 2})
        client(broker.address)

        assert sorted(read_committed(broker, "out", 2)) == EXPECTED
        assert position(broker, GROUP, "in") == LAST_POSITION


def test_apaches_copier_copies_exactly_although_it_aborts_and_the_broker_is_killed(
    kafka_jars: Path, tmp_path: Path
) -> None:
    count = 3_000
    with PykafkaBroker(SETTINGS, tmp_path) as broker:
        create_topics(broker, source=1, copy=3)
        producer = Producer({"bootstrap.servers": broker.address})
        for number in range(count):
            producer.produce("source", str(number))
            producer.poll(0)
        assert producer.flush(60) == 0
        copier = subprocess.Popen(
            command(
                f"{TOOLS}.TransactionalMessageCopier",
                *("--broker-list", broker.address, "--input-topic", "source", "--output-topic", "copy"),
                *("--input-partition", "0", "--transactional-id", "copier", "--consumer-group", GROUP),
                *("--transaction-size", "40", "--enable-random-aborts", "--use-group-metadata"),
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        overdue = threading.Timer(240, copier.kill)
        overdue.start()
        try:
            assert copier.stdout is not None
            kills = 0
            for line in copier.stdout:
                # It tells after each transaction how far it is.
                if '"ProcessLoop"' in line and kills < 2 and progress(line) > (kills + 1) * count // 4:
                    kills += 1
                    broker.kill()
                    broker.start()
            assert copier.wait(60) == 0
            assert kills == 2
        finally:
            overdue.cancel()
            copier.kill()
            copier.communicate()

        copied = read_committed(broker, "copy", 3)
        assert sorted(copied, key=int) == [str(number) for number in range(count)]
        assert position(broker, GROUP, "source") == count
        state = run_tool(
            f"{TOOLS}.TransactionsCommand",
            *("--bootstrap-server", broker.address, "describe", "--transactional-id", "copier"),
        )
        assert "CompleteCommit" in state


def progress(line: str) -> int:
    """How many records the copier has consumed, by a line of its."""
    _, _, rest = line.partition('"consumed":')
    return int(rest.split(",")[0])


async def test_a_hanging_transaction_is_found_and_aborted_with_the_stock_tool(
    kafka_jars: Path, tmp_path: Path
) -> None:
    # Only where verification is off can a client write behind the coordinator's back.
    settings = {**SETTINGS, "transaction.partition.verification.enable": "false"}
    with PykafkaBroker(settings, tmp_path) as broker:

        def tool(*arguments: str) -> str:
            return run_tool(f"{TOOLS}.TransactionsCommand", "--bootstrap-server", broker.address, *arguments)

        async with await User.connect(broker.address) as user:
            await user.create_topic("t")
            producer = await RawProducer.of(user, "lost", old=True)
            assert ErrorCode((await producer.try_to_write("t", b"v")).error_code) == ErrorCode.NONE

            hanging = await asyncio.to_thread(tool, "find-hanging", "--broker-id", "1")
            lines = hanging.splitlines()
            assert lines[0].split()[:3] == ["Topic", "Partition", "ProducerId"]
            assert lines[1].split()[:3] == ["t", "0", str(producer.id)]

            await asyncio.to_thread(tool, "abort", "--topic", "t", "--partition", "0", "--start-offset", "0")
            left = await asyncio.to_thread(tool, "find-hanging", "--broker-id", "1")
            assert len(left.splitlines()) == 1
            found = await asyncio.to_thread(tool, "describe-producers", "--topic", "t", "--partition", "0")
            assert found.splitlines()[1].split()[-1] == "None"
        assert read_committed(broker, "t", 1) == []


def test_the_stock_tool_lists_and_describes(kafka_jars: Path, tmp_path: Path) -> None:
    with PykafkaBroker(SETTINGS, tmp_path) as broker:
        create_topics(broker, out=2)
        open_producer = Producer({"bootstrap.servers": broker.address, "transactional.id": "open"})
        open_producer.init_transactions(60)
        open_producer.begin_transaction()
        open_producer.produce("out", "v", partition=1)
        assert open_producer.flush(60) == 0

        def tool(*arguments: str) -> list[list[str]]:
            printed = run_tool(
                f"{TOOLS}.TransactionsCommand", "--bootstrap-server", broker.address, *arguments
            )
            return [line.split() for line in printed.splitlines()[1:]]

        [listed] = tool("list")
        assert (listed[0], listed[3]) == ("open", "Ongoing")
        assert tool("list", "--transactional-id-pattern", "closed.*") == []
        [described] = tool("describe", "--transactional-id", "open")
        assert (described[1], described[4], described[-1]) == ("open", "Ongoing", "out-1")
        [producer] = tool("describe-producers", "--topic", "out", "--partition", "1")
        assert producer[-1] == "0"
        open_producer.abort_transaction(60)
