"""What the consumers of a share group were given and told, and what must be true of it (KIP-932).

In the end each record is accepted or rejected, or it has been delivered as often as the group allows. None is
delivered again after a leader took its acceptance or its rejection.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from pykafka_broker.client.core.share_group import Acknowledgement

#: How often Kafka delivers a record by default (`group.share.delivery.count.limit`).
DELIVERY_LIMIT = 5
FINAL = (Acknowledgement.ACCEPT, Acknowledgement.REJECT)


class Place(NamedTuple):
    """Where a record stands."""

    partition: int
    offset: int


@dataclass
class ShareHistory:
    """Filled in by all consumers of a group, in one thread, in the order in which answers come."""

    #: Record -> the delivery counts that it came with.
    deliveries: dict[Place, list[int]] = field(default_factory=dict)
    #: Records whose acceptance or rejection a leader took.
    settled: dict[Place, Acknowledgement] = field(default_factory=dict)
    #: Records of which it is not known whether a leader took that: the connection ended.
    unknown: set[Place] = field(default_factory=set)
    again: list[Place] = field(default_factory=list)
    #: What consumers did, and acknowledgements that were refused, each by name.
    events: Counter[str] = field(default_factory=Counter)

    def delivered(self, place: Place, delivery_count: int) -> None:
        if place in self.settled:
            self.again.append(place)
        self.deliveries.setdefault(place, []).append(delivery_count)

    def took(self, place: Place, acknowledgement: Acknowledgement) -> None:
        self.events[acknowledgement.name.lower()] += 1
        if acknowledgement in FINAL:
            self.settled[place] = acknowledgement
            self.unknown.discard(place)

    def lost_sight(self, place: Place, acknowledgement: Acknowledgement) -> None:
        if acknowledgement in FINAL and place not in self.settled:
            self.unknown.add(place)

    def is_done(self, place: Place) -> bool:
        """Whether the record is not delivered any more, as far as consumers can tell."""
        return (
            place in self.settled
            or place in self.unknown
            or max(self.deliveries.get(place, [0])) >= DELIVERY_LIMIT
        )


def anomalies(history: ShareHistory, written: set[Place]) -> dict[str, list[Place]]:
    """What must not be, with where."""
    found = {
        "never delivered": sorted(written - history.deliveries.keys()),
        "delivered again after its acknowledgement": history.again,
        "delivered and never written": sorted(history.deliveries.keys() - written),
        "delivered too often": sorted(
            place for place, counts in history.deliveries.items() if max(counts) > DELIVERY_LIMIT
        ),
        "left over": sorted(place for place in written if not history.is_done(place)),
    }
    return {name: places for name, places in found.items() if places}
