"""Elections that are asked for, by clients (KIP-183, KIP-460) or by the clock.

`elections.py` decides which replica can lead. A preferred election makes the first replica the leader. If
the first replica cannot lead and the leader cannot stay, another in-sync replica leads. An unclean election
takes any live replica, and only for a partition without a leader. The checks, their order, codes and texts
are those of Apache Kafka 4.3.

The controller also holds both elections itself: preferred ones every
`leader.imbalance.check.interval.seconds`, unclean ones, where they are allowed, every
`unclean.leader.election.interval.ms`. As in Kafka's KRaft controller every imbalance counts, regardless of
`leader.imbalance.per.broker.percentage`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from itertools import islice

from pykafka_broker.cluster.image import NO_LEADER, PartitionRegistration, changed
from pykafka_broker.controller.core.elections import Election
from pykafka_broker.controller.core.events import (
    BalanceLeaders,
    ElectionType,
    ElectLeaders,
    ElectUncleanLeaders,
    Moment,
    PartitionResult,
    TopicPartitions,
    TopicResult,
)
from pykafka_broker.controller.core.partitions import as_it_is, partition_change
from pykafka_broker.controller.core.state import (
    ControllerRules,
    ControllerState,
    Decision,
    check_operation_size,
)
from pykafka_broker.machine.step import SetTimer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records import metadata as m

#: The most elections of one round; after a full round the next one follows at once.
MAX_ELECTIONS_PER_ROUND = 1_000


class ElectionTimer(Enum):
    """The timers of the elections that the controller holds itself."""

    BALANCE_LEADERS = auto()
    ELECT_UNCLEAN_LEADERS = auto()


_ELECTIONS = {ElectionType.PREFERRED: Election.PREFERRED, ElectionType.UNCLEAN: Election.UNCLEAN}


def elect_leaders(state: ControllerState, event: ElectLeaders) -> Decision:
    """Elect leaders, each partition on its own; an answer for all topics omits partitions that need none."""
    if event.election_type not in _ELECTIONS:
        text = f"Unknown election type {event.election_type}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    election_type = ElectionType(event.election_type)
    records: list[object] = []
    results = []
    #: The changed partitions: a partition named twice needs no second election.
    newest: dict[tuple[str, int], PartitionRegistration] = {}
    for asked in _all_partitions(state) if event.topics is None else event.topics:
        outcomes = []
        for index in asked.partitions:
            key = (asked.topic, index)
            partition = newest.get(key) or state.image.partition(*key)
            record, outcome = _elect(state, key, partition, election_type)
            if record is not None:
                assert partition is not None
                records.append(record)
                newest[key] = changed(partition, record)
            if event.topics is not None or outcome.error is not ErrorCode.ELECTION_NOT_NEEDED:
                outcomes.append(outcome)
        results.append(TopicResult(asked.topic, tuple(outcomes)))
    check_operation_size(len(records))
    return Decision(tuple(records), tuple(results))


def _all_partitions(state: ControllerState) -> Iterator[TopicPartitions]:
    for name, topic in state.image.topics.items():
        yield TopicPartitions(name, tuple(topic.partitions))


def _elect(
    state: ControllerState,
    key: tuple[str, int],
    partition: PartitionRegistration | None,
    election_type: ElectionType,
) -> tuple[m.PartitionChangeRecord | None, PartitionResult]:
    name, index = key
    topic = state.image.topics.get(name)
    if topic is None:
        text = f"No such topic as {name}"
        return None, PartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    if partition is None:
        text = f"No such partition as {name}-{index}"
        return None, PartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    if not _is_needed(partition, election_type):
        return None, _refused(index, ErrorCode.ELECTION_NOT_NEEDED)
    record = partition_change(state, topic, partition, as_it_is(partition), _ELECTIONS[election_type])
    if record is not None:
        return record, PartitionResult(index)
    if election_type is ElectionType.PREFERRED:
        return None, _refused(index, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    return None, _refused(index, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)


def _is_needed(partition: PartitionRegistration, election_type: ElectionType) -> bool:
    if election_type is ElectionType.PREFERRED:
        return partition.leader != partition.replicas[0]
    return partition.leader == NO_LEADER


def _refused(index: int, error: ErrorCode) -> PartitionResult:
    return PartitionResult(index, error, error.message)


# -- from time to time ------------------------------------------------------------------------------------


def first_timers(rules: ControllerRules, now_ms: int) -> tuple[SetTimer, ...]:
    """The timers that a new controller sets."""
    unclean_ms = now_ms + rules.unclean_election_interval_ms
    unclean = SetTimer(ElectionTimer.ELECT_UNCLEAN_LEADERS, unclean_ms)
    if rules.leader_balance_interval_ms is None:
        return (unclean,)
    balance_ms = now_ms + rules.leader_balance_interval_ms
    return SetTimer(ElectionTimer.BALANCE_LEADERS, balance_ms), unclean


def election_event(timer: ElectionTimer) -> BalanceLeaders | ElectUncleanLeaders:
    """The event of a timer that has fired."""
    return BalanceLeaders() if timer is ElectionTimer.BALANCE_LEADERS else ElectUncleanLeaders()


def balance_leaders(state: ControllerState, event: BalanceLeaders, moment: Moment) -> Decision:
    """Elect the preferred replica of each partition that has another leader."""
    interval_ms = state.rules.leader_balance_interval_ms
    if interval_ms is None:
        return Decision()
    records = _elect_all(state, ElectionType.PREFERRED, lambda topic: True)
    return _round(ElectionTimer.BALANCE_LEADERS, records, moment.now_ms, interval_ms)


def elect_unclean_leaders(state: ControllerState, event: ElectUncleanLeaders, moment: Moment) -> Decision:
    """Elect any live replica of each partition without a leader, if its topic allows unclean elections."""
    records = _elect_all(state, ElectionType.UNCLEAN, state.unclean_election_enabled)
    interval_ms = state.rules.unclean_election_interval_ms
    return _round(ElectionTimer.ELECT_UNCLEAN_LEADERS, records, moment.now_ms, interval_ms)


def _elect_all(
    state: ControllerState, election_type: ElectionType, is_allowed: Callable[[str], bool]
) -> tuple[object, ...]:
    elected = (
        partition_change(state, topic, partition, as_it_is(partition), _ELECTIONS[election_type])
        for topic in state.image.topics.values()
        for partition in topic.partitions.values()
        if _is_needed(partition, election_type) and is_allowed(topic.name)
    )
    changes = (record for record in elected if record is not None)
    return tuple(islice(changes, MAX_ELECTIONS_PER_ROUND))


def _round(timer: ElectionTimer, records: tuple[object, ...], now_ms: int, interval_ms: int) -> Decision:
    next_ms = now_ms if len(records) == MAX_ELECTIONS_PER_ROUND else now_ms + interval_ms
    return Decision(records, timers=(SetTimer(timer, next_ms),))
