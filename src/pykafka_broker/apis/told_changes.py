"""The log lines about changes that clients ask this node for, and that the active controller does not decide:
what has changed, who has asked for it, and from where.

What it decides is told there (`controller/decision_lines.py`). Loggers, and the first words of a line where
it has any, are those of Apache Kafka, which never says who has asked.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from pykafka_broker.apis.context import Context
from pykafka_broker.system.wording import cut, listed, printable

#: Of many names that a change concerns, so many are told.
MOST_NAMES = 5

LOGGERS = "kafka.server.ConfigAdminManager"
LOGS = "org.apache.kafka.storage.internals.log.UnifiedLog"
REPLICAS = "kafka.server.ReplicaManager"
REQUESTS = "kafka.server.KafkaApis"
GROUPS = "org.apache.kafka.coordinator.group.GroupCoordinatorShard"
OFFSETS = "org.apache.kafka.coordinator.group.OffsetMetadataManager"
VOTERS_ADDED = "org.apache.kafka.raft.internals.AddVoterHandler"
VOTERS_REMOVED = "org.apache.kafka.raft.internals.RemoveVoterHandler"
VOTERS_UPDATED = "org.apache.kafka.raft.internals.UpdateVoterHandler"


def tell(
    ctx: Context[Any],
    part: str,
    text: str,
    names: Iterable[str] | None = None,
    level: int = logging.INFO,
) -> None:
    """Tell of a change in the log of a part: `text` and the first of `names`, and who has asked for it.

    Where names are expected and there is none, nothing has changed, and there is no line.
    """
    logger = logging.getLogger(part)
    if logger.isEnabledFor(level):
        concerned = [] if names is None else list(names)
        if concerned or names is None:
            logger.log(level, "%s", line(ctx, text, concerned))


def line(ctx: Context[Any], text: str, names: Iterable[str] = ()) -> str:
    """The words of a line."""
    shown = listed([cut(name) for name in names], MOST_NAMES)
    return printable(f"{cut(text)}{shown}, as {cut(str(ctx.requester))} asked.")
