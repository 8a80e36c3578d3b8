"""A handler behind the checks that its API declares: who may ask, and how often.

Where everything is allowed the handler itself is called: a broker without ACLs and quotas pays nothing.
"""

from __future__ import annotations

from typing import Any

from pykafka_broker.apis.api import Api, Handler
from pykafka_broker.apis.context import RequestContext
from pykafka_broker.apis.needs import Need
from pykafka_broker.apis.ports.authorizer import ALLOW_ALL, Authorizer
from pykafka_broker.apis.ports.quotas import UNLIMITED, Quota, Quotas
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


def admitted(api: Api, authorizer: Authorizer, quotas: Quotas) -> Handler:
    """What the dispatch calls for `api`.

    A refused request raises KafkaError in its handler's place, so that `error_response` answers it; an API
    without one has its connection closed.
    """
    handle = api.handle
    needs = [need for need in api.needs if need.names is not None]
    if needs and authorizer is not ALLOW_ALL:
        handle = _authorized(handle, needs, authorizer)
    if quotas is not UNLIMITED and api.quota is not Quota.EXEMPT:
        handle = _within_quota(handle, api.quota, quotas)
    return handle


def _authorized(handle: Handler, needs: list[Need], authorizer: Authorizer) -> Handler:
    def handle_if_authorized(request: Any, ctx: RequestContext) -> Any:
        for need in needs:
            refusal = need.refusal(request, ctx, authorizer)
            if refusal is not ErrorCode.NONE:
                raise KafkaError(refusal)
        return handle(request, ctx)

    return handle_if_authorized


def _within_quota(handle: Handler, quota: Quota, quotas: Quotas) -> Handler:
    """Answer at once, and let the connection start no further request for a while (KIP-219)."""

    def handle_and_throttle(request: Any, ctx: RequestContext) -> Any:
        throttle_ms = quotas.throttle_ms(quota, ctx)
        if throttle_ms:
            ctx.connection.throttle(throttle_ms)
        return handle(request, ctx)

    return handle_and_throttle
