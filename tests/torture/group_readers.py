"""Members of groups of both kinds, which read the ledger while nodes fail: each record reaches each group.
No coordinator may forget a commit that it has acknowledged.

A member asks what is committed before it commits: the new commit would hide that an older one was forgotten.
It does not compare the first record that it reads: a deposed leader may answer OFFSET_OUT_OF_RANGE, and the
member then begins anew although its offset is still committed.

Kafka forgets committed offsets that expire, and those of deleted topics. Neither happens here.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.torture.clients import PATIENCE_S, QUIET, TOPIC, place_of
from tests.torture.history import Place
from tests.torture.users import ANYBODY, Users

KINDS = ("classic", "consumer")
MEMBERS = 2
#: The committed offset of a partition without one.
NONE = -1
#: How long one question to a coordinator may take.
ASK_S = 5
#: How long a coordinator may not know that it was deposed: longer than any fault cuts a node off.
DEPOSED_S = 60


class LostCommit(NamedTuple):
    """What was acknowledged, and the lower offset that is committed."""

    partition: int
    acknowledged: int
    committed: int


def lost_commits(acknowledged: Mapping[int, int], committed: Mapping[int, int]) -> list[LostCommit]:
    """The partitions whose coordinator has forgotten what it had acknowledged before it was asked.

    A higher offset is right: a commit whose answer was lost may have taken effect.
    """
    return [
        LostCommit(partition, acknowledged[partition], offset)
        for partition, offset in committed.items()
        if offset < acknowledged.get(partition, NONE)
    ]


class Group:
    """What the members of a group have read, and which commits its coordinator has acknowledged and lost."""

    def __init__(self) -> None:
        self.seen: set[Place] = set()
        self.lost: list[LostCommit] = []
        self._acknowledged: dict[int, int] = {}
        self._lock = threading.Lock()

    @property
    def acknowledged(self) -> dict[int, int]:
        """The highest offset of each partition that has been acknowledged so far."""
        with self._lock:
            return dict(self._acknowledged)

    def acknowledge(self, offsets: Mapping[int, int]) -> None:
        with self._lock:
            for partition, offset in offsets.items():
                self._acknowledged[partition] = max(offset, self._acknowledged.get(partition, NONE))


class Member:
    """What a member does with its consumer."""

    def __init__(self, consumer: Consumer, group: Group, clock: Callable[[], float] = time.monotonic) -> None:
        self._consumer = consumer
        self._group = group
        self._clock = clock
        #: What the coordinator must know: the commits that were acknowledged before a partition was assigned
        #: to this member, and those of this member since. The member that had the partition before may learn
        #: of its last commit later.
        self._known: dict[int, int] = {}
        self._has_read = False
        #: When a lower offset counts as lost.
        self._certain_at_s = math.inf
        consumer.subscribe([TOPIC], on_assign=self._assigned)

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        acknowledged = self._group.acknowledged
        self._known |= {each.partition: acknowledged.get(each.partition, NONE) for each in partitions}

    def step(self) -> None:
        """Read for a moment, and commit. What is not committed is read again, by this member or another."""
        messages = self._consumer.consume(500, timeout=0.2)
        read = [place_of(message) for message in messages if message.error() is None]
        self._group.seen.update(read)
        self._has_read = self._has_read or bool(read)
        if self._has_read:
            with suppress(KafkaException):
                self._commit()

    def _commit(self) -> None:
        lost = lost_commits(self._known, committed(self._consumer, self._consumer.assignment()))
        if self._may_be_deposed(lost):
            return
        self._group.lost += lost
        self._has_read = False
        answered = offsets_of(self._consumer.commit(asynchronous=False))
        taken = {partition: offset for partition, offset in answered.items() if offset != NONE}
        self._group.acknowledge(taken)
        self._known |= taken

    def _may_be_deposed(self, lost: Collection[LostCommit]) -> bool:
        """Whether the coordinator may be cut off, and not know that another one has taken commits.

        It then answers what was committed before, as Apache Kafka's does, but not that nothing is committed.
        """
        now_s = self._clock()
        self._certain_at_s = min(self._certain_at_s, now_s + DEPOSED_S) if lost else math.inf
        return now_s < self._certain_at_s < math.inf and all(each.committed != NONE for each in lost)


def committed(consumer: Consumer, partitions: list[TopicPartition], patience_s: float = 0) -> dict[int, int]:
    """What is committed of each partition, as the coordinator says; it is asked again for that long.

    Raises:
        KafkaException: it does not say.
    """
    deadline = time.monotonic() + patience_s
    while True:
        try:
            found = consumer.committed(partitions, timeout=ASK_S) if partitions else []
            for each in found:
                if each.error is not None:
                    raise KafkaException(each.error)
            return offsets_of(found)
        except KafkaException:
            if time.monotonic() >= deadline:
                raise
        time.sleep(0.1)


def offsets_of(partitions: Iterable[TopicPartition]) -> dict[int, int]:
    """The offset of each partition without an error; -1 if it has none."""
    return {each.partition: max(each.offset, NONE) for each in partitions if each.error is None}


class GroupReaders:
    """A group of each kind, whose members run in threads."""

    def __init__(self, address: str, users: Users = ANYBODY) -> None:
        self._address = address
        self._users = users
        self.groups = {kind: Group() for kind in KINDS}
        self._stop = threading.Event()
        self._errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(kind,)) for kind in KINDS for _ in range(MEMBERS)
        ]

    def __enter__(self) -> GroupReaders:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def missed(self, acknowledged: Collection[Place], patience_s: float) -> dict[str, list[Place]]:
        """What a group has not read, after it had that long without new records."""
        deadline = time.monotonic() + patience_s
        wanted = set(acknowledged)
        while any(wanted - group.seen for group in self.groups.values()) and time.monotonic() < deadline:
            time.sleep(0.1)
        left = {kind: sorted(wanted - group.seen)[:10] for kind, group in self.groups.items()}
        return {kind: places for kind, places in left.items() if places}

    def forgotten(self) -> dict[str, list[LostCommit]]:
        """Which acknowledged commits a group's coordinator has lost; it is asked once more.

        Raises:
            AssertionError: no commit was acknowledged.
            KafkaException: a coordinator does not answer.
        """
        for kind, group in self.groups.items():
            acknowledged = group.acknowledged
            assert acknowledged, f"no commit of the {kind} group was acknowledged"
            consumer = self._consumer(kind)
            asked = [TopicPartition(TOPIC, partition) for partition in acknowledged]
            group.lost += lost_commits(acknowledged, committed(consumer, asked, PATIENCE_S))
            consumer.close()
        return {kind: group.lost[:10] for kind, group in self.groups.items() if group.lost}

    def _run(self, kind: str) -> None:
        try:
            consumer = self._consumer(kind)
            member = Member(consumer, self.groups[kind])
            while not self._stop.is_set():
                member.step()
            with suppress(KafkaException):
                consumer.close()
        except BaseException as error:
            self._errors.append(error)

    def _consumer(self, kind: str) -> Consumer:
        settings = {"session.timeout.ms": 10_000} if kind == "classic" else {}
        return self._users.consumer(
            "member",
            {
                "bootstrap.servers": self._address,
                "group.id": f"readers-{kind}",
                "group.protocol": kind,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 50,
                **settings,
                **QUIET,
            },
        )
