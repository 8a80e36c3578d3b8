"""The law of every core, for share groups: folding the emitted records from nothing gives the durable part of
the state, whatever was asked in whatever order; and so does loading only the newest record of each key.

With it goes a model of what members may count on, whatever happens.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig, ShareGroupSettings
from pykafka_broker.coordinator.groups.core.events import DeleteGroup, TopicsDeleted
from pykafka_broker.coordinator.groups.core.loading import Loader
from pykafka_broker.coordinator.groups.core.record import Record, encode_record
from pykafka_broker.coordinator.groups.core.records import replay
from pykafka_broker.coordinator.groups.core.share.events import (
    AlterShareOffsets,
    DeleteShareOffsets,
    DeleteShareState,
    InitializeShareState,
    ShareStateDeleted,
    ShareStateInitialized,
)
from pykafka_broker.coordinator.groups.core.share.state import ShareGroup
from pykafka_broker.coordinator.groups.core.topics import TopicInfo
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.records.batch import build_batch
from tests.support.share_groups import ShareWorld

NAMES = ("t", "u")
WHO = st.sampled_from(["a", "b", "c", "d"])
TOPICS = st.sampled_from([("t",), ("u",), ("t", "u"), ("t", "missing")])
ERRORS = st.sampled_from([ErrorCode.NONE, ErrorCode.NONE, ErrorCode.NOT_COORDINATOR])


def kept(group: object) -> object:
    """What survives of a group."""
    assert isinstance(group, ShareGroup)
    return group._replace(refresh_deadline_ms=0, states_written_ms=0, is_settled=False)


class RandomShares(RuleBasedStateMachine):
    """One group, four clients that say anything at any time, and the law after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.world = ShareWorld(
            GroupCoordinatorConfig(
                share_group=ShareGroupSettings(assignment_interval_ms=500), share_group_max_size=3
            )
        )
        #: Sizes and generations of the topics: one that is deleted and made again has another id.
        self.sizes: dict[str, tuple[int, int]] = {"t": (2, 0)}
        self.made = 0
        self.publish()

    def publish(self) -> None:
        self.world.set_topics(
            *(
                TopicInfo(name, (name * 15).encode() + bytes([made]), size)
                for name, (size, made) in self.sizes.items()
            )
        )

    def epoch_of(self, who: str) -> int:
        group = self.world.state.share("g")
        member = group.members.get(who) if group is not None else None
        return member.member_epoch if member is not None else 0

    @rule(who=WHO, topics=TOPICS)
    def join(self, who: str, topics: tuple[str, ...]) -> None:
        self.world.share(who, 0, topics=topics)

    @rule(who=WHO, topics=TOPICS, lag=st.sampled_from([0, 0, 0, 1, -1]))
    def change(self, who: str, topics: tuple[str, ...], lag: int) -> None:
        self.world.share(who, self.epoch_of(who) - lag, topics=topics)

    @rule(who=WHO)
    def beat(self, who: str) -> None:
        self.world.share(who, self.epoch_of(who))

    @rule(who=WHO)
    def leave(self, who: str) -> None:
        self.world.share(who, -1)

    @rule(duration_ms=st.sampled_from([1, 400, 600, 20_000, 31_000, 50_000]))
    def wait(self, duration_ms: int) -> None:
        self.world.advance(duration_ms)

    @rule(name=st.sampled_from(NAMES), size=st.integers(1, 5))
    def grow(self, name: str, size: int) -> None:
        if name not in self.sizes:
            self.made += 1
        before, made = self.sizes.get(name, (0, self.made))
        self.sizes[name] = max(size, before), made
        self.publish()

    @rule(name=st.sampled_from(NAMES))
    def delete_topic(self, name: str) -> None:
        if name in self.sizes:
            topic = self.world.state.topics.topic(name)
            assert topic is not None
            del self.sizes[name]
            self.publish()
            self.world.submit(TopicsDeleted(((name, topic.topic_id),), self.world.now_ms))

    @rule(error=ERRORS, which=st.integers(0, 5))
    def answer(self, error: ErrorCode, which: int) -> None:
        """The share coordinator has done, or refused, some of its work, in any order."""
        if not self.world.asked:
            return
        work = self.world.asked.pop(which % len(self.world.asked))
        if isinstance(work, InitializeShareState):
            done: Any = tuple((key, tuple((p, error, None) for p, _ in said)) for key, said in work.topics)
            self.world.submit(ShareStateInitialized(self.world.now_ms, work, done))
        else:
            assert isinstance(work, DeleteShareState)
            done = tuple((key, tuple((p, error, None) for p in said)) for key, said in work.topics)
            self.world.submit(ShareStateDeleted(self.world.now_ms, work, done))

    @rule(name=st.sampled_from(NAMES), partition=st.integers(0, 5))
    def alter(self, name: str, partition: int) -> None:
        token = self.world.token()
        self.world.submit(AlterShareOffsets(token, self.world.now_ms, "g", ((name, ((partition, 7),)),)))

    @rule(name=st.sampled_from(NAMES))
    def delete_offsets(self, name: str) -> None:
        self.world.submit(DeleteShareOffsets(self.world.token(), self.world.now_ms, "g", (name,)))

    @rule()
    def delete(self) -> None:
        self.world.submit(DeleteGroup(self.world.token(), "g"))

    @rule()
    def move(self) -> None:
        """Another broker takes over; what was asked of the share coordinator is forgotten."""
        self.world = self.world.reload()

    @invariant()
    def the_log_leads_to_the_state(self) -> None:
        records = [(0, *encode_record(record), ()) for record in self.world.log if isinstance(record, Record)]
        batch = build_batch(records) if records else b""
        loader = Loader()
        loader.add(batch)
        state = {name: kept(group) for name, group in self.world.state.groups.items()}
        for read_back in (replay(self.world.log), loader.state()):
            assert {name: kept(group) for name, group in read_back.groups.items()} == state
            assert dict(read_back.consumer_group_ids) == dict(self.world.state.consumer_group_ids)

    @invariant()
    def members_have_what_their_target_says_and_no_more(self) -> None:
        group = self.world.state.share("g")
        if group is None:
            return
        assert len(group.members) <= 3
        assert set(group.targets) <= set(group.members)
        assert group.assignment_epoch <= group.group_epoch
        subscribed = [name for member in group.members.values() for name in member.subscribed_topic_names]
        assert dict(group.name_counts) == {name: subscribed.count(name) for name in subscribed}
        for member in group.members.values():
            assert -1 <= member.previous_member_epoch <= member.member_epoch <= group.assignment_epoch
            assert ("share-session", "g", member.member_id) in self.world.timers

    @invariant()
    def only_partitions_with_states_are_given_out_and_all_of_them(self) -> None:
        group = self.world.state.share("g")
        if group is None or not group.members or group.states is None:
            return
        if not group.is_settled:
            return
        topics = self.world.state.topics
        given: dict[bytes, set[int]] = {}
        for target in group.targets.values():
            for topic_id, partitions in target.items():
                given.setdefault(topic_id, set()).update(partitions)
        for topic_id, named in group.states.initialized.items():
            if topics.topic_by_id(topic_id) is not None and group.is_subscribed_to(named.topic_name):
                assert given.get(topic_id) == set(named.partitions)


TestRandomShares = RandomShares.TestCase
TestRandomShares.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
