"""The measures of Apache Kafka's quotas: a rate and an average over the samples of a window, and a token
bucket.

A rate is the sum of the samples divided by the time that they span. The window has `samples` of `sample_ms`
each, the last of which is being filled: with the defaults ten whole seconds and the current one. Until they
are full, a new rate divides by their full time. A client above its bound waits until the rate would be within
the bound again without further use.

(Apache Kafka's Rate, Avg, SampledStat, TokenBucket and QuotaUtils.)
"""

from __future__ import annotations

from math import floor, inf, isnan

from pykafka_broker.system.named_tuple import NamedTuple

#: The longest wait, the largest int32.
MAX_THROTTLE_MS = 2**31 - 1


class Window(NamedTuple):
    """The time window: `quota.window.num` samples of `quota.window.size.seconds` each."""

    samples: int = 11
    sample_ms: int = 1_000

    @property
    def whole_ms(self) -> int:
        """The time of the whole samples, without the one that is being filled."""
        return (self.samples - 1) * self.sample_ms


class _Sample:
    __slots__ = ("amount", "last_ms", "start_ms")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.amount = 0.0


class Rate:
    """The use in the window, per second."""

    __slots__ = ("_current", "_samples")

    def __init__(self) -> None:
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, window: Window, amount: float, now_ms: int) -> None:
        """Count `amount`; a negative amount is subtracted."""
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.start_ms >= window.sample_ms:
            # One sample more than the window has, because the oldest overlaps the window's beginning.
            self._current = (self._current + 1) % (window.samples + 1)
            if self._current >= len(samples):
                sample = _Sample(now_ms)
                samples.append(sample)
            else:
                sample = samples[self._current]
                sample.reset(now_ms)
        sample.amount += amount
        sample.last_ms = now_ms

    def per_second(self, window: Window, now_ms: int) -> float:
        """The rate now."""
        span_ms = self._span_ms(window, now_ms)
        return sum([sample.amount for sample in self._samples]) / (span_ms / 1_000)

    def wait_ms(self, window: Window, bound: float, now_ms: int) -> int:
        """How long to wait until the rate is within `bound`; 0 if it is."""
        rate = self.per_second(window, now_ms)
        if rate <= bound:
            return 0
        return _rounded_ms((rate - bound) / bound * self._span_ms(window, now_ms) if bound else inf)

    def _span_ms(self, window: Window, now_ms: int) -> int:
        """The time over which the rate is taken: at least the whole samples of the window."""
        oldest_ms = now_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= window.samples * window.sample_ms:
                sample.reset(now_ms)
            oldest_ms = min(oldest_ms, sample.start_ms)
        elapsed_ms = now_ms - oldest_ms
        missing = window.samples - 1 - elapsed_ms // window.sample_ms
        return max(1, elapsed_ms + max(0, missing) * window.sample_ms)


class Average:
    """The average of the amounts in the window."""

    __slots__ = ("_amounts", "_times")

    def __init__(self) -> None:
        self._amounts = Rate()
        self._times = Rate()

    def record(self, window: Window, amount: float, now_ms: int) -> None:
        """Count `amount`."""
        self._amounts.record(window, amount, now_ms)
        self._times.record(window, 1, now_ms)

    def of(self, window: Window, now_ms: int) -> float:
        """The average now; 0 if the window is empty."""
        times = self._times.per_second(window, now_ms)
        return self._amounts.per_second(window, now_ms) / times if times else 0.0


class TokenBucket:
    """Tokens that are refilled at the rate of the bound, up to a window's worth; use may leave a debt."""

    __slots__ = ("_refilled_ms", "_tokens")

    def __init__(self) -> None:
        #: The bucket starts full: the first refill cuts this to the bound of the window.
        self._tokens = inf
        self._refilled_ms = 0

    def take(self, window: Window, bound: float, amount: float, now_ms: int) -> None:
        """Use `amount` of tokens."""
        self._refill(window, bound, now_ms)
        self._tokens -= amount

    def wait_ms(self, window: Window, bound: float, now_ms: int) -> int:
        """How long to wait until there is no debt; 0 if there is none."""
        self._refill(window, bound, now_ms)
        return 0 if self._tokens >= 0 else _rounded_ms(-self._tokens / bound * 1_000)

    def tokens(self, window: Window, bound: float, now_ms: int) -> float:
        """The tokens that are left; a debt is negative."""
        self._refill(window, bound, now_ms)
        return self._tokens

    def _refill(self, window: Window, bound: float, now_ms: int) -> None:
        most = window.samples * window.sample_ms / 1_000 * bound
        self._tokens = min(most, self._tokens + bound * (now_ms - self._refilled_ms) / 1_000)
        self._refilled_ms = now_ms


def _rounded_ms(wait_ms: float) -> int:
    """Rounded as in Java; with a bound of NaN there is no wait."""
    return 0 if isnan(wait_ms) else floor(min(wait_ms, MAX_THROTTLE_MS) + 0.5)
