"""The law of every core, for consumer groups: folding the emitted records from nothing gives the durable part
of the state, whatever was asked in whatever order; and so does loading only the newest record of each key.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Phase, Protocol
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.consumer.state import ConsumerGroup
from pykafka_broker.coordinator.groups.core.loading import Loader
from pykafka_broker.coordinator.groups.core.record import encode_record
from pykafka_broker.coordinator.groups.core.records import replay
from pykafka_broker.coordinator.groups.core.state import Group
from pykafka_broker.coordinator.groups.core.topics import TopicInfo
from pykafka_broker.protocol.records.batch import build_batch
from tests.support.groups import GroupWorld, MemberMetadata, durable, plain, subscription
from tests.support.members import Member

NAMES = ("t", "u")
IDS = {"t": b"t" * 16, "u": b"u" * 16}
WHO = st.sampled_from(["a", "b", "c"])
INSTANCE = st.sampled_from([None, None, "pod-1", "pod-2"])
TOPICS = st.sampled_from([None, (), ("t",), ("u",), ("t", "u")])
REGEX = st.sampled_from([None, "", "t.*", ".*"])


def kept(group: Group) -> Group | None:
    """What survives of a group; None for a classic one in the middle of something."""
    if isinstance(group, ConsumerGroup):
        return group._replace(refresh_deadline_ms=0, is_resolving=False, expected_to_join=frozenset())
    assert isinstance(group, ClassicGroup)
    return durable(group) if group.phase in (Phase.STABLE, Phase.EMPTY) and group.generation else None


class RandomConsumers(RuleBasedStateMachine):
    """One group, three clients that say anything at any time, and the law after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.world = GroupWorld(GroupCoordinatorConfig(group_initial_rebalance_delay_ms=0))
        self.sizes = {"t": 2}
        self.publish()

    def publish(self) -> None:
        self.world.set_topics(*(TopicInfo(name, IDS[name], size) for name, size in self.sizes.items()))

    def epoch_of(self, who: str) -> int:
        group = self.world.state.consumer("g")
        member = group.members.get(who) if group is not None else None
        return member.member_epoch if member is not None else 0

    @rule(who=WHO, instance=INSTANCE, topics=TOPICS, regex=REGEX, assignor=st.sampled_from([None, "range"]))
    def join(self, who: str, instance: str | None, **said: Any) -> None:
        joining = MemberMetadata(**said, rebalance_timeout_ms=5_000)
        self.world.consumer(who, 0, joining, instance=instance, owned={})

    @rule(who=WHO, instance=INSTANCE, topics=TOPICS, regex=REGEX, lag=st.sampled_from([0, 0, 0, 1]))
    def change(self, who: str, lag: int, instance: str | None, **said: Any) -> None:
        self.world.consumer(who, self.epoch_of(who) - lag, MemberMetadata(**said), instance=instance)

    @rule(who=WHO, instance=INSTANCE, owns=st.booleans())
    def beat(self, who: str, instance: str | None, owns: bool) -> None:
        group = self.world.state.consumer("g")
        member = group.members.get(who) if group is not None else None
        owned = dict(member.assigned) if member is not None and owns else {}
        self.world.consumer(who, self.epoch_of(who), instance=instance, owned=owned)

    @rule(who=WHO, instance=INSTANCE, epoch=st.sampled_from([-1, -2]))
    def leave(self, who: str, instance: str | None, epoch: int) -> None:
        self.world.consumer(who, epoch, instance=instance)

    @rule(who=WHO, instance=INSTANCE, topic=st.sampled_from(NAMES))
    def join_classic(self, who: str, instance: str | None, topic: str) -> None:
        known = self.world.state.groups.get("g")
        member = who if known is not None and who in known.members else ""
        offered = (Protocol("range", subscription(topic)),)
        self.world.join("g", member, version=3, protocols=offered, instance=instance)

    @rule(who=st.integers(0, 3))
    def sync(self, who: int) -> None:
        group = self.world.state.groups.get("g")
        if group is not None and group.members:
            member = sorted(group.members)[who % len(group.members)]
            epoch = group.generation if isinstance(group, ClassicGroup) else self.epoch_of(member)
            self.world.sync(member, epoch, {})

    @rule(who=WHO)
    def commit(self, who: str) -> None:
        self.world.commit({("t", 0): 1}, Member(who, self.epoch_of(who)), version=9, topic_id=IDS["t"])

    @rule(name=st.sampled_from(NAMES), size=st.integers(0, 4))
    def change_topic(self, name: str, size: int) -> None:
        self.sizes[name] = max(size, self.sizes.get(name, 0)) if size else 0
        if not size:
            del self.sizes[name]
        self.publish()

    @rule()
    def resolve(self) -> None:
        self.world.resolve_regexes()

    @rule()
    def delete(self) -> None:
        self.world.ask(events.DeleteGroup, "g")

    @rule(duration_ms=st.sampled_from([0, 1_000, 10_001, 50_000]))
    def time_passes(self, duration_ms: int) -> None:
        self.world.advance(duration_ms)

    @invariant()
    def the_log_leads_to_the_durable_part_of_the_state(self) -> None:
        group = self.world.state.groups.get("g")
        wanted = kept(group) if group is not None else None
        for read in (replay(self.world.log), self.loaded()):
            assert read.offsets == self.world.state.offsets
            if group is None:
                assert "g" not in read.groups or read.groups["g"] == ClassicGroup("g")
            elif wanted is not None:
                assert read.groups["g"] == wanted

    def loaded(self) -> Any:
        loader = Loader()
        if self.world.log:
            loader.add(build_batch([(0, *encode_record(plain(record)), ()) for record in self.world.log]))
        return loader.state()


RandomConsumers.TestCase.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
TestRandomConsumers = RandomConsumers.TestCase
