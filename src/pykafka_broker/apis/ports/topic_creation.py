"""Topics that are created because a client asks for them or a coordinator needs them."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pykafka_broker.coordinator.groups.core.streams.topology.declared import InternalTopic


class TopicCreation(Protocol):
    """Creates missing topics once, however many requests ask for them."""

    def create_missing(self, names: Iterable[str]) -> Awaitable[None]:
        """Create missing topics with the broker's defaults, as far as allowed; errors show in the image."""
        ...

    def create_for_streams(self, topics: Iterable[InternalTopic], *, errors_for_ms: int) -> Mapping[str, str]:
        """Begin to create missing internal topics of a Kafka Streams application; returns at once, by topic,
        the errors of creations that failed in the last `errors_for_ms`.
        """
        ...

    def ensure_offsets_topic(self) -> Awaitable[bool]:
        """Create `__consumer_offsets` if it is missing; True when its partitions are led and loaded."""
        ...

    def ensure_transactions_topic(self) -> Awaitable[bool]:
        """The same for `__transaction_state`."""
        ...

    def ensure_share_state_topic(self) -> Awaitable[bool]:
        """The same for `__share_group_state`."""
        ...
