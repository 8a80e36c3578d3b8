"""The quotas of clients in the metadata, and the use of each account (`apis/ports/quotas.py`).

Bytes and processing time are rates over `quota.window.num` samples. Each created or deleted partition takes a
token from a bucket that holds `controller.quota.window.num` samples. As in Apache Kafka the wait for
processing time is at most one sample, and if any client has a quota of a kind, the use of all clients is
counted. Each node counts only its own requests.

Processing time is the time in the event loop; reading and writing sockets does not count
(docs/security.md, "Different on purpose").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import TYPE_CHECKING

from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.cluster.image import QuotaEntity
from pykafka_broker.machine.history import Tell, unheard
from pykafka_broker.quotas.accounts import Account, Names, account_of, limits_of
from pykafka_broker.quotas.rates import Average, Rate, TokenBucket, Window
from pykafka_broker.quotas.throttles import throttle
from pykafka_broker.quotas.usage import Usage

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.authorizer import Requester
    from pykafka_broker.machine.clock import Clock

NANOSECONDS_PER_PERCENT = 10_000_000


class _Kept:
    """A quota, and the milliseconds that each account over it was told to wait."""

    def __init__(self, window: Window) -> None:
        self.limits: dict[Names, float] = {}
        self.window = window
        self.waits = Usage(Average)

    def throttled(self, account: Account, wait_ms: int, now_ms: int) -> int:
        """`wait_ms`, which counts unless it is 0."""
        if wait_ms:
            self.waits.of(account, now_ms).record(self.window, wait_ms, now_ms)
        return wait_ms


class _Rates(_Kept):
    """A quota on a rate."""

    def __init__(self, window: Window, *, unit: float = 1, longest_wait_ms: float = inf) -> None:
        super().__init__(window)
        self._unit = unit
        self._longest_wait_ms = longest_wait_ms
        self.usage = Usage(Rate)

    def record(self, user: str, client_id: str, amount: float, now_ms: int) -> int:
        account, bound = account_of(self.limits, user, client_id)
        rate = self.usage.of(account, now_ms)
        if amount:
            rate.record(self.window, amount / self._unit, now_ms)
        wait_ms = int(min(rate.wait_ms(self.window, bound, now_ms), self._longest_wait_ms))
        return self.throttled(account, wait_ms, now_ms)

    def used(self, now_ms: int) -> list[tuple[Account, float]]:
        """The rate of each account."""
        return [(account, rate.per_second(self.window, now_ms)) for account, rate in self.usage.all()]


class _Tokens(_Kept):
    """A quota on tokens."""

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self.usage = Usage(TokenBucket)

    def record(self, user: str, client_id: str, amount: float, now_ms: int) -> int:
        account, bound = account_of(self.limits, user, client_id)
        if bound == inf:
            return 0
        bucket = self.usage.of(account, now_ms)
        if amount:
            bucket.take(self.window, bound, amount, now_ms)
        return self.throttled(account, bucket.wait_ms(self.window, bound, now_ms), now_ms)

    def used(self, now_ms: int) -> list[tuple[Account, float]]:
        """The tokens that each account has left."""
        accounts = [
            (account, bucket, account_of(self.limits, *account)[1]) for account, bucket in self.usage.all()
        ]
        return [
            (account, bucket.tokens(self.window, bound, now_ms))
            for account, bucket, bound in accounts
            if bound < inf
        ]


class ClientQuotas:
    """Counts the use of users and client ids against the quotas of the newest metadata.

    `processing_ns` measures processing time. `tell` takes the throttles.
    """

    def __init__(
        self,
        clock: Clock,
        processing_ns: Callable[[], int],
        window: Window = Window(),  # noqa: B008
        controller_window: Window = Window(),  # noqa: B008
        tell: Tell = unheard,
    ) -> None:
        #: Whether there is any quota.
        self.is_active = False
        self._clock = clock
        self._processing_ns = processing_ns
        self._tell = tell
        self._fetched = _Rates(window)
        self._spent = _Rates(window, unit=NANOSECONDS_PER_PERCENT, longest_wait_ms=window.sample_ms)
        self._kept: dict[Quota, _Rates | _Tokens] = {
            Quota.PRODUCE: _Rates(window),
            Quota.FETCH: self._fetched,
            Quota.REQUEST: self._spent,
            Quota.CONTROLLER_MUTATION: _Tokens(controller_window),
        }
        self._quotas: Mapping[QuotaEntity, Mapping[str, float]] = {}

    def apply(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Replace all quotas; the counted use stays."""
        if quotas is self._quotas:
            return
        self._quotas = quotas
        self.is_active = False
        for quota, kept in self._kept.items():
            kept.limits = limits_of(quotas, quota.value)
            if kept.limits:
                self.is_active = True
            else:
                kept.usage.clear()
                kept.waits.clear()

    def record(self, quota: Quota, requester: Requester, amount: int) -> int:
        """Count `amount`; return the milliseconds to wait (`Quotas.record`)."""
        kept = self._kept[quota]
        if not kept.limits:
            return 0
        user = requester.principal.partition(":")[2]
        wait_ms = kept.record(user, requester.client_id or "", amount, self._clock.monotonic_ms())
        if wait_ms:
            self._tell(throttle(quota, kept.limits, requester, wait_ms))
        return wait_ms

    def most_bytes_fetched(self, requester: Requester) -> float:
        """The bytes that an idle consumer may fetch at once: its quota over the window's whole samples."""
        limits = self._fetched.limits
        if not limits:
            return inf
        user = requester.principal.partition(":")[2]
        _, bound = account_of(limits, user, requester.client_id or "")
        return bound * self._fetched.window.whole_ms / 1_000

    def used(self, quota: Quota) -> list[tuple[Account, float]]:
        """The use of a quota by user and client id, with "" for any: of one on a rate the rate, in units of
        the quota, and of one on tokens the tokens that are left.
        """
        return self._kept[quota].used(self._clock.monotonic_ms())

    def waits_ms(self, quota: Quota) -> list[tuple[Account, float]]:
        """The average throttle time that a quota has caused in the window, by account; 0 without one."""
        kept, now_ms = self._kept[quota], self._clock.monotonic_ms()
        waits = dict(kept.waits.all())
        return [
            (account, waits[account].of(kept.window, now_ms) if account in waits else 0.0)
            for account, _ in kept.usage.all()
        ]

    def processing_ns(self) -> int:
        """Nanoseconds since some moment; 0 while no processing time is counted."""
        return self._processing_ns() if self._spent.limits else 0
