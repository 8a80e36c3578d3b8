"""Topics that come into being because a client asks for them or a coordinator needs them."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Protocol


class TopicCreation(Protocol):
    """Creates missing topics once, however many requests ask for them."""

    def create_missing(self, names: Iterable[str]) -> Awaitable[None]:
        """Create missing topics with the broker's defaults, as far as allowed; errors show in the image."""
        ...

    def ensure_offsets_topic(self) -> Awaitable[bool]:
        """Create `__consumer_offsets` if it is missing; True when its partitions are led and loaded."""
        ...

    def ensure_transactions_topic(self) -> Awaitable[bool]:
        """The same for `__transaction_state`."""
        ...
