"""The statuses of the application in the answer to a heartbeat."""

from __future__ import annotations

import enum

from pykafka_broker.system.named_tuple import NamedTuple


class StatusCode(enum.IntEnum):
    """The status codes of KIP-1071."""

    #: The member runs an older topology than the group has.
    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    #: Copartitioned topics have different numbers of partitions, or an internal topic has a wrong number.
    INCORRECTLY_PARTITIONED_TOPICS = 2
    #: The topics are being created.
    MISSING_INTERNAL_TOPICS = 3
    #: A member has asked all others to stop.
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class Status(NamedTuple):
    """A status code, and its text."""

    code: StatusCode
    detail: str
