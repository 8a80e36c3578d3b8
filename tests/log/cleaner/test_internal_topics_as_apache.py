"""The topics of groups and transactions, compacted by Apache Kafka and by us: the folders shrink alike, to
the same bytes, and every group, offset and transactional id is there afterwards.

Apache's broker serves the clients and is stopped. One copy of its folder is cleaned by Apache, one by us.
"""

from __future__ import annotations

import asyncio
import shutil
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pykafka_broker.testing.apache.broker import ApacheBroker
from pykafka_broker.testing.processes import BrokerProcess, PykafkaBroker
from tests.log.cleaner.test_cleaning_as_apache import clean_as_we_do, timeless, wait_for

OFFSETS, TRANSACTIONS = "__consumer_offsets-0", "__transaction_state-0"
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.segment.bytes": "1048576",
    "transaction.state.log.segment.bytes": "1048576",
    "group.initial.rebalance.delay.ms": "0",
}
PARTITIONS = 200
GROUPS = 5
ROUNDS = 50
#: Its length makes few transactions fill a segment.
TRANSACTIONAL_ID = "writer-" + "x" * 900
TRANSACTIONS_MADE = 700

Committed = dict[str, dict[int, int]]


def has_all(member: Consumer) -> bool:
    return member.poll(0.1) is None and len(member.assignment()) == PARTITIONS


def live(address: str) -> Committed:
    """Commits by clients with and without membership, deleted offsets and groups, transactions; what is
    committed at the end.
    """
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic("orders", PARTITIONS, 1)])["orders"].result(60)
    committed: Committed = {}
    for number in range(GROUPS):
        consumer = Consumer({"bootstrap.servers": address, "group.id": f"group-{number}"})
        for round_ in range(ROUNDS):
            offsets = [TopicPartition("orders", p, round_ * 10 + number) for p in range(PARTITIONS)]
            consumer.commit(offsets=offsets, asynchronous=False)
        committed[f"group-{number}"] = dict.fromkeys(range(PARTITIONS), (ROUNDS - 1) * 10 + number)
        consumer.close()
    for protocol in ("classic", "consumer"):
        member = Consumer({"bootstrap.servers": address, "group.id": protocol, "group.protocol": protocol})
        member.subscribe(["orders"])
        wait_for(partial(has_all, member))
        member.commit(offsets=[TopicPartition("orders", 7, 7)], asynchronous=False)
        member.close()
        committed[protocol] = {7: 7}
    admin.delete_consumer_groups(["group-0"])["group-0"].result(60)
    del committed["group-0"]
    producer = Producer({"bootstrap.servers": address, "transactional.id": TRANSACTIONAL_ID})
    producer.init_transactions(60)
    for number in range(TRANSACTIONS_MADE):
        producer.begin_transaction()
        producer.produce("orders", b"%d" % number, partition=number % PARTITIONS)
        if number % 5:
            producer.commit_transaction(60)
        else:
            # librdkafka may else end a transaction before the broker has heard of a partition in it.
            assert producer.flush(60) == 0
            producer.abort_transaction(60)
    return committed


def found(address: str) -> Committed:
    """What is committed, as a broker that has just loaded its groups answers."""
    admin = AdminClient({"bootstrap.servers": address})
    groups = [group.group_id for group in admin.list_consumer_groups().result(60).valid]
    answers: Committed = {}
    for group in groups:
        asked = [ConsumerGroupTopicPartitions(group)]
        offsets = admin.list_consumer_group_offsets(asked)[group].result(60).topic_partitions
        answers[group] = {offset.partition: offset.offset for offset in offsets}
    producer = Producer({"bootstrap.servers": address, "transactional.id": TRANSACTIONAL_ID})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("orders", b"goes on", partition=0)
    producer.commit_transaction(60)
    return answers


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.log"))


def clean_as_apache(data_dir: Path, folder: Path) -> None:
    checkpoint = data_dir / "cleaner-offset-checkpoint"
    topics = ("__consumer_offsets", "__transaction_state")
    with ApacheBroker({**SETTINGS, "log.cleaner.backoff.ms": "200"}, folder):
        wait_for(
            lambda: checkpoint.exists() and all(f"\n{topic} 0 " in checkpoint.read_text() for topic in topics)
        )


def cleaned_up_to(data_dir: Path) -> dict[str, int]:
    lines = (data_dir / "cleaner-offset-checkpoint").read_text().splitlines()[2:]
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in map(str.split, lines)}


def what_stays(folder: Path, up_to: int) -> list[object]:
    return [
        entry
        for log in sorted(folder.glob("*.log"))
        for entry in timeless(log)
        if entry[0].next_offset <= up_to
    ]


def check_served(broker: BrokerProcess, committed: Committed) -> None:
    with broker:
        assert found(broker.address) == committed


async def test_groups_and_transactions_shrink_as_with_apache_and_all_of_them_stay(
    kafka_jars: Path, tmp_path: Path
) -> None:
    theirs, ours = tmp_path / "apache" / "data", tmp_path / "ours" / "data"
    with ApacheBroker({**SETTINGS, "log.cleaner.enable": "false"}, tmp_path / "apache") as apache:
        committed = await asyncio.to_thread(live, apache.address)
    shutil.copytree(theirs, ours)
    before = {name: size_of(theirs / name) for name in (OFFSETS, TRANSACTIONS)}
    await asyncio.to_thread(clean_as_apache, theirs, tmp_path / "apache")
    await clean_as_we_do(ours, ("__consumer_offsets", "__transaction_state"))

    assert cleaned_up_to(ours) == cleaned_up_to(theirs)
    for name, up_to in cleaned_up_to(ours).items():
        assert what_stays(ours / name, up_to) == what_stays(theirs / name, up_to)
        assert size_of(ours / name) < before[name] / 2

    await asyncio.to_thread(check_served, PykafkaBroker(SETTINGS, tmp_path / "ours"), committed)
