"""The measures of Apache Kafka's quotas: a rate over the samples of a window, and a bucket of tokens.

A rate is the sum of the samples by the time that they span. The window has `samples` of `sample_ms` each, the
last of which is being filled: with the defaults ten whole seconds and the one that runs. A new rate counts as
if the window had been empty before. How long a client waits that used more than its bound is what the sum
takes to be within the bound again, if nothing more is used.
(Apache's Rate, SampledStat, TokenBucket and QuotaUtils.)
"""

from __future__ import annotations

from math import floor, inf, isnan

from pykafka_broker.system.named_tuple import NamedTuple

#: The longest wait, which an int32 of an answer has room for.
MAX_THROTTLE_MS = 2**31 - 1


class Window(NamedTuple):
    """The time that is looked at: `quota.window.num` samples of `quota.window.size.seconds` each."""

    samples: int = 11
    sample_ms: int = 1_000

    @property
    def whole_ms(self) -> int:
        """The time of the samples without the one that is being filled."""
        return (self.samples - 1) * self.sample_ms


class _Sample:
    __slots__ = ("amount", "last_ms", "start_ms")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.amount = 0.0


class Rate:
    """What was used in the window, per second."""

    __slots__ = ("_current", "_samples")

    def __init__(self) -> None:
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, window: Window, amount: float, now_ms: int) -> None:
        """Count `amount`; a negative one takes back."""
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.start_ms >= window.sample_ms:
            # One more than the window has: the oldest overlaps its beginning.
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
        """How long to wait until the rate is within `bound`, 0 while it is."""
        rate = self.per_second(window, now_ms)
        if rate <= bound:
            return 0
        return _rounded_ms((rate - bound) / bound * self._span_ms(window, now_ms))

    def _span_ms(self, window: Window, now_ms: int) -> int:
        """The time that the rate is taken over: at least the whole samples of the window."""
        oldest_ms = now_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= window.samples * window.sample_ms:
                sample.reset(now_ms)
            oldest_ms = min(oldest_ms, sample.start_ms)
        elapsed_ms = now_ms - oldest_ms
        missing = window.samples - 1 - elapsed_ms // window.sample_ms
        return max(1, elapsed_ms + max(0, missing) * window.sample_ms)


class TokenBucket:
    """Tokens that come back at the rate of the bound, up to those of a window; use may leave a debt."""

    __slots__ = ("_refilled_ms", "_tokens")

    def __init__(self) -> None:
        #: Whatever the bound is, the bucket is full at the first look.
        self._tokens = inf
        self._refilled_ms = 0

    def take(self, window: Window, bound: float, amount: float, now_ms: int) -> None:
        """Use `amount` of tokens."""
        self._refill(window, bound, now_ms)
        self._tokens -= amount

    def wait_ms(self, window: Window, bound: float, now_ms: int) -> int:
        """How long to wait until there is no debt, 0 while there is none."""
        self._refill(window, bound, now_ms)
        return 0 if self._tokens >= 0 else _rounded_ms(-self._tokens / bound * 1_000)

    def _refill(self, window: Window, bound: float, now_ms: int) -> None:
        most = window.samples * window.sample_ms / 1_000 * bound
        self._tokens = min(most, self._tokens + bound * (now_ms - self._refilled_ms) / 1_000)
        self._refilled_ms = now_ms


def _rounded_ms(wait_ms: float) -> int:
    """As Java rounds; a bound that is no number makes nobody wait."""
    return 0 if isnan(wait_ms) else floor(min(wait_ms, MAX_THROTTLE_MS) + 0.5)
