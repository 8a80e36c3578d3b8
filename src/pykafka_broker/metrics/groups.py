"""Families of the coordinators: groups and their lags, as in the Kafka exporter, and transactional ids.

A coordinator knows where a partition ends if this node has a replica of it: its high watermark there. Offsets
that Spark's progress listener commits are those of a group without members.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from pykafka_broker.coordinator.coordinator_topic import CoordinatorTopic
from pykafka_broker.coordinator.coordinators import Coordinators
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup
from pykafka_broker.coordinator.groups.core.consumer.state import ConsumerGroup
from pykafka_broker.coordinator.groups.core.share.state import ShareGroup
from pykafka_broker.coordinator.groups.core.state import Group
from pykafka_broker.coordinator.groups.counts import Counts
from pykafka_broker.coordinator.groups.service import GroupShard
from pykafka_broker.coordinator.transactions.core.state import TransactionState
from pykafka_broker.metrics.family import Family, Pausing, Sample, labelled
from pykafka_broker.metrics.node_parts import BrokerParts, NodeParts, Scrape

#: Offsets and groups that are looked at before the event loop runs other work.
OFFSETS_PER_SLICE = 200
GROUPS_PER_SLICE = 200


def _shards(broker: BrokerParts) -> list[GroupShard]:
    shards = broker.coordinators.groups.shards
    return [shards.shard_of(partition) for partition in shards.loaded_partitions]


class _Tally:
    """The groups coordinated here, by their kind and state."""

    def __init__(self, node: NodeParts) -> None:
        self._node = node
        self.is_complete = False
        self.offsets = 0
        self.by_kind: Counter[str] = Counter()
        #: Those of each kind, by state.
        self.classic: Counter[str] = Counter()
        self.consumer: Counter[str] = Counter()
        self.share: Counter[str] = Counter()
        self.streams: Counter[str] = Counter()
        self.members: list[tuple[str, int]] = []

    def count(self) -> Pausing:
        if self.is_complete or self._node.broker is None:
            return
        for shard in _shards(self._node.broker):
            self.offsets += sum([len(offsets) for offsets in shard.state.offsets.values()])
            for index, group in enumerate(list(shard.state.groups.values()), 1):
                self._count(group)
                if index % GROUPS_PER_SLICE == 0:
                    yield None
        self.is_complete = True

    def _count(self, group: Group) -> None:
        self.members.append((group.group_id, len(group.members)))
        if isinstance(group, ClassicGroup):
            self.by_kind["classic"] += 1
            self.classic[group.phase.value] += 1
        elif isinstance(group, ConsumerGroup):
            self.by_kind["consumer"] += 1
            self.consumer[group.state.value] += 1
        elif isinstance(group, ShareGroup):
            self.by_kind["share"] += 1
            self.share[group.state.value] += 1
        else:
            self.by_kind["streams"] += 1
            self.streams[group.state.value] += 1


def _tallied(
    name: str, labels: str, meaning: str, bean: str, samples: Callable[[_Tally], Iterator[Any]]
) -> Family:
    def read(scrape: Scrape) -> Pausing:
        if scrape.node.broker is not None:
            tally = scrape.once(_Tally)
            yield from tally.count()
            yield from samples(tally)

    return Family(name, "gauge", labels, meaning, bean, read)


def _phase(name: str, phase: str) -> Family:
    return _tallied(
        f"kafka_coordinator_group_groupmetadatamanager_{name.lower()}",
        "",
        f"Classic groups in the state {phase}.",
        f"kafka.coordinator.group:type=GroupMetadataManager,name={name}",
        lambda tally: iter([("", tally.classic[phase])]),
    )


def _in_states(kind: str, states: tuple[str, ...], counted: Callable[[_Tally], Counter[str]]) -> Family:
    return _tallied(
        f"kafka_server_group_coordinator_metrics_{kind}_group_count",
        "state",
        f"{kind.capitalize()} groups in each state; none is Dead, because such a group is gone.",
        f"kafka.server:type=group-coordinator-metrics,state=*, {kind}-group-count",
        lambda tally: ((labelled(state=state), counted(tally)[state]) for state in states),
    )


def _counted(name: str, meaning: str, value: Callable[[Counts], int]) -> Family:
    def read(scrape: Scrape) -> Iterator[Sample]:
        if scrape.node.broker is not None:
            yield "", value(scrape.node.broker.coordinators.groups.counts)

    return Family(
        f"kafka_server_group_coordinator_metrics_{name.replace('-', '_')}",
        "untyped",
        "",
        f"{meaning}, since the start.",
        f"kafka.server:type=group-coordinator-metrics, {name}",
        read,
    )


def _rebalances(kind: str) -> Family:
    return _counted(
        f"{kind}-group-rebalance-count",
        f"New epochs of {kind} groups, without those that begin because a member has gone",
        lambda counts: counts.rebalances[kind],
    )


def _offsets(value: Callable[[int, int | None], int | None], *, is_sum: bool) -> Callable[[Scrape], Pausing]:
    """Reads a value of each committed offset, and of the end of its partition if that is known here."""

    def read(scrape: Scrape) -> Pausing:
        broker = scrape.node.broker
        if broker is None:
            return
        hosted = broker.replicas.hosted
        read_so_far = 0
        for shard in _shards(broker):
            for group_id in list(shard.state.offsets):
                sums: dict[str, int] = {}
                for (topic, index), committed in list((shard.state.offsets.get(group_id) or {}).items()):
                    partition = hosted(topic, index)
                    found = value(
                        committed.offset, None if partition is None else partition.log.state.high_watermark
                    )
                    read_so_far += 1
                    if is_sum and read_so_far % OFFSETS_PER_SLICE == 0:
                        yield None
                    if found is None:
                        continue
                    if is_sum:
                        sums[topic] = sums.get(topic, 0) + found
                    else:
                        yield labelled(consumergroup=group_id, topic=topic, partition=index), found
                for topic, total in sums.items():
                    yield labelled(consumergroup=group_id, topic=topic), total

    return read


def _current(offset: int, _: int | None) -> int:
    return offset


def _lag(offset: int, end: int | None) -> int | None:
    return None if end is None else max(0, end - offset)


def _transactions(scrape: Scrape) -> Pausing:
    broker = scrape.node.broker
    if broker is None:
        return
    counts: Counter[TransactionState] = Counter()
    shards = broker.coordinators.transactions.shards
    # Together: a partition may be unloaded while the event loop runs other work.
    for shard in [shards.shard_of(partition) for partition in shards.loaded_partitions]:
        counts.update([one.state for one in shard.state.by_id.values()])
        yield None
    for state in TransactionState:
        yield labelled(state=state.display_name), counts[state]


#: The coordinators, by Kafka's names of them, and the topics of their states.
_COORDINATORS: dict[str, Callable[[Coordinators], CoordinatorTopic]] = {
    "group": lambda coordinators: coordinators.offsets_topic,
    "transaction": lambda coordinators: coordinators.transactions_topic,
    "share": lambda coordinators: coordinators.share_state_topic,
}


def _average_load(coordinator: str) -> Family:
    def read(scrape: Scrape) -> Iterator[Sample]:
        if scrape.node.broker is not None:
            topic = _COORDINATORS[coordinator](scrape.node.broker.coordinators)
            average_ns = scrape.node.rates.ratio(f"{coordinator} loads", topic.load_ns, topic.loads)
            yield "", 0 if average_ns is None else average_ns / 1e6

    return _load_time(coordinator, "avg", "on average since the last scrape; 0 without a load", read)


def _longest_load(coordinator: str) -> Family:
    def read(scrape: Scrape) -> Iterator[Sample]:
        if scrape.node.broker is not None:
            topic = _COORDINATORS[coordinator](scrape.node.broker.coordinators)
            yield "", topic.longest_load_ns / 1e6

    return _load_time(coordinator, "max", "the longest since the start", read)


def _load_time(coordinator: str, name: str, which: str, read: Callable[[Scrape], Iterator[Sample]]) -> Family:
    return Family(
        f"kafka_server_{coordinator}_coordinator_metrics_partition_load_time_{name}",
        "gauge",
        "",
        f"Milliseconds of loading a partition of the {coordinator} coordinator: {which}.",
        f"kafka.server:type={coordinator}-coordinator-metrics, partition-load-time-{name}",
        read,
    )


def _partitions(coordinator: str) -> Family:
    def read(scrape: Scrape) -> Iterator[Sample]:
        if scrape.node.broker is not None:
            topic = _COORDINATORS[coordinator](scrape.node.broker.coordinators)
            for state, count in topic.partitions_by_state.items():
                yield labelled(state=state), count

    return Family(
        f"kafka_server_{coordinator}_coordinator_metrics_num_partitions",
        "gauge",
        "state",
        f"Partitions of the {coordinator} coordinator in each state.",
        f"kafka.server:type={coordinator}-coordinator-metrics,state=*, num-partitions",
        read,
    )


_LAG = (
    "The high watermark minus the committed offset, where this node has a replica of the partition; no lag "
    "where the group has committed no offset"
)
FAMILIES = (
    Family(
        "kafka_consumergroup_current_offset",
        "gauge",
        "consumergroup topic partition",
        "The offset that a group coordinated here has committed.",
        "",
        _offsets(_current, is_sum=False),
    ),
    Family(
        "kafka_consumergroup_lag",
        "gauge",
        "consumergroup topic partition",
        f"{_LAG}.",
        "",
        _offsets(_lag, is_sum=False),
    ),
    Family(
        "kafka_consumergroup_current_offset_sum",
        "gauge",
        "consumergroup topic",
        "The committed offsets of a topic.",
        "",
        _offsets(_current, is_sum=True),
    ),
    Family(
        "kafka_consumergroup_lag_sum",
        "gauge",
        "consumergroup topic",
        "The lags of all partitions of a topic in which the group has committed an offset.",
        "",
        _offsets(_lag, is_sum=True),
    ),
    _tallied(
        "kafka_consumergroup_members",
        "consumergroup",
        "Members of a group coordinated here.",
        "",
        lambda tally: ((labelled(consumergroup=group), count) for group, count in tally.members),
    ),
    _tallied(
        "kafka_coordinator_group_groupmetadatamanager_numoffsets",
        "",
        "Committed offsets.",
        "kafka.coordinator.group:type=GroupMetadataManager,name=NumOffsets",
        lambda tally: iter([("", tally.offsets)]),
    ),
    _tallied(
        "kafka_coordinator_group_groupmetadatamanager_numgroups",
        "",
        "Classic groups.",
        "kafka.coordinator.group:type=GroupMetadataManager,name=NumGroups",
        lambda tally: iter([("", tally.by_kind["classic"])]),
    ),
    _phase("NumGroupsPreparingRebalance", "PreparingRebalance"),
    _phase("NumGroupsCompletingRebalance", "CompletingRebalance"),
    _phase("NumGroupsStable", "Stable"),
    _phase("NumGroupsDead", "Dead"),
    _phase("NumGroupsEmpty", "Empty"),
    _tallied(
        "kafka_server_group_coordinator_metrics_group_count",
        "protocol",
        "Groups of each kind.",
        "kafka.server:type=group-coordinator-metrics,protocol=*, group-count",
        lambda tally: (
            (labelled(protocol=kind), tally.by_kind[kind])
            for kind in ("classic", "consumer", "share", "streams")
        ),
    ),
    _in_states(
        "consumer", ("Empty", "Assigning", "Reconciling", "Stable", "Dead"), lambda tally: tally.consumer
    ),
    _in_states("share", ("Empty", "Stable", "Dead"), lambda tally: tally.share),
    _in_states(
        "streams",
        ("Empty", "NotReady", "Assigning", "Reconciling", "Stable", "Dead"),
        lambda tally: tally.streams,
    ),
    _counted(
        "group-completed-rebalance-count",
        "Generations of classic groups that have got their assignment",
        lambda counts: counts.completed_rebalances,
    ),
    *map(_rebalances, ("consumer", "share", "streams")),
    _counted(
        "offset-commit-count",
        "Offsets that were committed",
        lambda counts: counts.offset_commits,
    ),
    *map(_partitions, ("group", "share")),
    *(family for name in _COORDINATORS for family in (_average_load(name), _longest_load(name))),
    Family(
        "pykafka_broker_transactional_ids",
        "gauge",
        "state",
        "Transactional ids coordinated here, by the state of their transactions.",
        "",
        _transactions,
    ),
)
