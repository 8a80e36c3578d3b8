"""The port of handlers for the group coordinator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pykafka_broker.system.repeated_lines import RepeatedLines

if TYPE_CHECKING:
    from pykafka_broker.coordinator.groups.core.events import Event
    from pykafka_broker.machine.shard import Prompt
    from pykafka_broker.protocol.errors import ErrorCode, KafkaError

Answer = TypeVar("Answer")


class GroupCoordinator(Protocol):
    """The groups coordinated here. Handlers do not see how its shards load and follow the metadata."""

    #: Logs commits of offsets from outside of a group.
    commit_lines: RepeatedLines

    def now_ms(self) -> int:
        """The time for an event."""
        ...

    def new_uuid(self) -> str:
        """The text of a random UUID, for a member that needs an id."""
        ...

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that a group belongs to.

        Raises:
            KafkaError: NOT_COORDINATOR while there is no topic.
        """
        ...

    def answer(
        self, group_id: str, event_with: Callable[[int], Event], *, refused: Callable[[KafkaError], Answer]
    ) -> Prompt[Answer] | Awaitable[Answer]:
        """Let a group answer the event that `event_with(token)` builds, or `refused` if it is not here."""
        ...

    def answer_named(
        self, group_id: str, event_with: Callable[[int], Event], *, refused: Callable[[KafkaError], Answer]
    ) -> Prompt[Answer] | Awaitable[Answer]:
        """The same; `refused` with INVALID_GROUP_ID if the group has no name."""
        ...

    def answer_anywhere(self, event_with: Callable[[int], Event]) -> Awaitable[Any]:
        """Answer an event that needs no group, and no particular coordinator."""
        ...

    def list_all(self, event_with: Callable[[int], Event]) -> Awaitable[tuple[ErrorCode, list[Any]]]:
        """List the groups of all partitions led here."""
        ...
