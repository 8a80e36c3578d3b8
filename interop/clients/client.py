"""The port through which scenarios use a client. An adapter translates to the client's own API and adds
nothing of its own.

A client that lacks a feature does not override the method, or does not list it among its features;
`matrix.toml` says which scenarios it therefore skips and why, and `Client.can` keeps it out of the scenarios
of others (what one client wrote, all that can read it).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from interop.clients.login import Login

#: Abilities in which clients differ and that no method shows.
FEATURES = frozenset(
    {
        "ordered_headers",  # a reader sees headers in their order, and repeated ones
        "null_headers",  # a reader tells a header without a value from an empty one
        "append_time",  # a reader shows the broker's time where the topic says so
        "timestamps",  # a writer chooses the time of a record
        "idempotent",  # a writer can be idempotent
        "range",  # a member brings the assignor that nearly all clients share
        "commit",  # a member commits when it is asked to, and only then
        "isolation",  # a reader of committed records leaves out those that were aborted
        "stable_end",  # and ends where the first open transaction begins
        "renew",  # a share consumer renews the lock of a record
    }
)

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class Record:
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int = 0
    #: Set on what was read, not compared: writer and reader agree on the rest.
    offset: int = field(default=-1, compare=False)
    #: How often a share group was given it; not compared either.
    delivery_count: int | None = field(default=None, compare=False)


Acknowledgement = Literal["accept", "release", "reject", "renew"]


class Refused(Exception):
    """The broker answered with an error code."""

    def __init__(self, code: int, text: object = "") -> None:
        super().__init__(f"error {code} {text}".strip())
        self.code = code


@dataclass(frozen=True)
class ClusterView:
    cluster_id: str
    controller_id: int
    #: Node ids and addresses.
    brokers: frozenset[tuple[int, str]]


@dataclass(frozen=True)
class GroupView:
    state: str
    members: int


class Member(ABC):
    """A consumer in a group."""

    @abstractmethod
    def poll(self, timeout_s: float) -> list[Record]: ...

    @abstractmethod
    def assignment(self) -> frozenset[int]:
        """The assigned partitions of the one subscribed topic."""

    @abstractmethod
    def commit(self) -> None:
        """Commit everything that was polled, and wait."""

    @abstractmethod
    def close(self) -> None:
        """Leave the group (a static member: just go away)."""


class ShareMember(ABC):
    """A consumer in a share group. One that acknowledges nothing itself accepts with its next poll what the
    last one gave it; of an explicit one, every record is acknowledged before the next poll.
    """

    @abstractmethod
    def poll(self, timeout_s: float) -> list[Record]: ...

    @abstractmethod
    def acknowledge(self, record: Record, how: Acknowledgement) -> None:
        """Of a record that was polled last; sent by `commit`."""

    @abstractmethod
    def commit(self) -> None:
        """Send what was acknowledged, and wait; refused if any of it was."""

    @abstractmethod
    def close(self) -> None:
        """Leave the group."""


class Transactions(ABC):
    """A producer with a transactional id, which is its own from the time that it is made."""

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def send(self, topic: str, records: Sequence[Record]) -> None:
        """Write in the open transaction, and wait for the answers."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def abort(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


def copy_by(
    member: Member,
    writer: Transactions,
    send_offsets: Callable[[], None],
    target: str,
    *,
    count: int,
    commit: bool,
) -> None:
    """`Client.copy` with a member and a writer, which are closed then; `send_offsets` sends the member's
    positions in the writer's transaction.
    """
    try:
        writer.begin()
        read: list[Record] = []
        while len(read) < count:
            read += member.poll(1)
        writer.send(target, [Record(record.value) for record in read])
        send_offsets()
        if commit:
            writer.commit()
        else:
            writer.abort()
    finally:
        writer.close()
        member.close()


class Client(ABC):
    name: str
    #: Its release, as it is published.
    version: str
    #: Assignors that it brings, beside `range`.
    strategies: tuple[str, ...] = ()
    features: frozenset[str] = FEATURES

    def __init__(self, bootstrap: str, login: Login | None = None) -> None:
        self.bootstrap = bootstrap
        self.login = login

    def can(self, ability: str) -> bool:
        """Whether it has this feature, or a method of its own of this name."""
        if ability in FEATURES:
            return ability in self.features
        return getattr(type(self), ability) is not getattr(Client, ability)

    @abstractmethod
    def close(self) -> None: ...

    # Data. Offsets are those that the broker answered with, -1 where it answers none (acks=0).

    @abstractmethod
    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]: ...

    @abstractmethod
    def read(
        self,
        topic: str,
        partitions: Sequence[int] = (0,),
        *,
        start: int | None = None,
        fetch_bytes: int | None = None,
        committed: bool = False,
    ) -> list[Record]:
        """Assigned, not subscribed: from the beginning (or `start`) to the present end, by partition; of
        committed records alone, up to the first open transaction.

        A client that does not tell its position needs a plain record at the end.
        """

    @abstractmethod
    def read_out_of_range(self, topic: str, offset: int, reset: str) -> int | None:
        """Seek partition 0 to an offset it does not have: where the reset leads, None = an error."""

    @abstractmethod
    def beginning(self, topic: str, partition: int = 0) -> int: ...

    @abstractmethod
    def end(self, topic: str, partition: int = 0) -> int: ...

    @abstractmethod
    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None: ...

    # Groups.

    @abstractmethod
    def member(
        self,
        group: str,
        topic: str,
        *,
        instance_id: str | None = None,
        session_timeout_ms: int = 6000,
        strategy: str = "range",
    ) -> Member:
        """A client that does not bring `range` takes the first that it has."""

    def consumer_member(
        self,
        group: str,
        subscription: str,
        *,
        instance_id: str | None = None,
        assignor: str | None = None,
    ) -> Member:
        """A member with the consumer protocol (KIP-848); a subscription that begins with ^ is a pattern, an
        assignor one of the broker's.
        """
        raise NotImplementedError

    def share_member(
        self, group: str, topic: str, *, explicit: bool = False, max_records: int = 500
    ) -> ShareMember:
        """A member of a share group (KIP-932) that wants so many records at once, or more if they come in
        one batch.
        """
        raise NotImplementedError

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        raise NotImplementedError

    def commit_metadata(self, group: str, topic: str, offset: int, metadata: str) -> str:
        """Commit an offset of partition 0 with metadata as a simple consumer; what is fetched back."""
        raise NotImplementedError

    # Transactions.

    def transactions(self, transactional_id: str, *, timeout_ms: int = 60_000) -> Transactions:
        raise NotImplementedError

    def copy(
        self, transactional_id: str, group: str, source: str, target: str, *, count: int, commit: bool
    ) -> None:
        """In one transaction: as a member of the group read so many records of the source, write their
        values to partition 0 of the target, and commit what was read; or abort all that.
        """
        raise NotImplementedError

    # Admin.

    def cluster(self) -> ClusterView:
        raise NotImplementedError

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        configs: Mapping[str, str] | None = None,
        replication_factor: int = 1,
    ) -> None:
        raise NotImplementedError

    @abstractmethod
    def topics(self) -> set[str]: ...

    @abstractmethod
    def partitions(self, topic: str) -> int: ...

    def delete_topic(self, name: str) -> None:
        raise NotImplementedError

    def add_partitions(self, topic: str, total: int) -> None:
        raise NotImplementedError

    def config(self, topic: str) -> dict[str, tuple[str, bool]]:
        """Every topic config: its value and whether that is a default."""
        raise NotImplementedError

    def set_config(self, topic: str, key: str, value: str) -> None:
        raise NotImplementedError

    def set_group_config(self, group: str, key: str, value: str) -> None:
        raise NotImplementedError

    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        raise NotImplementedError

    def groups(self) -> set[str]:
        raise NotImplementedError

    def group(self, group: str) -> GroupView:
        raise NotImplementedError

    def delete_group(self, group: str) -> None:
        raise NotImplementedError

    def delete_offset(self, group: str, topic: str, partition: int = 0) -> None:
        raise NotImplementedError
