"""The newest offset of every key in the dirty part of a log, within a budget of memory.

A round takes as many keys as fit; the next round goes on where the map was full, and reads everything below
once more. So the memory for each key matters. A dictionary is fastest and takes 128 bytes a key; the table
that takes over when there are many keys takes 24, as Apache Kafka's does, and is filled to nine tenths:

    cells      16 bytes each: the key itself with its length if it has up to 15 bytes, else its digest
    offsets    8 bytes each

So keys of up to 15 bytes are never mistaken for one another; two longer ones are mistaken with a chance of 1
in 2**120. 128 MiB hold 4.4 million keys, where the dictionary held 0.8 million. Measured with CPython 3.11: a
look-up in the table takes two to three times as long as in the dictionary, and twelve times as long for a
missing key in a full table; one round fewer saves more than that.
"""

from __future__ import annotations

from mmap import mmap

CELL_BYTES = 16
LONGEST_PLAIN_KEY_BYTES = CELL_BYTES - 1
#: Memory for a key in the dictionary: two objects, and the slot at the usual load, also while it grows.
ENTRY_BYTES = 128
#: Memory for a key in the table.
SLOT_BYTES = CELL_BYTES + 8
#: In a fuller table a search takes too long.
MAX_LOAD = 0.9
#: The dictionary gets this fraction of the budget: it still exists while the table is filled from it.
_DICTIONARY_SHARE = 8
#: The last byte of a cell: 0 in a free one, n + 1 for a key of n bytes, this for a digest.
_DIGEST = b"\xff"
_ENDS = tuple([bytes(LONGEST_PLAIN_KEY_BYTES - n) + bytes([n + 1]) for n in range(CELL_BYTES)])


class KeyMap:
    """Key -> newest offset.

    `budget_bytes` is exceeded by one key at most. `most_keys` bounds the number of keys, so that small logs
    take less.
    """

    def __init__(self, budget_bytes: int, most_keys: int = 1 << 62, *, load: float = MAX_LOAD) -> None:
        self._budget_bytes = budget_bytes
        self._most_keys = most_keys
        self._load = min(load, MAX_LOAD)
        self._offsets: dict[bytes, int] = {}
        self._left = budget_bytes // _DICTIONARY_SHARE // ENTRY_BYTES
        self._table: _Table | None = None
        #: Everything up to this offset is in the map; -1 = nothing.
        self.latest_offset = -1

    def __len__(self) -> int:
        return len(self._offsets) if self._table is None else self._table.count

    def put(self, key: bytes, offset: int) -> bool:
        """Note the newer offset of a key; False if there is no room for another key. One always fits."""
        cell = key + _ENDS[len(key)] if len(key) < CELL_BYTES else _digest(key)
        if self._table is None:
            offsets = self._offsets
            if cell in offsets or self._left > 0 or not offsets:
                if cell not in offsets:
                    self._left -= 1
                offsets[cell] = self.latest_offset = offset
                return True
            self._table = self._grown()
        if not self._table.put(cell, offset):
            return False
        self.latest_offset = offset
        return True

    def get(self, key: bytes) -> int:
        """The newest offset of a key, -1 if it is not known."""
        cell = key + _ENDS[len(key)] if len(key) < CELL_BYTES else _digest(key)
        return self._offsets.get(cell, -1) if self._table is None else self._table.get(cell)

    def _grown(self) -> _Table:
        """Move the dictionary's keys into a new table."""
        budget_bytes = self._budget_bytes - self._budget_bytes // _DICTIONARY_SHARE
        slots = min(budget_bytes // SLOT_BYTES, int(self._most_keys / self._load) + 1)
        table = _Table(slots, self._load)
        offsets = self._offsets
        while offsets:
            table.put(*offsets.popitem())
        return table


class _Table:
    """An open hash table without objects. Each key has its own search step; the number of slots is a prime,
    so every step visits all of them.
    """

    def __init__(self, slots: int, load: float) -> None:
        self._most = max(1, int(slots * load))
        self._slots = slots = _prime_up_to(slots)
        self.count = 0
        # Anonymous memory is zero, and taken when it is first written to.
        self._cells = mmap(-1, slots * CELL_BYTES)
        self._offsets = memoryview(mmap(-1, slots * 8)).cast("q")

    def put(self, cell: bytes, offset: int) -> bool:
        slot, is_there = self._find(cell)
        if not is_there:
            if self.count >= self._most:
                return False
            self.count += 1
            at = slot * CELL_BYTES
            self._cells[at : at + CELL_BYTES] = cell
        self._offsets[slot] = offset
        return True

    def get(self, cell: bytes) -> int:
        slot, is_there = self._find(cell)
        return self._offsets[slot] if is_there else -1

    def _find(self, cell: bytes) -> tuple[int, bool]:
        """(slot, True) if the key is there, else (a free slot, False). A slot is always free."""
        cells, slots = self._cells, self._slots
        number = hash(cell)
        slot = number % slots
        step = 0
        while True:
            at = slot * CELL_BYTES
            found = cells[at : at + CELL_BYTES]
            if found == cell:
                return slot, True
            if not found[-1]:
                return slot, False
            step = step or 1 + (number >> 32) % (slots - 1)
            slot = (slot + step) % slots


def _prime_up_to(number: int) -> int:
    """The greatest prime up to `number`; at least 11, so that a slot is free at any load."""
    while number > 11 and not all(number % divisor for divisor in range(2, int(number**0.5) + 1)):
        number -= 1
    return max(number, 11)


def _digest(key: bytes) -> bytes:
    from hashlib import blake2b  # costs a start that cleans nothing several milliseconds

    return blake2b(key, digest_size=LONGEST_PLAIN_KEY_BYTES).digest() + _DIGEST
