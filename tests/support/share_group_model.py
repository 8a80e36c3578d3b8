"""Consumers of a share group that come, go, fall silent and lose answers, topics that change, a share
coordinator that fails and is late, and group coordinators that move: by dice.

After each step the world checks what must always hold, and after a quiet time, in `settle`, what must hold
then.
"""

from __future__ import annotations

import random
from typing import Any

from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig, ShareGroupSettings
from pykafka_broker.coordinator.groups.core.events import DeleteGroup, TopicsDeleted
from pykafka_broker.coordinator.groups.core.records import replay
from pykafka_broker.coordinator.groups.core.share.events import (
    DeletionPurpose,
    InitializeShareState,
    ShareStateDeleted,
    ShareStateInitialized,
)
from pykafka_broker.coordinator.groups.core.share.state import ShareGroup
from pykafka_broker.coordinator.groups.core.topics import TopicInfo
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.share_groups import ShareWorld

NAMES = ("t", "u", "v")
HEARTBEAT_MS = 5_000
SESSION_MS = 45_000
MAX_SIZE = 4


class Consumer:
    """A member as its client sees it."""

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.epoch = 0
        self.topics: tuple[str, ...] = ("t",)
        self.has_said_topics = False
        self.assigned: dict[bytes, set[int]] = {}
        self.is_alive = False


class ShareCluster:
    """One share group and everything around it."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.world = ShareWorld(
            GroupCoordinatorConfig(
                share_group=ShareGroupSettings(SESSION_MS, HEARTBEAT_MS, 500),
                share_group_max_size=MAX_SIZE,
                offsets_retention_check_interval_ms=60_000,
            )
        )
        self.consumers = [Consumer(f"m{number}") for number in range(6)]
        self.sizes: dict[str, tuple[int, int]] = {"t": (1, 0)}
        self.made = 0
        #: Partitions that have a state at the share coordinator: it never forgets one by itself.
        self.states: dict[bytes, set[int]] = {}
        #: Topics that were gone when their states had been made: a group remembers them, as in Apache Kafka.
        self.late: set[bytes] = set()
        #: Topics whose states were deleted with a group that had come to life again meanwhile, and believes
        #: they are there: as in Apache Kafka, nobody tells it.
        self.raced: set[bytes] = set()
        self.has_been_deleted = True
        self.refusals = 0
        self._publish()

    # ---- what may happen ----

    def step(self) -> None:
        """One thing happens, and everything that must always hold is looked at."""
        what, = self.dice.choices(
            [self._join, self._beat, self._change, self._leave, self._fall_silent, self._wait, self._grow,
             self._delete_topic, self._answer, self._lose_work, self._move, self._delete_group, self._zombie],
            [12, 30, 3, 3, 2, 8, 1, 1, 15, 1, 1, 2, 3],
        )  # fmt: skip
        what()
        self.check()

    def _one(self) -> Consumer:
        return self.dice.choice(self.consumers)

    def _join(self) -> None:
        consumer = self._one()
        if not consumer.is_alive:
            consumer.is_alive = True
            consumer.epoch = 0
            self._send(consumer)

    def _beat(self) -> None:
        consumer = self._one()
        if consumer.is_alive:
            self._send(consumer)

    def _change(self) -> None:
        consumer = self._one()
        count = self.dice.randint(1, len(NAMES))
        consumer.topics = tuple(self.dice.sample(NAMES, count))
        consumer.has_said_topics = False

    def _leave(self) -> None:
        consumer = self._one()
        if consumer.is_alive:
            self._leave_with(consumer)

    def _leave_with(self, consumer: Consumer) -> None:
        consumer.is_alive = False
        consumer.assigned = {}
        self.world.beat(consumer.member_id, -1)

    def _fall_silent(self) -> None:
        consumer = self._one()
        consumer.is_alive = False
        consumer.assigned = {}

    def _wait(self) -> None:
        self.world.advance(self.dice.choice([1, 300, 1_000, HEARTBEAT_MS, 31_000, SESSION_MS]))
        self.check_log()

    def _grow(self) -> None:
        name = self.dice.choice(NAMES)
        if name not in self.sizes:
            self.made += 1
        before, made = self.sizes.get(name, (0, self.made))
        self.sizes[name] = before + 1, made
        self._publish()

    def _delete_topic(self) -> None:
        name = self.dice.choice(NAMES)
        if name in self.sizes:
            topic = self.world.state.topics.topic(name)
            assert topic is not None
            del self.sizes[name]
            self._publish()
            self.states.pop(topic.topic_id, None)
            self.world.submit(TopicsDeleted(((name, topic.topic_id),), self.world.now_ms))

    def _publish(self) -> None:
        self.world.set_topics(
            *(
                TopicInfo(name, (name * 15).encode() + bytes([made % 256]), size)
                for name, (size, made) in self.sizes.items()
            )
        )

    def _answer(self) -> None:
        if self.world.asked:
            error = self.dice.choice([ErrorCode.NONE] * 4 + [ErrorCode.COORDINATOR_NOT_AVAILABLE])
            self._do(self.world.asked.pop(self.dice.randrange(len(self.world.asked))), error)

    def _do(self, work: Any, error: ErrorCode) -> None:
        done: Any
        if isinstance(work, InitializeShareState):
            done = tuple((key, tuple((p, error, None) for p, _ in said)) for key, said in work.topics)
            if error is ErrorCode.NONE:
                for key, said in work.topics:
                    if self.world.state.topics.topic_by_id(key) is None:
                        self.late.add(key)
                    else:
                        self.states.setdefault(key, set()).update(p for p, _ in said)
            self.world.submit(ShareStateInitialized(self.world.now_ms, work, done))
        else:
            done = tuple((key, tuple((p, error, None) for p in said)) for key, said in work.topics)
            if error is ErrorCode.NONE:
                for key, said in work.topics:
                    self.states.setdefault(key, set()).difference_update(said)
            # Its deletion may have been asked for long ago.
            self.has_been_deleted |= work.purpose is DeletionPurpose.GROUP and error is ErrorCode.NONE
            before = self.world.state.share("g")
            self.world.submit(ShareStateDeleted(self.world.now_ms, work, done))
            if before is not None and (before.members or error is not ErrorCode.NONE):
                assert self.world.state.share("g") is not None, "members or states are left behind"
            group = self.world.state.share("g")
            if error is ErrorCode.NONE and group is not None and group.states is not None:
                self.raced.update(key for key, _ in work.topics if key in group.states.initialized)

    def _lose_work(self) -> None:
        self.world.asked.clear()

    def _move(self) -> None:
        self.world = self.world.reload()

    def _delete_group(self) -> None:
        if self.dice.random() < 0.5:
            for consumer in self.consumers:
                if consumer.is_alive:
                    self._leave_with(consumer)
            self.world.advance(SESSION_MS)
        before = self.world.state.share("g")
        self.world.submit(DeleteGroup(self.world.token(), "g"))
        if before is not None and before.members:
            assert self.world.state.share("g") == before, "a group with members is deleted"
        self.has_been_deleted = True

    def _zombie(self) -> None:
        """A client with an epoch that was never its own must be fenced."""
        group = self.world.state.share("g")
        for member in group.members.values() if group is not None else ():
            for epoch in (member.member_epoch + 3, member.previous_member_epoch - 1):
                if epoch > 0:
                    refused = self.world.beat(member.member_id, epoch)
                    assert refused.error is ErrorCode.FENCED_MEMBER_EPOCH, (member, epoch)

    def _send(self, consumer: Consumer) -> None:
        names = None if consumer.has_said_topics and consumer.epoch else consumer.topics
        heard = self.world.share(consumer.member_id, consumer.epoch, topics=names)
        if heard.error is ErrorCode.NONE:
            self.has_been_deleted = False
            if self.dice.random() < 0.1:
                # The answer is lost: what was said is said again, all of it, as clients do.
                consumer.has_said_topics = False
                return
            consumer.epoch = heard.member_epoch
            consumer.has_said_topics = True
            if heard.assignment is not None:
                consumer.assigned = {key: set(partitions) for key, partitions in heard.assignment}
        elif heard.error is ErrorCode.GROUP_MAX_SIZE_REACHED:
            self.refusals += 1
            consumer.is_alive = False
        else:
            assert heard.error in (
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.FENCED_MEMBER_EPOCH,
                ErrorCode.GROUP_ID_NOT_FOUND,
            ), heard
            consumer.epoch = 0
            consumer.assigned = {}

    # ---- what must always hold ----

    def check_log(self) -> None:
        """The law: what is read back is what survives."""
        group = self.world.state.share("g")
        assert replay(self.world.log).share("g") == (None if group is None else kept(group))

    def check(self) -> None:
        group = self.world.state.share("g")
        if group is None:
            assert self.has_been_deleted, "a share group goes only when it is deleted"
            return
        assert len(group.members) <= MAX_SIZE
        assert set(group.targets) <= set(group.members)
        for member in group.members.values():
            assert member.member_epoch <= group.assignment_epoch <= group.group_epoch
            assert ("share-session", "g", member.member_id) in self.world.timers
            given = {key for key, partitions in member.assigned.items() if partitions}
            found = map(self.world.state.topics.topic_by_id, given)
            names = {topic.name for topic in found if topic is not None}
            assert names <= member.subscribed_topic_names

    # ---- what must hold when it has been quiet ----

    def settle(self) -> None:
        """Nothing more goes wrong: all that should be given out is, evenly, to those who are there.

        So it is again when topics have grown.
        """
        self._be_quiet(30)
        self._check_quiet()
        for name, (size, made) in self.sizes.items():
            self.sizes[name] = size + 1, made
        self._publish()
        self._be_quiet(10)
        self._check_quiet()
        self.check_log()

    def _be_quiet(self, beats: int) -> None:
        for _ in range(beats):
            self.world.advance(HEARTBEAT_MS)
            for consumer in self.consumers:
                if consumer.is_alive:
                    self._send_for_sure(consumer)
            while self.world.asked:
                self._do(self.world.asked.pop(0), ErrorCode.NONE)
            self.check()

    def _check_quiet(self) -> None:
        group = self.world.state.share("g")
        alive = [consumer for consumer in self.consumers if consumer.is_alive]
        assert {consumer.member_id for consumer in alive} == set(group.members if group is not None else ())
        for consumer in alive:
            assert group is not None
            member = group.members[consumer.member_id]
            assert consumer.epoch == member.member_epoch == group.assignment_epoch == group.group_epoch
            assert consumer.assigned == {key: set(partitions) for key, partitions in member.assigned.items()}
            assert member.subscribed_topic_names == set(consumer.topics)
        if group is not None and alive:
            self._check_shares(group, alive)

    def _send_for_sure(self, consumer: Consumer) -> None:
        steady, self.dice = self.dice, random.Random(0)
        self.dice.random = lambda: 1.0  # type: ignore[method-assign]
        self._send(consumer)
        self.dice = steady

    def _check_shares(self, group: ShareGroup, alive: list[Consumer]) -> None:
        states = group.states
        for name, (size, _) in self.sizes.items():
            topic = self.world.state.topics.topic(name)
            assert topic is not None
            readers = [consumer for consumer in alive if name in consumer.topics]
            if not readers:
                continue
            assert states is not None
            assert set(states.initialized[topic.topic_id].partitions) == set(range(size)), name
            assert topic.topic_id not in states.initializing
            has_states = self.states.get(topic.topic_id, set()) >= set(range(size))
            assert has_states or topic.topic_id in self.raced, "no state was made for a partition"
            counts = [0] * size
            for consumer in readers:
                for partition in consumer.assigned.get(topic.topic_id, ()):
                    counts[partition] += 1
            assert min(counts) >= 1, (name, counts)
            shares = [len(consumer.assigned.get(topic.topic_id, ())) for consumer in readers]
            if all(set(consumer.topics) == set(alive[0].topics) for consumer in alive):
                continue  # then all topics are shared out together
            assert max(shares) - min(shares) <= 1, (name, shares)
        if states is not None:
            gone = [
                key
                for key in (*states.initialized, *states.initializing, *states.deleting)
                if self.world.state.topics.topic_by_id(key) is None and key not in self.late
            ]
            assert not gone, "a deleted topic is remembered"
        if len({consumer.topics for consumer in alive}) == 1:
            totals = [sum(map(len, consumer.assigned.values())) for consumer in alive]
            assert max(totals) - min(totals) <= 1, totals
            assert min(totals) > 0 or not set(alive[0].topics) & set(self.sizes), "a member has nothing to do"


def kept(group: ShareGroup) -> ShareGroup:
    """What survives of a group."""
    return group._replace(refresh_deadline_ms=0, states_written_ms=0, is_settled=False)
