"""The log directories of a partition's replicas (KIP-858), as the metadata tells of them."""

from __future__ import annotations

from collections.abc import Callable

from pykafka_broker.cluster.image import BrokerRegistration, PartitionRegistration

#: Reserved directory ids: the directory is unknown, the broker chooses it, or it has failed.
DIRECTORY_MIGRATING = bytes(16)
DIRECTORY_UNASSIGNED = bytes(15) + b"\x01"
DIRECTORY_LOST = bytes(15) + b"\x02"
#: Ids below this number are reserved.
FIRST_DIRECTORY_ID = 100


def directories_of(partition: PartitionRegistration) -> tuple[bytes, ...]:
    """The log directory of each replica; DIRECTORY_MIGRATING if the metadata log has none."""
    return partition.directories or (DIRECTORY_MIGRATING,) * len(partition.replicas)


def is_online_directory(broker: BrokerRegistration, directory: bytes) -> bool:
    """Whether a broker's log directory is not known to be offline."""
    if directory in (DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED):
        return True
    if directory == DIRECTORY_LOST:
        return False
    return not broker.directories or directory in broker.directories


def has_online_directory(broker: BrokerRegistration, partition: PartitionRegistration) -> bool:
    """Whether the broker's log directory for the partition is not known to be offline."""
    if not partition.directories:
        return True
    return is_online_directory(broker, partition.directories[partition.replicas.index(broker.broker_id)])


def without_online_directory(
    partition: PartitionRegistration, registration_of: Callable[[int], BrokerRegistration | None]
) -> frozenset[int]:
    """The registered brokers whose log directory for this partition is known to be offline."""
    brokers = map(registration_of, partition.replicas)
    return frozenset(
        broker.broker_id
        for broker in brokers
        if broker is not None and not has_online_directory(broker, partition)
    )
