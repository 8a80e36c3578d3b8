"""The lag of streaming queries where operators look: a listener commits the end of each batch to a group.

    from pykafka_broker.spark import commit_progress

    commit_progress(spark, "127.0.0.1:9092", group="orders-to-lake", query="orders-to-lake")

Spark keeps its offsets in the checkpoint and never commits them, so that kafka-consumer-groups and dashboards
see nothing of it. Only these tools use the commits: a query goes on where its checkpoint says, not at the
offsets of the group.

Offsets are committed after a batch is done, without membership in the group, each with metadata that names
the query. While a query is idle they are committed anew, so that they do not expire. An error is logged and
kept in `last_error`, and does not disturb the query: the next batch tries again.

On Spark Connect the listener may run in a process of the server (Spark 3.5), which then needs this package,
and shares no variables with the program that has added it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from pykafka_broker import __version__
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.addresses import parse_addresses
from pykafka_broker.client.core.connection import Identity
from pykafka_broker.client.offsets import commit_until_done, committed_offsets
from pykafka_broker.protocol.errors import KafkaError, ProtocolError
from pykafka_broker.spark.checkpoint.files import Offsets
from pykafka_broker.spark.progress import described, end_offsets
from pykafka_broker.spark.security import OPEN, secured
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

#: Listeners are called one after the other, so none may wait for long.
TIMEOUT_S = 10.0
#: Offsets of a group without members expire a week after their commit, by default.
REFRESH_S = 600.0
COMMITTER = Identity("pykafka-broker-spark", __version__, kind="listener")
logger = logging.getLogger(__name__)


class _Position(NamedTuple):
    """The last commit for a query; without offsets if there were none to commit."""

    offsets: Offsets
    metadata: str
    at_s: float


class CommitProgress(StreamingQueryListener):
    """Commits the end of each batch of a query to a group."""

    def __init__(
        self,
        bootstrap_servers: str,
        group: str,
        query: str | None = None,
        refresh_s: float = REFRESH_S,
        security: Mapping[str, str] = OPEN,
    ) -> None:
        """If `query` is None, the listener commits for all queries of the session; two queries of one topic
        then need a listener and a group each. `security` are properties of Kafka's clients.

        Raises:
            ValueError: the bootstrap servers are no addresses.
            SparkError: there is no such security.
        """
        parse_addresses(bootstrap_servers)
        secured(COMMITTER, security)
        self._security = dict(security)
        self.bootstrap_servers = bootstrap_servers
        self.group = group
        self.query = query
        self.refresh_s = refresh_s
        #: The error of the last commit; "" if it succeeded.
        self.last_error = ""
        #: Id of a query -> its position.
        self._positions: dict[str, _Position] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        if self._is_meant(event.name, event.id):
            what = f"Spark query {event.name or event.id}"
            self._positions[str(event.id)] = _Position({}, what, time.monotonic())

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        progress = event.progress
        if not self._is_meant(progress.name, progress.id):
            return
        offsets = end_offsets((source.description, source.endOffset) for source in progress.sources)
        if offsets:
            metadata = described(progress.name or str(progress.id), progress.batchId)
            self._commit(str(progress.id), offsets, metadata)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        position = self._positions.get(str(event.id))
        if position is not None and time.monotonic() - position.at_s >= self.refresh_s:
            self._commit(str(event.id), position.offsets, position.metadata)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        self._positions.pop(str(event.id), None)

    def _is_meant(self, name: str | None, query_id: Any) -> bool:
        return self.query is None or self.query in (name, str(query_id))

    def _commit(self, query_id: str, offsets: Offsets, metadata: str) -> None:
        """Commit these offsets. If there are none, commit the group's offsets again, so that they do not
        expire.
        """
        self._positions[query_id] = _Position(offsets, metadata, time.monotonic())
        try:
            with Client(
                self.bootstrap_servers, TIMEOUT_S, identity=secured(COMMITTER, self._security)
            ) as client:
                chosen = offsets or committed_offsets(client, client.coordinator(self.group), self.group)
                if chosen:
                    commit_until_done(client, self.group, chosen, metadata)
        except (KafkaError, OSError, ProtocolError) as error:
            self.last_error = str(error)
            logger.warning("The progress of %s is not committed to group %s: %s", metadata, self.group, error)
        else:
            self.last_error = ""


def commit_progress(
    spark: SparkSession,
    bootstrap_servers: str,
    group: str,
    query: str | None = None,
    *,
    security: Mapping[str, str] = OPEN,
) -> CommitProgress:
    """Let the batches of a query be committed to a group from now on; `spark.streams.removeListener` ends it.

    Args:
        spark: Classic or of Spark Connect.
        bootstrap_servers: The cluster that the query reads.
        group: A group of its own, without members.
        query: The name of the query (`queryName`) or its id; None: every query of the session.
        security: Properties of Kafka's clients: `security.protocol`, `sasl.*` and `ssl.*`.

    Raises:
        ValueError: the bootstrap servers are no addresses.
        SparkError: there is no such security.
    """
    listener = CommitProgress(bootstrap_servers, group, query, security=security)
    spark.streams.addListener(listener)
    return listener
