"""Zigzag varints of many records at once: each function takes positions and reads one number at each. Pure.

A number of Kafka's records has 7 bits a byte, the lowest first, and its lowest bit is the sign. Nearly all
have one byte or two: those are read with two gathers over all records, 5 ns a number. The few longer ones are
read byte by byte.

Positions need not lie within the bytes: a gather beyond the end reads the last byte. Callers check where a
record ends after they have read all of it; positions never go back, so that check finds a read beyond the
end.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pykafka_broker.protocol.records.errors import OverlongVarint

Octets = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64]

#: The mask of 64 bits after a shift by one without the sign.
_WITHOUT_SIGN = np.int64(2**63 - 1)
_LONGEST_BYTES = 10


def read_numbers(octets: Octets, at: Positions) -> tuple[Numbers, Positions]:
    """The number at each position, decoded, and where it ends; `octets` must not be empty.

    Raises:
        OverlongVarint: a number has more than ten bytes.
    """
    first = octets.take(at, mode="clip")
    more = first >> 7
    after = at + 1
    if not more.any():
        raw = first.astype(np.int64)
        return (raw >> 1) ^ -(raw & 1), after
    second = octets.take(after, mode="clip")
    raw = (second & 127).astype(np.int64)
    raw <<= 7
    raw *= more
    raw += first & 127
    after += more
    goes_on = second & (more << 7)
    if not goes_on.any():
        return (raw >> 1) ^ -(raw & 1), after
    _read_rest(octets, np.flatnonzero(goes_on), raw, after)
    return ((raw >> 1) & _WITHOUT_SIGN) ^ -(raw & 1), after


def _read_rest(octets: Octets, rows: npt.NDArray[np.intp], raw: Numbers, after: Positions) -> None:
    """Add to the numbers of these rows the bytes behind their second one."""
    for place in range(2, _LONGEST_BYTES):
        byte = octets.take(after[rows], mode="clip")
        # Bits beyond the 64th are lost, as they are in `varint`.
        raw[rows] |= (byte & 127).astype(np.int64) << np.int64(7 * place)
        after[rows] += 1
        rows = rows[byte > 127]
        if not rows.size:
            return
    raise OverlongVarint("Found invalid record structure: a varint of more than 10 bytes")
