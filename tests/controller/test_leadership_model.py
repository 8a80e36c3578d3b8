"""Brokers come, crash and go, leaders shrink and grow their in-sync sets, partitions move: no record is lost.

Random lives of a small cluster, each from a seed, beside a model that knows which replicas hold every record
that may have been acknowledged. Without unclean elections no other replica may ever lead, unless it is
marked as recovering.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest

from pykafka_broker.cluster.features import ELR_VERSION
from pykafka_broker.cluster.image import (
    NO_LEADER,
    ClusterImage,
    LeaderRecoveryState,
    PartitionRegistration,
    ResourceType,
    replay,
)
from pykafka_broker.cluster.snapshot import snapshot_records
from pykafka_broker.controller.core import events as e
from pykafka_broker.controller.core.brokers import activate
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records import metadata as m
from tests.controller.deciding import (
    NOW_MS,
    a_cluster,
    decide,
    directory,
    heartbeat,
    isr_change,
    registration,
    uuid,
)

BROKERS = (1, 2, 3, 4, 17)
DIRECTORIES = {broker: (directory(broker), uuid(5_000 + broker)) for broker in BROKERS}
TOPICS = ("a", "b")
SEEDS = 30 * int(os.environ.get("TORTURE_ROUNDS", "1"))
EVENTS = 150

UNCLEAN, MIN_ISR = "unclean.leader.election.enable", "min.insync.replicas"


class Life:
    """One random life: `happen` does something, and everything that must hold is checked after it."""

    ACCEPTED = (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED)

    def __init__(self, seed: int, *, elr: bool, unclean: bool) -> None:
        self.random = Random(seed)
        self.elr, self.unclean = elr, unclean
        self.now_ms = NOW_MS
        self.ids = 10_000
        self.state = a_cluster(node_id=9)
        self.start = self.state.image
        if not elr:
            self.log: list[object] = [m.FeatureLevelRecord(name=ELR_VERSION, feature_level=0)]
            offset = self.state.next_offset
            self.state = self.state._replace(image=replay(self.state.image, self.log, offset=offset, epoch=1))
        else:
            self.log = []
        #: The replicas that hold every record which may have been acknowledged.
        self.complete: dict[tuple[str, int], set[int]] = {}
        self.unclean_elections = 0
        #: Brokers that have said they stop: they say so until they start again.
        self.stopping: set[int] = set()
        for broker in BROKERS:
            self.a_broker_starts(broker)
            self.submit(heartbeat(self.state, broker))
        configs = ((UNCLEAN, "true" if unclean else "false"),)
        for name, min_isr in zip(TOPICS, ("1", "2"), strict=True):
            factor = self.random.randint(1, 4)
            assignments = tuple((index, tuple(self.random.sample(BROKERS, factor))) for index in range(2))
            topic = e.NewTopic(
                name, self.fresh(), assignments=assignments, configs=(*configs, (MIN_ISR, min_isr))
            )
            self.submit(e.CreateTopics((topic,)))
        assert len(self.complete) == 4

    # -- what happens ---------------------------------------------------------------------------------

    def happen(self) -> None:
        kinds = (
            (self.a_broker_says_something, 8),
            (self.a_broker_restarts, 3),
            (self.a_leader_changes_its_isr, 8),
            (self.a_reassignment, 3),
            (self.an_election, 3),
            (self.time_passes, 3),
            (self.a_directory_fails_or_is_said, 2),
            (self.min_isr_changes, 1),
            (self.a_broker_is_forgotten, 1),
            (self.another_controller_takes_over, 1),
        )
        [kind] = self.random.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])
        kind()

    def a_broker_starts(self, broker: int) -> None:
        known = self.state.image.brokers.get(broker)
        clean = known is not None and self.random.random() < 0.5
        answer = self.submit(
            registration(
                broker,
                incarnation_id=self.fresh(),
                previous_broker_epoch=known.epoch if clean and known else -1,
                directories=DIRECTORIES[broker],
                rack=self.random.choice([None, "x"]),
            ),
            crashed=None if clean else broker,
        )
        if not isinstance(answer, e.EventError):
            self.stopping.discard(broker)

    def a_broker_restarts(self) -> None:
        self.now_ms += 9_001 if self.random.random() < 0.5 else 0
        self.a_broker_starts(self.random.choice(BROKERS))

    def a_broker_says_something(self) -> None:
        broker = self.random.choice(BROKERS)
        if broker not in self.state.image.brokers:
            return
        if self.random.random() < 0.1:
            self.stopping.add(broker)
        behind = self.random.random() < 0.2
        beat = heartbeat(
            self.state,
            broker,
            want_fence=self.random.random() < 0.2,
            want_shutdown=broker in self.stopping,
        )
        offset = self.random.randint(-1, self.state.image.offset) if behind else self.state.image.offset
        self.submit(beat._replace(metadata_offset=offset))

    def a_leader_changes_its_isr(self) -> None:
        name, index, partition = self.some_partition()
        asks = partition.leader
        if asks == NO_LEADER:
            return
        if self.random.random() < 0.1:
            asks = self.random.choice(sorted(self.state.image.brokers))
        isr = {broker for broker in partition.replicas if self.random.random() < 0.7} | {partition.leader}
        if self.random.random() < 0.1:
            isr ^= {self.random.choice(BROKERS)}
        recovery = partition.leader_recovery_state if self.random.random() < 0.3 else 0
        change = isr_change(
            self.state,
            name,
            index,
            isr=self.random.sample(sorted(isr), len(isr)),
            leader_recovery_state=recovery,
        )
        if self.random.random() < 0.1:
            change = change._replace(leader_epoch=change.leader_epoch + self.random.choice([-1, 1]))
        if self.random.random() < 0.1:
            change = change._replace(partition_epoch=change.partition_epoch + self.random.choice([-1, 1]))
        epoch = self.state.image.brokers[asks].epoch
        may = (
            (asks, change.leader_epoch, change.partition_epoch)
            == (partition.leader, partition.leader_epoch, partition.partition_epoch)
            and partition.leader in isr <= set(partition.replicas)
            and all(self.state.is_active(broker) for broker in isr)
        )
        [result] = self.submit(e.AlterPartition(asks, epoch, (change,)))
        assert may or result.error not in self.ACCEPTED, (may, change, result)

    def a_reassignment(self) -> None:
        name, index, _ = self.some_partition()
        wanted = None
        if self.random.random() < 0.8:
            wanted = tuple(self.random.sample(BROKERS, self.random.randint(1, 4)))
        wish = e.TopicReassignment(name, (e.NewReplicas(index, wanted),))
        self.submit(e.AlterPartitionReassignments((wish,), self.random.random() < 0.7))

    def an_election(self) -> None:
        name, index, _ = self.some_partition()
        asked = self.random.choice([None, (e.TopicPartitions(name, (index, index)),)])
        unclean = self.unclean and self.random.random() < 0.5
        events: list[e.Event] = [
            e.ElectLeaders(e.ElectionType.UNCLEAN if unclean else e.ElectionType.PREFERRED, asked),
            e.BalanceLeaders(),
            e.ElectUncleanLeaders(),
        ]
        self.submit(self.random.choice(events))

    def time_passes(self) -> None:
        self.now_ms += self.random.randint(0, 10_000)
        before = [b.broker_id for b in self.state.image.brokers.values() if not b.fenced]
        self.submit(e.ExpireSessions())
        after = [b.broker_id for b in self.state.image.brokers.values() if not b.fenced]
        assert len(before) - len(after) <= 1, "one broker at a time"

    def a_directory_fails_or_is_said(self) -> None:
        name, index, partition = self.some_partition()
        broker = self.random.choice(partition.replicas)
        known = self.state.image.brokers.get(broker)
        if known is None:
            return
        chosen = self.random.choice(DIRECTORIES[broker])
        if self.random.random() < 0.3 and len(known.directories) > 1:
            beat = heartbeat(self.state, broker, offline_directories=(chosen,))
            self.submit(beat._replace(want_shutdown=broker in self.stopping))
        else:
            said = e.DirectoryAssignment(self.state.image.topics[name].topic_id, index, chosen)
            self.submit(e.AssignReplicasToDirs(broker, known.epoch, (said,)))

    def min_isr_changes(self) -> None:
        change = (MIN_ISR, e.ConfigOperation.SET, str(self.random.randint(1, 3)))
        name = self.random.choice(TOPICS)
        self.submit(
            e.IncrementalAlterConfigs((e.ConfigChange(ResourceType.TOPIC, name, (change,)),)),
            config_changed=True,
        )

    def a_broker_is_forgotten(self) -> None:
        fenced = [b.broker_id for b in self.state.image.brokers.values() if b.fenced]
        if fenced:
            self.submit(e.UnregisterBroker(self.random.choice(fenced)))

    def another_controller_takes_over(self) -> None:
        self.state = activate(self.state, self.now_ms)

    # -- what must hold -------------------------------------------------------------------------------

    def submit(self, event: e.Event, *, crashed: int | None = None, config_changed: bool = False) -> Any:
        before = self.state.image
        self.state, records, answer = decide(self.state, event, self.now_ms)
        self.log += records
        if isinstance(answer, e.EventError):
            assert not records and answer.error is not ErrorCode.UNKNOWN_SERVER_ERROR
            return answer
        if isinstance(event, e.AlterPartition) and answer[0].error in self.ACCEPTED:
            # Those whom their leader takes for in sync have everything.
            [change] = event.changes
            name = before.topic_names[change.topic_id]
            self.complete[name, change.partition] |= {member.broker_id for member in change.isr}
        if crashed is not None and self.elr:
            for holders in self.complete.values():
                holders.discard(crashed)
        for name, topic in self.state.image.topics.items():
            for index, partition in topic.partitions.items():
                old = before.partition(name, index)
                if old is not partition or config_changed:
                    self.check(name, old, partition)
                    if old is not None and not isinstance(event, e.AlterPartitionReassignments):
                        self.check_reassignment(old, partition)
        if self.random.random() < 0.05:
            self.check_replay()
        return answer

    def check(self, name: str, old: PartitionRegistration | None, new: PartitionRegistration) -> None:
        replicas, isr, elr = set(new.replicas), set(new.isr), set(new.elr)
        assert len(replicas) == len(new.replicas) and len(isr) == len(new.isr) and len(elr) == len(new.elr)
        assert isr <= replicas and elr <= replicas and not isr & elr
        assert set(new.last_known_elr) <= replicas and len(new.last_known_elr) <= 1
        assert set(new.adding) <= replicas and set(new.removing) <= replicas
        assert len(new.directories) == len(new.replicas)
        assert not elr or self.elr
        assert isr or self.elr, "without eligible replicas somebody stays in sync"
        if new.leader == NO_LEADER:
            assert not any(self.can_lead(new, replica) for replica in new.isr)
            assert isr or not any(self.can_lead(new, replica) for replica in new.elr)
        else:
            assert new.leader in isr and self.can_lead(new, new.leader)
            assert not new.last_known_elr
        key = (name, new.partition_id)
        if old is not None:
            assert new.partition_epoch >= old.partition_epoch and new.leader_epoch >= old.leader_epoch
            if new != old:
                assert new.partition_epoch > old.partition_epoch
            if new.leader != old.leader or not set(old.replicas) <= replicas:
                assert new.leader_epoch > old.leader_epoch
        self.check_records(key, old, new)

    def check_reassignment(self, old: PartitionRegistration, new: PartitionRegistration) -> None:
        """It is over when the new replicas are in sync, and not before."""
        kept = set(new.replicas) - set(new.removing)
        if not old.adding and not old.removing:
            assert (new.replicas, new.adding, new.removing) == (old.replicas, (), ())
        elif not new.adding and not new.removing:
            assert set(new.replicas) == set(old.replicas) - set(old.removing)
            # An unclean election at its end empties the in-sync set again.
            assert self.unclean or set(old.adding) <= set(new.isr)
        elif old.isr != new.isr and old.leader_epoch == new.leader_epoch:
            # An election that brings the last one in ends the reassignment with the next change.
            assert not kept <= set(new.isr)

    def check_records(
        self, key: tuple[str, int], old: PartitionRegistration | None, new: PartitionRegistration
    ) -> None:
        """Who lacks acknowledged records leads only if it is marked, or unclean elections are allowed."""
        holders = self.complete.setdefault(key, set(new.isr))
        was_recovering = old is not None and old.leader_recovery_state == LeaderRecoveryState.RECOVERING
        if new.leader not in (NO_LEADER, *holders):
            marked = new.leader_recovery_state == LeaderRecoveryState.RECOVERING
            last_known = old is not None and new.leader in old.last_known_elr
            assert self.unclean or (marked and (last_known or was_recovering)), (key, holders, old, new)
            self.unclean_elections += 1
            holders.clear()
        if new.leader != NO_LEADER:
            holders |= set(new.isr)
        if new.leader == NO_LEADER:
            return
        configured = int(self.state.topic_config(key[0], MIN_ISR) or 1)
        if not self.elr or len(new.isr) >= min(configured, len(new.replicas)):
            # The leader acknowledges records that only these have.
            holders &= set(new.isr)

    def can_lead(self, partition: PartitionRegistration, replica: int) -> bool:
        broker = self.state.image.brokers.get(replica)
        if broker is None or not broker.active:
            return False
        place = partition.directories[partition.replicas.index(replica)]
        return place in (*broker.directories, uuid(0), uuid(1))

    def check_replay(self) -> None:
        image = self.state.image
        assert replay(self.start, self.log, offset=self.start.offset + 1, epoch=1) == image
        copy = replay(ClusterImage(image.cluster_id), snapshot_records(image), offset=0, epoch=1)
        assert (copy.topics, copy.configs, copy.features) == (image.topics, image.configs, image.features)

    # -- chance ---------------------------------------------------------------------------------------

    def some_partition(self) -> tuple[str, int, PartitionRegistration]:
        name = self.random.choice(TOPICS)
        index = self.random.randint(0, 1)
        return name, index, self.state.image.topics[name].partitions[index]

    def fresh(self) -> bytes:
        self.ids += 1
        return uuid(self.ids)


@pytest.mark.parametrize("elr", [True, False], ids=["elr", "no-elr"])
@pytest.mark.parametrize("unclean", [False, True], ids=["clean", "unclean"])
def test_whatever_happens_a_leader_has_every_acknowledged_record(elr: bool, unclean: bool) -> None:
    elections = 0
    for seed in range(SEEDS):
        life = Life(seed, elr=elr, unclean=unclean)
        for number in range(EVENTS):
            try:
                life.happen()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, event {number}: {error}") from error
        life.check_replay()
        elections += life.unclean_elections
    assert (elections > 0) is (unclean or elr), "the model sees unclean elections where there are some"
