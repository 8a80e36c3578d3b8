"""The ports between a node's raft host and its controller.

The host tells the controller when this node begins and stops leading the metadata log; in between the
controller appends to the log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Protocol

from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.raft.core.messages import ChangeAnswer, Request
from pykafka_broker.raft.quorum_description import QuorumDescription


class LeaderLog(Protocol):
    """The metadata log as its leader uses it."""

    @property
    def epoch(self) -> int:
        """The leader epoch."""
        ...

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        ...

    @property
    def kraft_version(self) -> int:
        """0 if the configuration of each node names the voters, 1 if the log does."""
        ...

    @property
    def voter_ids(self) -> tuple[int, ...]:
        """The node ids of the voters, by the newest records of the log."""
        ...

    def append(self, records: Sequence[object], metadata_version: int) -> int:
        """Append records, encoded for a finalized metadata.version; return the log end offset after them.

        Raises:
            KafkaError: this node does not lead the log, or the log could not be written.
        """
        ...

    def request(self, request: Request) -> Awaitable[Any]:
        """Return the answer of the log's replica to a request of an administrator.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, the replica has stopped.
        """
        ...

    def upgrade_kraft_version(self, *, validate_only: bool) -> Awaitable[ChangeAnswer]:
        """Move the voters of the configuration into the log (kraft.version 1), or only check that."""
        ...

    def describe_quorum(self) -> QuorumDescription:
        """The quorum as it is now.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, this node does not lead the log.
        """
        ...


class MetadataLeadership(Protocol):
    """Decides on metadata while this node leads the metadata log."""

    def prepare(self) -> None:
        """Called before the replica of this node starts. Raises the error that keeps it from leading."""
        ...

    def begin(self, log: LeaderLog) -> None:
        """The node leads, and everything that earlier leaders committed has been handed over."""
        ...

    def end(self, error: KafkaError) -> None:
        """The node has stopped leading: waiting requests are answered with `error`."""
        ...
