"""The log lines about changes by clients that this node decides on, with principal and address.

The controller logs its own decisions (`controller/decision_lines.py`). Loggers are Apache Kafka's, and so are
the first words of a line that it logs, too; it never logs the principal.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from pykafka_broker.apis.context import Context
from pykafka_broker.system.wording import cut, listed, printable

#: The most names in a line.
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
    """Log a change with the logger `part`: `text`, the first of `names`, and the requester.

    If `names` is given and empty, nothing has changed, and nothing is logged.
    """
    logger = logging.getLogger(part)
    if logger.isEnabledFor(level):
        concerned = [] if names is None else list(names)
        if concerned or names is None:
            logger.log(level, "%s", line(ctx, text, concerned))


def line(ctx: Context[Any], text: str, names: Iterable[str] = ()) -> str:
    """The text of a line."""
    shown = listed([cut(name) for name in names], MOST_NAMES)
    return printable(f"{cut(text)}{shown}, as {cut(str(ctx.requester))} asked.")
