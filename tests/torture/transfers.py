"""A transactional producer under faults, and what must be true of its transactions in the end.

Each transaction writes its number once into each partition of a topic. One whose commit was acknowledged is
there, once in each partition; one that was aborted is not; of one whose outcome its producer has not learned
all is there or nothing.

The number is also the new balance of one of a few owners in a topic that is compacted.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from tests.torture.clients import PATIENCE_S, QUIET
from tests.torture.users import ANYBODY, Users

TRANSFERS = "transfers"
ACCOUNTS = 2
BALANCES = "balances"
OWNERS = 10
#: Cleaned while it is written.
COMPACT = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "5000",
    "min.cleanable.dirty.ratio": "0.01",
}
Outcome = Literal["committed", "aborted", "unknown"]


def create_transfers(address: str, replicas: int, users: Users = ANYBODY) -> None:
    admin = users.admin("clerk", {"bootstrap.servers": address, **QUIET})
    asked = [NewTopic(TRANSFERS, ACCOUNTS, replicas), NewTopic(BALANCES, 1, replicas, config=COMPACT)]
    for created in admin.create_topics(asked).values():
        created.result(PATIENCE_S)


@dataclass
class Transfers:
    """Begins, writes, and ends one transaction after the other, in a thread."""

    address: str
    seed: int = 1
    users: Users = ANYBODY
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    #: After which a producer cannot go on, by name.
    fatal: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._errors: list[BaseException] = []

    def __enter__(self) -> Transfers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._errors:
            raise self._errors[0]

    def _run(self) -> None:
        dice = random.Random(self.seed)
        number = 0
        producer: Producer | None = None
        try:
            while not self._stop.is_set():
                try:
                    if producer is None:
                        producer = self._new_producer()
                    number += 1
                    self.outcomes[number] = self._transfer(producer, number, is_kept=dice.random() < 0.8)
                except KafkaException as error:
                    if error.args[0].fatal():
                        self.fatal[error.args[0].name()] += 1
                    # The outcome stays unknown; the next producer of this id ends what this one has left.
                    producer = None
                    self._stop.wait(0.1)
                self._stop.wait(0.01)
        except BaseException as error:
            self._errors.append(error)

    def _new_producer(self) -> Producer:
        producer = self.users.producer(
            "teller",
            {
                "bootstrap.servers": self.address,
                "transactional.id": "teller",
                "transaction.timeout.ms": 20_000,
                "linger.ms": 1,
                **QUIET,
            },
        )
        producer.init_transactions(PATIENCE_S)
        return producer

    def _transfer(self, producer: Producer, number: int, *, is_kept: bool) -> Outcome:
        self.outcomes[number] = "unknown"
        producer.begin_transaction()
        for account in range(ACCOUNTS):
            producer.produce(TRANSFERS, b"%d" % number, partition=account)
        producer.produce(BALANCES, b"%d" % number, b"owner-%d" % (number % OWNERS), partition=0)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                if is_kept:
                    producer.commit_transaction(10)
                else:
                    producer.abort_transaction(10)
                return "committed" if is_kept else "aborted"
            except KafkaException as error:
                why = error.args[0]
                if why.txn_requires_abort():
                    is_kept = False
                elif not why.retriable() or time.monotonic() > deadline:
                    raise


def read_transfers(address: str, silence_s: float = 60, users: Users = ANYBODY) -> dict[int, list[int]]:
    """The numbers in each partition, without those of aborted transactions."""
    consumer = users.consumer(
        "auditor",
        {
            "bootstrap.servers": address,
            "group.id": "auditors",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **QUIET,
        },
    )
    consumer.assign([TopicPartition(TRANSFERS, account, 0) for account in range(ACCOUNTS)])
    found: dict[int, list[int]] = {account: [] for account in range(ACCOUNTS)}
    ends = {
        account: consumer.get_watermark_offsets(TopicPartition(TRANSFERS, account), timeout=PATIENCE_S)[1]
        for account in range(ACCOUNTS)
    }
    left = set(ends)
    deadline = time.monotonic() + silence_s
    while left and time.monotonic() < deadline:
        for message in consumer.consume(1_000, timeout=0.5):
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            if message.error() is None:
                assert value is not None
                found[partition].append(int(value))
            elif offset is not None and offset >= ends[partition]:
                left.discard(partition)
    consumer.close()
    assert not left, f"the partitions {sorted(left)} are not read to their ends {ends}"
    return found


def transfer_anomalies(
    outcomes: Mapping[int, Outcome], found: Mapping[int, Sequence[int]]
) -> dict[str, list[int]]:
    """Everything that is wrong, by the name of the anomaly."""
    counts = {account: Counter(numbers) for account, numbers in found.items()}
    wrong: dict[str, list[int]] = {}
    for number, outcome in outcomes.items():
        times = {count[number] for count in counts.values()}
        if max(times) > 1:
            wrong.setdefault("twice", []).append(number)
        elif len(times) > 1:
            wrong.setdefault("half", []).append(number)
        elif outcome == "committed" and times == {0}:
            wrong.setdefault("lost", []).append(number)
        elif outcome == "aborted" and times == {1}:
            wrong.setdefault("not aborted", []).append(number)
    for numbers in found.values():
        if list(numbers) != sorted(numbers):
            wrong.setdefault("reordered", []).extend(numbers)
        if strange := sorted(set(numbers) - outcomes.keys()):
            wrong.setdefault("phantom", []).extend(strange)
    return wrong
