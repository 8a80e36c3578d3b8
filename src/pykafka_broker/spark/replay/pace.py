"""A rate limit. Pure: the caller has the clock."""

from __future__ import annotations


class Pace:
    """Delays writes so that neither rate is exceeded."""

    def __init__(self, records_per_s: float | None, bytes_per_s: float | None, began_s: float) -> None:
        self._records_per_s = records_per_s
        self._bytes_per_s = bytes_per_s
        self._free_s = began_s

    def wait_s(self, records: int, size_bytes: int, now_s: float) -> float:
        """The time to wait before these are written; they count against the rate from now on."""
        begin_s = max(self._free_s, now_s)
        takes_s = max(
            records / self._records_per_s if self._records_per_s else 0.0,
            size_bytes / self._bytes_per_s if self._bytes_per_s else 0.0,
        )
        self._free_s = begin_s + takes_s
        return begin_s - now_s
