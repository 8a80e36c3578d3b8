"""The questions that a group of any kind answers: for offsets, for administrators, for timers, after a load.

Each kind of group has a package with a `kind.py` that answers; `kinds.py` lists them. A kind that is to come
(share groups, KIP-932; streams groups, KIP-1071) adds its package, a row there, its records to `record.py`,
and its requests and timers to `transitions.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from pykafka_broker.coordinator.group.committed_offset import CommittedOffset
from pykafka_broker.coordinator.group.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.group.events import CommitOffsets, CommitTransactionalOffsets, FetchOffsets
from pykafka_broker.coordinator.group.record import Record
from pykafka_broker.coordinator.group.topics import TopicDirectory
from pykafka_broker.machine.step import Effect
from pykafka_broker.protocol.errors import ErrorCode

G = TypeVar("G")


class GroupKind(ABC, Generic[G]):
    """A kind of group."""

    #: As ListGroups names it and filters by it.
    name: str

    @abstractmethod
    def protocol_type(self, group: G) -> str:
        """The protocol type of the members; empty if it is not known."""

    @abstractmethod
    def state_of(self, group: G) -> str:
        """The group's state, by Kafka's name."""

    @abstractmethod
    def is_empty(self, group: G) -> bool:
        """Has the group no members, so that it can be deleted?"""

    @abstractmethod
    def tombstones(self, group: G) -> list[Record]:
        """The records that a group is gone; its offsets have their own."""

    # ---- offsets ----

    @abstractmethod
    def is_subscribed_to(self, group: G, topic: str) -> bool:
        """Does a member read `topic`, so that its offsets have to stay?"""

    @abstractmethod
    def commit_error(self, group: G, event: CommitOffsets) -> ErrorCode:
        """May these offsets be committed? All or none of them."""

    @abstractmethod
    def commit_effects(self, group: G, event: CommitOffsets) -> list[Effect]:
        """The effects of a commit on the member that makes it."""

    @abstractmethod
    def commit_error_in_transaction(
        self, group: G, event: CommitTransactionalOffsets, topics: TopicDirectory
    ) -> ErrorCode:
        """May these offsets be committed in a transaction, by a client that names its member?"""

    @abstractmethod
    def fetch_error(self, group: G, event: FetchOffsets) -> ErrorCode:
        """May the sender see the group's offsets?"""

    @abstractmethod
    def deletion_error(self, group: G) -> ErrorCode:
        """May offsets of topics that no member reads be deleted?"""

    @abstractmethod
    def ages_since_ms(self, group: G, committed: CommittedOffset) -> int | None:
        """Since when an offset of a topic that no member reads ages (KIP-211); None: it does not."""

    # ---- load ----

    @abstractmethod
    def on_loaded(self, group: G, now_ms: int, config: GroupCoordinatorConfig) -> tuple[G, list[Effect]]:
        """Begin to serve a group that was read back: start the sessions of its members."""
