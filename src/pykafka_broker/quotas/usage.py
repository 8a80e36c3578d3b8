"""The measures of many accounts. An account that was idle for an hour is forgotten, as in Apache Kafka; if
there are too many, the least recently used one is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

#: An account that was idle for this time starts anew.
IDLE_MS = 3_600_000
#: The most accounts that are remembered, because clients choose their ids.
MAX_ACCOUNTS = 100_000

Measure = TypeVar("Measure")


class Usage(Generic[Measure]):
    """Measures by account, in the order of their last use."""

    __slots__ = ("_by_account", "_max_accounts", "_new")

    def __init__(self, new: Callable[[], Measure], max_accounts: int = MAX_ACCOUNTS) -> None:
        self._new = new
        self._max_accounts = max_accounts
        self._by_account: dict[Hashable, tuple[Measure, int]] = {}

    def __len__(self) -> int:
        return len(self._by_account)

    def of(self, account: Hashable, now_ms: int) -> Measure:
        """The measure of an account; marks the account as used."""
        accounts = self._by_account
        found = accounts.pop(account, None)
        measure = self._new() if found is None or now_ms - found[1] >= IDLE_MS else found[0]
        accounts[account] = measure, now_ms
        while True:
            oldest, (_, used_ms) = next(iter(accounts.items()))
            if now_ms - used_ms < IDLE_MS and len(accounts) <= self._max_accounts:
                return measure
            del accounts[oldest]

    def all(self) -> list[tuple[Any, Measure]]:
        """Every account and its measure."""
        return [(account, measure) for account, (measure, _) in self._by_account.items()]

    def clear(self) -> None:
        """Forget all accounts."""
        self._by_account.clear()
