"""The port of handlers for the share coordinator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from pykafka_broker.coordinator.share.core.events import Event
    from pykafka_broker.machine.shard import Prompt
    from pykafka_broker.protocol.errors import KafkaError
    from pykafka_broker.protocol.topic_partition import SharePartitionKey

Answer = TypeVar("Answer")


class ShareCoordinator(Protocol):
    """The share partitions coordinated here."""

    def now_ms(self) -> int:
        """The time for an event."""
        ...

    def partition_for(self, key: SharePartitionKey) -> int:
        """The partition of `__share_group_state` that a share partition belongs to.

        Raises:
            KafkaError: NOT_COORDINATOR while there is no topic.
        """
        ...

    def answer(
        self,
        key: SharePartitionKey,
        event_with: Callable[[int], Event],
        *,
        refused: Callable[[KafkaError], Answer],
    ) -> Prompt[Answer] | Awaitable[Answer]:
        """Let the share partition answer the event that `event_with(token)` builds, or `refused` if it is not
        here.
        """
        ...
