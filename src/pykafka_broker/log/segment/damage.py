"""Damaged ranges of a segment, and the `.damaged` file that remembers them over a restart. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.system.named_tuple import NamedTuple


class Damage(NamedTuple):
    """Bytes [position, end_position) of a segment hold no usable batch: the offsets from `first_offset` up to
    `next_offset` are lost.
    """

    position: int
    end_position: int
    first_offset: int
    next_offset: int


def encode_damages(damages: Iterable[Damage]) -> bytes:
    """A `.damaged` file: one line `position end_position first_offset next_offset` for each range."""
    return "".join(
        [f"{d.position} {d.end_position} {d.first_offset} {d.next_offset}\n" for d in damages]
    ).encode()


def decode_damages(data: bytes) -> tuple[Damage, ...]:
    """The ranges in a `.damaged` file.

    Raises:
        ValueError, TypeError: the file is not readable.
    """
    lines = data.decode("ascii", "replace").splitlines()
    return tuple(Damage(*map(int, line.split())) for line in lines if line)
