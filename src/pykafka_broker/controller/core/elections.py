"""Who leads a partition.

A leader stays while it can. Otherwise the most preferred replica in the ISR leads; without one an eligible
leader replica (KIP-966), which had every committed record when it left the ISR; then the last known leader;
then, if `unclean.leader.election.enable` allows it, any live replica. The last two may lose records.

The rules are those of Apache Kafka 4.3, with one exception: a broker that is no longer a replica is not the
last known leader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto

from pykafka_broker.cluster.image import NO_LEADER, PartitionRegistration, TopicImage
from pykafka_broker.cluster.replica_directories import is_online_directory
from pykafka_broker.controller.core.state import ControllerState


class Election(Enum):
    """The replicas that an election may choose from."""

    #: In-sync or eligible replicas; the first replica leads if it can, even if the leader could stay.
    PREFERRED = auto()
    #: In-sync or eligible replicas, if the leader cannot stay.
    ONLINE = auto()
    #: Any live replica, if no other is left.
    UNCLEAN = auto()


def election_allowed(state: ControllerState, topic: TopicImage) -> Election:
    """The kind of election if a partition of the topic loses its leader."""
    return Election.UNCLEAN if state.unclean_election_enabled(topic.name) else Election.ONLINE


def online_replica(
    state: ControllerState,
    replicas: tuple[int, ...],
    directories: Mapping[int, bytes],
    is_acceptable: Callable[[int], bool],
) -> Callable[[int], bool]:
    """Whether a replica may lead: its broker may, and its log directory is not known to be offline."""

    def may_lead(replica: int) -> bool:
        if replica not in replicas or not is_acceptable(replica):
            return False
        broker = state.image.brokers.get(replica)
        if broker is None:
            return False
        directory = directories.get(replica)
        return directory is None or is_online_directory(broker, directory)

    return may_lead


def elect(
    state: ControllerState,
    partition: PartitionRegistration,
    replicas: tuple[int, ...],
    candidates: tuple[int, ...],
    election: Election,
    may_lead: Callable[[int], bool],
) -> tuple[int, bool]:
    """The new leader, and whether its election may lose records.

    `partition` is as it was before, `replicas` are those that it gets, and `candidates` those that have every
    committed record.
    """
    for replica in _in_order(partition, replicas, election):
        if replica in candidates and may_lead(replica):
            return replica, False
    if state.elr_enabled and not candidates and len(partition.last_known_elr) == 1:
        last_leader = partition.last_known_elr[0]
        if may_lead(last_leader):
            return last_leader, True
    if election is Election.UNCLEAN:
        for replica in replicas:
            if may_lead(replica):
                return replica, True
    return NO_LEADER, False


def _in_order(
    partition: PartitionRegistration, replicas: tuple[int, ...], election: Election
) -> Iterator[int]:
    if election is Election.PREFERRED:
        yield replicas[0]
    if partition.leader != NO_LEADER:
        yield partition.leader
    yield from replicas
