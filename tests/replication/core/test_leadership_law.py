"""Random histories of a partition with three replicas, at its leader: what holds after every step.

The laws are those of Kafka's own model (hachikuji/kafka-specification): the high watermark never goes back
and, when it moves, every replica that may be in sync has everything below it.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pykafka_broker.machine.step import Start
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.replication.core.events import (
    Event,
    FollowerFetched,
    IsrChangeAnswered,
    IsrProposal,
    TimePassed,
)
from pykafka_broker.replication.core.high_watermark import commits_at_once, high_watermark
from pykafka_broker.replication.core.state import LogOffsets
from pykafka_broker.replication.core.transitions import ReplicationSettings, leadership_of, transition
from tests.replication.leading import LAG_MS, LEADER, NOW_MS, registration

FOLLOWERS = st.sampled_from([2, 3])


class PartitionLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now_ms = NOW_MS
        self.high_watermark = self.on_disk = self.log_end = 0
        #: What each follower really has.
        self.follower_ends = {2: 0, 3: 0}
        self.asked: IsrProposal | None = None

    @initialize(isr=st.sampled_from([(1,), (1, 2), (1, 2, 3)]), min_insync_replicas=st.integers(1, 2))
    def this_node_is_elected(self, isr: tuple[int, ...], min_insync_replicas: int) -> None:
        self.registration = registration(*isr)
        self.settings = ReplicationSettings(min_insync_replicas, LAG_MS)
        self.leadership = leadership_of(None, LEADER, self.registration, self.settings, 0, self.now_ms)

    def offsets(self) -> LogOffsets:
        return LogOffsets(self.high_watermark, self.log_end)

    def commit(self) -> None:
        before, offsets = self.high_watermark, self.offsets()
        self.high_watermark = high_watermark(self.leadership, offsets, self.on_disk, self.now_ms)
        assert self.high_watermark >= before
        if self.high_watermark > before:
            assert self.high_watermark <= self.on_disk
            assert len(self.leadership.isr.committed) >= self.settings.min_insync_replicas
            for replica_id in self.leadership.isr.maximal - {LEADER}:
                assert self.high_watermark <= self.follower_ends[replica_id]

    def happens(self, event: Event) -> None:
        step = transition(self.leadership, event)
        self.leadership = step.state
        for effect in step.effects:
            assert isinstance(effect, Start) and isinstance(effect.work, IsrProposal)
            assert self.asked is None, "one change at a time"
            self.asked = effect.work
        self.commit()

    def led_as(self, changed: bool, **fields: Any) -> None:
        """The metadata log brings another state of the partition."""
        if changed:
            epoch = self.registration.partition_epoch + 1
            self.registration = self.registration._replace(partition_epoch=epoch, **fields)
            self.asked = None
        self.leadership = leadership_of(
            self.leadership, LEADER, self.registration, self.settings, self.log_end, self.now_ms
        )
        self.commit()

    @rule(count=st.integers(1, 50), is_synced=st.booleans())
    def a_producer_writes(self, count: int, is_synced: bool) -> None:
        self.log_end += count
        if is_synced:
            self.on_disk = self.log_end
        self.commit()

    @rule()
    def the_disk_is_synced(self) -> None:
        self.on_disk = self.log_end
        self.commit()

    @rule(replica_id=FOLLOWERS, share=st.floats(0, 1), is_active=st.booleans())
    def a_follower_fetches(self, replica_id: int, share: float, is_active: bool) -> None:
        lacking = self.log_end - self.follower_ends[replica_id]
        self.follower_ends[replica_id] += int(lacking * share)
        end = self.follower_ends[replica_id]
        self.happens(FollowerFetched(self.now_ms, replica_id, end, self.offsets(), is_active=is_active))

    @rule(duration_ms=st.integers(1, 2 * LAG_MS))
    def time_passes(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self.happens(TimePassed(self.now_ms, self.offsets()))

    @precondition(lambda self: self.asked is not None)
    @rule()
    def the_controller_agrees(self) -> None:
        assert self.asked is not None
        self.led_as(True, isr=tuple(replica_id for replica_id, _ in self.asked.new_isr))

    @precondition(lambda self: self.asked is not None)
    @rule()
    def the_controller_refuses(self) -> None:
        asked, self.asked = self.asked, None
        assert asked is not None
        self.happens(IsrChangeAnswered(asked, ErrorCode.INELIGIBLE_REPLICA))

    @rule()
    def metadata_of_something_else_comes(self) -> None:
        before = self.leadership
        self.led_as(False)
        assert self.leadership == before

    @rule()
    def this_node_is_elected_again(self) -> None:
        self.led_as(True, leader_epoch=self.registration.leader_epoch + 1)

    @invariant()
    def the_leader_is_in_sync_and_the_isr_is_assigned(self) -> None:
        isr = self.leadership.isr
        assert LEADER in isr.committed
        assert isr.maximal <= {1, 2, 3}
        assert isr.proposed is None or LEADER in isr.proposed

    @invariant()
    def a_change_is_under_way_exactly_while_one_is_asked_for(self) -> None:
        assert (self.leadership.isr.proposed is None) == (self.asked is None)

    @invariant()
    def what_is_committed_every_replica_that_may_join_has(self) -> None:
        if self.asked is not None:
            for replica_id, _ in self.asked.new_isr:
                if replica_id != LEADER and replica_id not in self.leadership.isr.committed:
                    assert self.follower_ends[replica_id] >= self.high_watermark

    @invariant()
    def a_leader_commits_at_once_only_where_the_rule_would_too(self) -> None:
        if commits_at_once(self.leadership):
            offset = high_watermark(self.leadership, self.offsets(), self.on_disk, self.now_ms)
            assert offset == max(self.on_disk, self.high_watermark)


TestPartitionLife = PartitionLife.TestCase
TestPartitionLife.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
