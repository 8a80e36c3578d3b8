"""Wraps a handler with the checks that its API declares: authorization and quotas. For a forwarded request
the active controller makes these checks.

Without an authorizer there is no check of ACLs, and if no quota is set the only cost is one check per
request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Generator
from types import coroutine
from typing import Any, cast

from pykafka_broker.apis.api import Api, Check, Handler, Later
from pykafka_broker.apis.context import Context
from pykafka_broker.apis.fetching.replica import replica_id_of
from pykafka_broker.apis.forwarding import forwarded
from pykafka_broker.apis.needs import Need
from pykafka_broker.apis.ports.authorizer import ALLOW_ALL, Authorizer
from pykafka_broker.apis.ports.quotas import UNLIMITED, Quota, Quotas
from pykafka_broker.protocol.compile import encoded_size
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.fetch import FetchRequest
from pykafka_broker.protocol.messages.headers import request_header_version
from pykafka_broker.protocol.messages.produce import ProduceRequest

#: API key, version, correlation id and the length of the client id; newer headers end with a count of tags.
HEADER_BYTES = 10
FLEXIBLE_HEADER_VERSION = 2


def admitted(
    api: Api[Any],
    authorizer: Authorizer,
    quotas: Quotas,
    *,
    may_forward: bool = False,
    mutes: bool = True,
) -> Handler[Any]:
    """The function that the dispatch calls for `api`; with `may_forward`, on a listener of brokers.

    Without `mutes` a client over its quota gets its throttle time, but the connection is not muted: it
    belongs to the broker that has forwarded the request, and that broker mutes the client.

    `api.check` comes first: a request that it refuses is treated as unreadable.

    An unauthorized request raises KafkaError instead of calling its handler, so that `error_response` answers
    it; without `error_response` the connection is closed.

    Raises:
        NotImplementedError: there is an authorizer, and the handler does not check a need that only a handler
            can check.
    """
    handle, leaderless = api.handle, api.leaderless
    if authorizer is not ALLOW_ALL:
        if unchecked := [str(one) for need in api.needs for one in need.unchecked()]:
            raise NotImplementedError(
                f"{api.name} needs {', '.join(unchecked)}, and its handler does not ask the authorizer yet: "
                "only ALLOW_ALL can be in force"
            )
        if needs := [need for need in api.needs if need.names is not None]:
            handle = _authorized(handle, needs, authorizer)
            leaderless = None if leaderless is None else _authorized(leaderless, needs, authorizer)
    if may_forward and api.forwarded:
        handle = forwarded(api, handle, leaderless)
    if quotas is not UNLIMITED and api.quota is not Quota.EXEMPT:
        handle = _within_quota(handle, api.quota, quotas, mutes=mutes)
    return handle if api.check is None else _checked(handle, api.check)


def _checked(handle: Handler[Any], check: Check) -> Handler[Any]:
    def handle_if_readable(request: Any, ctx: Context[Any]) -> Any:
        check(request)
        return handle(request, ctx)

    return handle_if_readable


def _authorized(handle: Handler[Any], needs: list[Need], authorizer: Authorizer) -> Handler[Any]:
    def handle_if_authorized(request: Any, ctx: Context[Any]) -> Any:
        for need in needs:
            refusal = need.refusal(request, ctx, authorizer)
            if refusal is not ErrorCode.NONE:
                raise KafkaError(refusal)
        return handle(request, ctx)

    return handle_if_authorized


def _within_quota(handle: Handler[Any], quota: Quota, quotas: Quotas, *, mutes: bool) -> Handler[Any]:
    """Record the use of a request, answer with its throttle time, and mute the connection (KIP-219)."""

    def handle_and_record(request: Any, ctx: Context[Any]) -> Any:
        if not quotas.is_active:
            return handle(request, ctx)
        if quota is Quota.FETCH and isinstance(request, FetchRequest) and replica_id_of(request) >= 0:
            return handle(request, ctx)
        use = _Use(quotas, ctx, mutes=mutes)
        if quota is Quota.PRODUCE and isinstance(request, ProduceRequest):
            # Now, because the records are in the receive buffer, which the handler may release.
            use.written_bytes = _header_size(ctx) + encoded_size(request, ctx.version)
            use.is_time_exempt = request.acks == 0
        started_ns = quotas.processing_ns()
        try:
            answer = handle(request, ctx)
        except Exception:
            use.spent_ns += quotas.processing_ns() - started_ns
            use.failed()
            raise
        use.spent_ns += quotas.processing_ns() - started_ns
        if isinstance(answer, Later):
            return Later(_answered_later(answer.awaitable, use))
        if isinstance(answer, Coroutine):
            return _answered_later(answer, use)
        return use.answered(answer)

    return handle_and_record


async def _answered_later(awaitable: Awaitable[Any], use: _Use) -> Any:
    try:
        answer = await _timed(awaitable, use)
    except Exception:
        use.failed()
        raise
    return use.answered(answer)


@coroutine
def _timed(awaitable: Awaitable[Any], use: _Use) -> Generator[Any, Any, Any]:
    """The result of `awaitable`; the time it runs, but not the time it waits, counts as spent."""
    processing_ns = use.quotas.processing_ns
    steps = awaitable.__await__()
    # Every awaitable of asyncio is resumed with None or an exception.
    thrown: BaseException | None = None
    while True:
        started_ns = processing_ns()
        try:
            waits_for = (
                next(steps) if thrown is None else cast("Coroutine[Any, Any, Any]", steps).throw(thrown)
            )
        except StopIteration as end:
            return end.value
        finally:
            use.spent_ns += processing_ns() - started_ns
        try:
            yield waits_for
            thrown = None
        except BaseException as error:
            thrown = error


def _header_size(ctx: Context[Any]) -> int:
    """The bytes of the request's header, without unknown tags."""
    size = HEADER_BYTES + len((ctx.client_id or "").encode())
    return size + 1 if request_header_version(ctx.api_key, ctx.version) >= FLEXIBLE_HEADER_VERSION else size


class _Use:
    """The quota use of one request, and the throttle time of its client."""

    __slots__ = ("_ctx", "_mutes", "_throttle_ms", "is_time_exempt", "quotas", "spent_ns", "written_bytes")

    def __init__(self, quotas: Quotas, ctx: Context[Any], *, mutes: bool) -> None:
        self.quotas = quotas
        self.spent_ns = 0
        #: The bytes of a Produce request.
        self.written_bytes = 0
        #: Whether the time does not count: a producer with acks=0 gets no throttle time.
        self.is_time_exempt = False
        self._ctx = ctx
        self._mutes = mutes
        self._throttle_ms = 0

    def record(self, quota: Quota, amount: int) -> None:
        self._throttle_ms = max(self._throttle_ms, self.quotas.record(quota, self._ctx, amount))

    def answered(self, answer: Any) -> Any:
        """The answer with the throttle time of its client; mutes the connection for that time."""
        self._record_all()
        if hasattr(answer, "throttle_time_ms"):
            self._throttle_ms = max(self._throttle_ms, answer.throttle_time_ms)
            answer.throttle_time_ms = self._throttle_ms
        self._mute()
        return answer

    def failed(self) -> None:
        """Count the use of a handler that raised, and mute the connection."""
        self._record_all()
        self._mute()

    def _record_all(self) -> None:
        if self.written_bytes:
            self.record(Quota.PRODUCE, self.written_bytes)
        if not self.is_time_exempt:
            self.record(Quota.REQUEST, self.spent_ns)

    def _mute(self) -> None:
        if self._throttle_ms and self._mutes:
            self._ctx.connection.throttle(self._throttle_ms)
