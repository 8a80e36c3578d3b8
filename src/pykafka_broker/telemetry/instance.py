"""One instance of a client: when it may ask what to push, when it may push, and what it is refused.

    asked(instance, now_ms)               -> (instance, error)
    pushed(instance, push, now_ms, ...)   -> (instance, error)

The rules are those of Apache Kafka's ClientMetricsManager, also where they are odd: a push that is refused
counts for the interval, and after one that came too late (the instance had said that it ends) the next is
accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.protocol.messages.push_telemetry import PushTelemetryRequest

#: Before any moment of a clock.
NEVER_MS = -(1 << 62)
#: An instance is not forgotten before this time.
LEAST_EXPIRY_MS = 60_000
#: An instance that is silent for this many intervals is forgotten.
SILENT_INTERVALS = 3
CODECS = frozenset(map(int, Codec))
#: After these errors a client asks again at once.
ASKS_AT_ONCE_AFTER = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


class Instance(NamedTuple):
    """An instance of a client, and what it is asked to push. Times are of the monotonic clock."""

    subscription_id: int
    #: The version of all subscriptions from which it was made.
    version: int
    metrics: tuple[str, ...]
    push_interval_ms: int
    asked_ms: int = NEVER_MS
    pushed_ms: int = NEVER_MS
    #: Its newest push said that it was the last one.
    is_terminating: bool = False
    last_error: ErrorCode = ErrorCode.NONE

    @property
    def expiry_ms(self) -> int:
        """How long it may be silent before it is forgotten."""
        return max(LEAST_EXPIRY_MS, SILENT_INTERVALS * self.push_interval_ms)


def asked(instance: Instance, now_ms: int) -> tuple[Instance, ErrorCode]:
    """It asks what to push."""
    if now_ms - max(instance.asked_ms, instance.pushed_ms) >= instance.push_interval_ms:
        instance = instance._replace(asked_ms=now_ms)
    elif instance.last_error not in ASKS_AT_ONCE_AFTER:
        return instance, ErrorCode.THROTTLING_QUOTA_EXCEEDED
    return instance._replace(last_error=ErrorCode.NONE), ErrorCode.NONE


def pushed(
    instance: Instance, push: PushTelemetryRequest, now_ms: int, max_bytes: int
) -> tuple[Instance, ErrorCode]:
    """It pushes; the metrics themselves are not looked at yet."""
    before, instance = instance, instance._replace(is_terminating=push.terminating)
    if before.is_terminating:
        return _refused(instance, ErrorCode.INVALID_REQUEST)
    # The first push after the question comes when the client wants, so that not all clients push at once.
    if instance.asked_ms > instance.pushed_ms or now_ms - instance.pushed_ms >= instance.push_interval_ms:
        instance = instance._replace(pushed_ms=now_ms)
    elif not push.terminating:
        return _refused(instance, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    if push.subscription_id != instance.subscription_id:
        return _refused(instance, ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
    if push.compression_type not in CODECS:
        return _refused(instance, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if len(push.metrics) > max_bytes:
        return _refused(instance, ErrorCode.TELEMETRY_TOO_LARGE)
    return instance._replace(last_error=ErrorCode.NONE), ErrorCode.NONE


def _refused(instance: Instance, error: ErrorCode) -> tuple[Instance, ErrorCode]:
    return instance._replace(last_error=error), error
