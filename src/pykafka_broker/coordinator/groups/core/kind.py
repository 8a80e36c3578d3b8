"""What a kind of group is: the events and timers it handles, and the questions that a group of any kind
answers, for offsets, for administrators, when topics change, after a load.

Each kind of group has a package with a `kind.py`; `kinds.py` lists them. A new kind adds its package, a row
in `kinds.py`, its events to `events.py`, and its records to `record.py` and `records.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from pykafka_broker.coordinator.groups.core.committed_offset import CommittedOffset
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import (
    ClassicRequest,
    CommitOffsets,
    CommitTransactionalOffsets,
    FetchOffsets,
)
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.machine.step import Effect, Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.system.named_tuple import NamedTuple

G = TypeVar("G")

#: Called with the groups, the names in the timer's key, the time and the configuration.
TimerHandler = Callable[..., Step[Groups]]


class DeletedFirst(NamedTuple):
    """The outcome of the work of `GroupKind.deleted_first`."""

    #: The token of the request for the deletion.
    token: int
    group_id: str
    error: ErrorCode


class GroupKind(ABC, Generic[G]):
    """A kind of group."""

    #: The name of the kind in ListGroups and its filter.
    name: str
    #: The requests about one group that this kind handles. They wait while their group is being deleted.
    requests: ClassVar[tuple[type, ...]] = ()
    #: The other events that it handles: the outcomes of its work.
    outcomes: ClassVar[tuple[type, ...]] = ()
    #: The handlers of its timers, by the first part of the key; the rest of the key names group and member.
    timers: ClassVar[Mapping[str, TimerHandler]]
    #: Do clients commit offsets to groups of this kind? Then a transaction may do so without naming a member.
    keeps_offsets = True
    #: May a classic group take the place of an empty one, when a client joins with the classic protocol?
    gives_way_to_classic = False

    # ---- events ----

    @abstractmethod
    def handle(self, groups: Groups, event: Any, config: GroupCoordinatorConfig) -> Step[Groups]:
        """Handle one of the `requests` or `outcomes`."""

    def handle_classic(
        self, groups: Groups, group: G, event: ClassicRequest, config: GroupCoordinatorConfig
    ) -> Step[Groups] | None:
        """Handle a request of the classic protocol to a group of this kind; None: it has no such members."""
        return None

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
        """The tombstones of a group, without those of its offsets."""

    def expires(self, group: G) -> bool:
        """Is the group forgotten once it has neither members nor offsets?"""
        return True

    def deleted_first(
        self, group: G, token: int, topics: TopicDirectory
    ) -> tuple[list[Record], object | None]:
        """The records and the work that delete the group's state elsewhere; the outcome of the work continues
        the deletion that `token` asked for. Without records there is no such state.
        """
        return [], None

    def deletion_goes_on(self, outcome: Any) -> DeletedFirst | None:
        """Does this outcome belong to `deleted_first`? Then the deletion goes on, or ends with an error."""
        return None

    def is_in_states(self, group: G, states: set[str]) -> bool:
        """Is the group in one of these states, as ListGroups filters? They are in lower case."""
        return self.state_of(group).lower() in states

    # ---- topics ----

    def looks_at(self, group: G, topic: str) -> bool:
        """Does the assignment of the members depend on `topic`?"""
        return self.is_subscribed_to(group, topic)

    def forget_topics(
        self, group: G, topic_ids: frozenset[bytes], topics: TopicDirectory, now_ms: int
    ) -> tuple[G, list[Record]]:
        """Forget the group's state of deleted topics, except offsets; returns the group and the records."""
        return group, []

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
        """Since when an offset ages if no member reads its topic (KIP-211); None: it does not age."""

    # ---- load ----

    @abstractmethod
    def on_loaded(self, group: G, now_ms: int, config: GroupCoordinatorConfig) -> tuple[G, list[Effect]]:
        """Begin to serve a loaded group: start the sessions of its members."""
