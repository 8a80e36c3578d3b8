"""Records of a kind, without the records: how many there are, and where the first and the last are."""

from __future__ import annotations

from pykafka_broker.system.named_tuple import NamedTuple


class Seen(NamedTuple):
    """How many records were seen, and their lowest and highest offset; None where there is none."""

    number: int
    first: int | None = None
    last: int | None = None

    def __str__(self) -> str:
        if self.number == 1 or self.first == self.last:
            return f"offset {self.first}"
        return f"the first at offset {self.first}, the last at {self.last}"


NONE = Seen(0)
