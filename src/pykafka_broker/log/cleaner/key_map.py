"""The newest offset of every key in the dirty part of a log, within a budget of memory.

A round takes as many keys as fit; the next round goes on where the map was full. Keys longer than a digest
are known by that (21 bytes of BLAKE2b, longer than any key that is kept as it is, so that no key is mistaken
for a digest).
"""

from __future__ import annotations

_DIGEST_BYTES = 21
LONGEST_PLAIN_KEY_BYTES = 20
#: What CPython takes for an entry beside the bytes of the key: two objects, and the table's slot at its usual
#: load.
ENTRY_BYTES = 128


class KeyMap:
    """Key -> newest offset."""

    def __init__(self, budget_bytes: int) -> None:
        self._left = budget_bytes
        self._offsets: dict[bytes, int] = {}
        #: Everything up to this offset is in the map; -1 = nothing.
        self.latest_offset = -1

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> bool:
        """Note the newer offset of a key; False if there is no room for another key. One always fits."""
        if len(key) > LONGEST_PLAIN_KEY_BYTES:
            key = _digest(key)
        offsets = self._offsets
        if key not in offsets:
            self._left -= ENTRY_BYTES + len(key)
            if self._left < 0 and offsets:
                return False
        offsets[key] = self.latest_offset = offset
        return True

    def get(self, key: bytes) -> int:
        """The newest offset of a key, -1 if it is not known."""
        if len(key) > LONGEST_PLAIN_KEY_BYTES:
            key = _digest(key)
        return self._offsets.get(key, -1)


def _digest(key: bytes) -> bytes:
    from hashlib import blake2b  # costs a start that cleans nothing several milliseconds

    return blake2b(key, digest_size=_DIGEST_BYTES).digest()
