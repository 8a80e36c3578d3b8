"""The law of every core: folding the emitted records from nothing gives the durable part of the state.

For groups the durable part is the last stable or empty generation, for offsets it is all of them. Every
record passes through its bytes on the way.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Phase, Protocol
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.loading import Loader
from pykafka_broker.coordinator.groups.core.record import Record, encode_record
from pykafka_broker.coordinator.groups.core.records import replay
from pykafka_broker.protocol.messages.records.group import GroupMetadataKey
from pykafka_broker.protocol.records.batch import BatchFields, build_batch
from tests.support.groups import GroupWorld, check_books, durable, plain, subscription
from tests.support.members import Member

GROUPS = st.sampled_from(["g", "h"])
PARTITIONS = st.dictionaries(
    st.tuples(st.sampled_from(["t", "u"]), st.integers(0, 2)), st.integers(-1, 100), max_size=4
)
OFFERS = st.sampled_from(
    [
        (Protocol("range", subscription("t")),),
        (Protocol("range", subscription("t", "u")), Protocol("sticky", b"\0")),
        (Protocol("sticky", b"\0"), Protocol("range", subscription())),
    ]
)
#: Which of the members that ever were is meant, as an index into their list.
WHO = st.integers(0, 7)


class RandomGroups(RuleBasedStateMachine):
    """Two groups, a handful of clients that do anything at any time, and the law after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.world = GroupWorld(
            GroupCoordinatorConfig(offsets_retention_ms=120_000, offsets_retention_check_interval_ms=30_000)
        )
        self.world.submit(events.Loaded(self.world.now_ms))
        self.names: list[str] = [""]
        #: The groups as they were when their newest record was written.
        self.written: dict[str, ClassicGroup] = {}
        self.seen = 0

    def name(self, who: int) -> str:
        return self.names[who % len(self.names)]

    def learn(self) -> None:
        """Remember new member ids, and what the records just written say should now be durable."""
        for group in self.world.state.groups.values():
            assert isinstance(group, ClassicGroup)
            for member_id in (*group.members, *sorted(group.pending_members)):
                if member_id not in self.names:
                    self.names = [*self.names[-7:], member_id]
        for record in self.world.log[self.seen :]:
            if isinstance(record, Record) and isinstance(record.key, GroupMetadataKey):
                self.note(record)
        self.seen = len(self.world.log)

    def note(self, record: Record) -> None:
        assert isinstance(record.key, GroupMetadataKey)
        group = self.world.state.classic(record.key.group)
        if record.value is None:
            self.written.pop(record.key.group, None)
        elif group is not None and group.phase in (Phase.STABLE, Phase.EMPTY) and group.generation:
            self.written[record.key.group] = durable(group)

    @rule(
        group=GROUPS,
        who=WHO,
        offer=OFFERS,
        version=st.sampled_from([0, 3, 4, 9]),
        static=st.sampled_from([None, "a", "b"]),
    )
    def join(
        self, group: str, who: int, offer: tuple[Protocol, ...], version: int, static: str | None
    ) -> None:
        self.world.join(group, self.name(who), version=version, protocols=offer, instance=static)
        self.learn()

    @rule(group=GROUPS, who=WHO, static=st.sampled_from([None, "a", "b"]), lag=st.integers(0, 1))
    def sync(self, group: str, who: int, static: str | None, lag: int) -> None:
        known = self.world.state.classic(group)
        assignments = {name: name.encode() for name in known.members} if known else {}
        generation = known.generation - lag if known else 0
        self.world.sync(self.name(who), generation, assignments, group_id=group, instance=static)
        self.learn()

    @rule(group=GROUPS)
    def every_member_syncs(self, group: str) -> None:
        known = self.world.state.classic(group)
        for member_id in known.members if known else ():
            self.world.sync(member_id, known.generation if known else 0, {}, group_id=group)
        self.learn()

    @rule(group=GROUPS, who=WHO)
    def heartbeat(self, group: str, who: int) -> None:
        known = self.world.state.classic(group)
        self.world.heartbeat(self.name(who), known.generation if known else 0, group_id=group)

    @rule(group=GROUPS, who=WHO)
    def leave(self, group: str, who: int) -> None:
        self.world.leave(self.name(who), group_id=group)
        self.learn()

    @rule(group=GROUPS, who=WHO, offsets=PARTITIONS, retention=st.sampled_from([-1, 40_000]))
    def commit(self, group: str, who: int, offsets: dict[tuple[str, int], int], retention: int) -> None:
        known = self.world.state.classic(group)
        member = self.name(who)
        self.world.commit(
            offsets,
            Member(member, known.generation if known and member else -1),
            group_id=group,
            retention_ms=retention,
        )
        self.learn()

    @rule(group=GROUPS, partition=st.integers(0, 2))
    def delete_offsets(self, group: str, partition: int) -> None:
        self.world.ask(events.DeleteOffsets, group, (events.TopicPartitions("u", (partition,)),))
        self.learn()

    @rule(group=GROUPS)
    def delete_group(self, group: str) -> None:
        self.world.ask(events.DeleteGroup, group)
        self.learn()

    @rule()
    def delete_topic(self) -> None:
        self.world.submit(events.TopicsDeleted((("t", bytes(16)),)))

    @rule(duration_ms=st.sampled_from([0, 1_000, 5_000, 10_000, 60_000, 200_000]))
    def time_passes(self, duration_ms: int) -> None:
        until_ms = self.world.now_ms + duration_ms
        while self.world.timers and min(self.world.timers.values()) <= until_ms:
            self.world.fire(min(self.world.timers, key=self.world.timers.__getitem__))
            self.learn()
        self.world.now_ms = until_ms

    @invariant()
    def the_log_leads_to_the_durable_part_of_the_state(self) -> None:
        replayed = replay(self.world.log)
        assert replayed.offsets == self.world.state.offsets
        assert replayed.offset_counts == self.world.state.offset_counts
        for group_id, group in self.written.items():
            assert replayed.groups[group_id] == group

    @invariant()
    def a_group_keeps_its_books(self) -> None:
        for group in self.world.state.groups.values():
            assert isinstance(group, ClassicGroup)
            check_books(group)


RandomGroups.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestRandomGroups = RandomGroups.TestCase


@given(st.lists(st.tuples(GROUPS, PARTITIONS), max_size=20), st.integers(1, 5))
def test_the_loader_agrees_with_replaying_record_by_record(
    commits: list[tuple[str, dict[tuple[str, int], int]]], batch_size: int
) -> None:
    world = GroupWorld()
    for group, offsets in commits:
        world.commit(offsets, group_id=group)
    world.ask(events.DeleteGroup, "h")

    loader = Loader()
    for at in range(0, len(world.log), batch_size):
        records = [(0, *encode_record(plain(record)), ()) for record in world.log[at : at + batch_size]]
        loader.add(build_batch(records, BatchFields(base_offset=at)))

    assert loader.state() == replay(world.log)
    assert loader.end_offset == len(world.log)
