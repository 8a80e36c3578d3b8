"""A partition that this node leads, as the parts of its leadership see it."""

from __future__ import annotations

from typing import Protocol

from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.replication.core.state import Leadership


class LedLog(Protocol):
    """The log, and the leadership, which has the followers' log start offsets; None after it has ended."""

    log: PartitionLog
    leadership: Leadership | None
