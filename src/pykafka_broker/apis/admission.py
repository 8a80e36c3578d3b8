"""A handler behind the checks that its API declares: authorization and quotas; or behind the way to the
active controller, which then makes these checks.

Where everything is allowed the handler itself is called: a broker without ACLs and quotas pays nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Generator
from types import coroutine
from typing import Any, cast

from pykafka_broker.apis.api import Api, Handler, Later
from pykafka_broker.apis.context import Context
from pykafka_broker.apis.forwarding import forwarded
from pykafka_broker.apis.needs import Need
from pykafka_broker.apis.ports.authorizer import ALLOW_ALL, Authorizer
from pykafka_broker.apis.ports.quotas import UNLIMITED, Quota, Quotas
from pykafka_broker.protocol.compile import buffers_length
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.fetch import FetchResponse
from pykafka_broker.protocol.messages.produce import ProduceRequest


def admitted(
    api: Api[Any], authorizer: Authorizer, quotas: Quotas, *, may_forward: bool = False
) -> Handler[Any]:
    """The function that the dispatch calls for `api`; with `may_forward`, on a listener of brokers.

    A refused request raises KafkaError in its handler's place, so that `error_response` answers it; an API
    without one has its connection closed.

    Raises:
        NotImplementedError: `authorizer` may refuse something, and the handler does not ask it yet about a
            need that only a handler can check.
    """
    handle = api.handle
    if authorizer is not ALLOW_ALL:
        if unchecked := [str(one) for need in api.needs for one in need.unchecked()]:
            raise NotImplementedError(
                f"{api.name} needs {', '.join(unchecked)}, and its handler does not ask the authorizer yet: "
                "only ALLOW_ALL can be in force"
            )
        if needs := [need for need in api.needs if need.names is not None]:
            handle = _authorized(handle, needs, authorizer)
    if may_forward and api.forwarded:
        handle = forwarded(api, handle)
    if quotas is not UNLIMITED and api.quota is not Quota.EXEMPT:
        handle = _within_quota(handle, api.quota, quotas)
    return handle


def _authorized(handle: Handler[Any], needs: list[Need], authorizer: Authorizer) -> Handler[Any]:
    def handle_if_authorized(request: Any, ctx: Context[Any]) -> Any:
        for need in needs:
            refusal = need.refusal(request, ctx, authorizer)
            if refusal is not ErrorCode.NONE:
                raise KafkaError(refusal)
        return handle(request, ctx)

    return handle_if_authorized


def _within_quota(handle: Handler[Any], quota: Quota, quotas: Quotas) -> Handler[Any]:
    """Record the use of a request, answer with its throttle time, and mute the connection (KIP-219)."""

    def handle_and_record(request: Any, ctx: Context[Any]) -> Any:
        use = _Use(quota, quotas, ctx)
        if quota is Quota.PRODUCE:
            # Now: the records lie in the receive buffer, which the handler gives back.
            use.record(Quota.PRODUCE, _written_bytes(request))
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
    """Return the result of `awaitable`; the time it runs, without the time it waits, counts as spent."""
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


class _Use:
    """The quota use of one request, and the throttle time of its client."""

    __slots__ = ("_ctx", "_quota", "_throttle_ms", "quotas", "spent_ns")

    def __init__(self, quota: Quota, quotas: Quotas, ctx: Context[Any]) -> None:
        self.quotas = quotas
        self.spent_ns = 0
        self._quota = quota
        self._ctx = ctx
        self._throttle_ms = 0

    def record(self, quota: Quota, amount: int) -> None:
        self._throttle_ms = max(self._throttle_ms, self.quotas.record(quota, self._ctx, amount))

    def answered(self, answer: Any) -> Any:
        """The answer with the time that its client has to wait; its connection is muted for as long."""
        if self._quota is Quota.FETCH and isinstance(answer, FetchResponse):
            self.record(Quota.FETCH, _answered_bytes(answer))
        self.record(Quota.REQUEST, self.spent_ns)
        if hasattr(answer, "throttle_time_ms"):
            self._throttle_ms = max(self._throttle_ms, answer.throttle_time_ms)
            answer.throttle_time_ms = self._throttle_ms
        self._mute()
        return answer

    def failed(self) -> None:
        """The handler raised: the time it used counts, and the connection is muted."""
        self.record(Quota.REQUEST, self.spent_ns)
        self._mute()

    def _mute(self) -> None:
        if self._throttle_ms:
            self._ctx.connection.throttle(self._throttle_ms)


def _written_bytes(request: ProduceRequest) -> int:
    return sum(len(data.records or b"") for topic in request.topic_data for data in topic.partition_data)


def _answered_bytes(answer: FetchResponse) -> int:
    return sum(
        0 if data.records is None else buffers_length(data.records)
        for topic in answer.responses
        for data in topic.partitions
    )
