"""The declaration of a handler: one Kafka API, the versions that it serves, and the function that answers.

`@handles(MetadataRequest, versions="0-13", ...)` turns a function into a frozen `Api`; nothing registers
itself on import, `apis.APIS` is the explicit list, and ApiVersions and dispatch derive from it. Besides the
versions an API declares the authorization that a request needs (`needs.py`) and the quota it counts to; its
message declares the listeners. `admission.py` makes these checks.

A handler is called as `handle(request, ctx)` and comes in two kinds:

* `def`: the answer is returned at once, on the hot path. It may also return `Later(awaitable)`: the ordered
  part is done (bytes are appended), the answer comes when the awaitable finishes, and the next request of the
  same connection may start meanwhile; `NO_RESPONSE`: nothing is sent (Produce with acks=0); `CLOSE`: the
  connection is closed, which is how Kafka reports an error to a client that asked for no answer. A `def` that
  has to wait returns a coroutine, and is then served like an `async def`:
* `async def`: the next request of the connection starts when the handler has finished, as Kafka mutes a
  channel while its request is processed. A handler begins at once and becomes a task at its first wait: until
  then there is no current task, so `asyncio.timeout` and task groups need a task of their own.

`records` of a request are views of the connection's receive buffer: they are valid until the handler returns
or first awaits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pykafka_broker.apis.context import Context
from pykafka_broker.apis.needs import Need
from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.protocol.fields import schema_of

if TYPE_CHECKING:
    from pykafka_broker.protocol.errors import KafkaError


#: The kinds of listeners, as in Kafka's messages: for clients and other brokers, and for controllers.
BROKER_LISTENER = "broker"
CONTROLLER_LISTENER = "controller"


class _Signal:
    """A value with a name, compared by identity."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


#: The request wants no answer (Produce with acks=0).
NO_RESPONSE = _Signal("NO_RESPONSE")
#: The request failed and cannot be answered: close the connection so that the client reconnects.
CLOSE = _Signal("CLOSE")


class Later:
    """An answer that comes later, and keeps its place in the order of the connection's answers."""

    __slots__ = ("awaitable",)

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        self.awaitable = awaitable


Ports = TypeVar("Ports")
PortsOfHandler = TypeVar("PortsOfHandler", contravariant=True)

#: A handler, with the ports that it uses of its node.
Handler = Callable[[Any, Context[Ports]], Any]
#: Raises ProtocolError for a request that no client may send.
Check = Callable[[Any], None]
#: Makes the answer to a request that failed as a whole.
ErrorResponse = Callable[[Any, "KafkaError"], Any]


class Api(Generic[PortsOfHandler]):
    """One served API: `request` is its message class, versions `min_version..max_version` are answered.

    `advertised_min_version` differs only for Produce, whose versions 0-2 are listed but refused because a
    librdkafka release needs to see them (KAFKA-18659). `needs` is the authorization that a request needs,
    `quota` the quota it counts to. `check` is called before both. The active controller, on any node, answers
    `forwarded` requests of clients; `leaderless` answers if this node is sure that there is no controller.
    `asks_controller`: the active controller decides on the request, or on a part of it.
    """

    __slots__ = (
        "advertised_min_version",
        "asks_controller",
        "check",
        "error_response",
        "forwarded",
        "handle",
        "key",
        "leaderless",
        "listeners",
        "max_version",
        "min_version",
        "name",
        "needs",
        "quota",
        "request",
    )

    def __init__(
        self,
        request: type,
        handle: Handler[PortsOfHandler],
        versions: range,
        *,
        advertised_min_version: int,
        needs: tuple[Need, ...],
        quota: Quota,
        error_response: ErrorResponse | None,
        forwarded: bool,
    ) -> None:
        self.request = request
        self.key: int = request.api_key  # type: ignore[attr-defined]  # every request class carries its key
        self.name = request.__name__.removesuffix("Request")
        #: The listeners that serve it, "broker", "controller" or both, from its message.
        self.listeners = schema_of(request).listeners
        self.handle = handle
        self.min_version = versions.start
        self.max_version = versions.stop - 1
        self.advertised_min_version = advertised_min_version
        self.needs = needs
        self.quota = quota
        self.error_response = error_response
        self.forwarded = forwarded
        self.asks_controller = forwarded
        self.check: Check | None = None
        self.leaderless: Handler[Any] | None = None

    def __repr__(self) -> str:
        return f"Api({self.name}, versions={self.min_version}-{self.max_version})"


def handles(
    request: type,
    *,
    versions: str,
    needs: Iterable[Need],
    quota: Quota = Quota.REQUEST,
    advertised_min_version: int | None = None,
    error_response: ErrorResponse | None = None,
    forwarded: bool = False,
) -> Callable[[Handler[Ports]], Api[Ports]]:
    """Declare the decorated function as the handler of `request` for `versions` ("0-13" or "0").

    `error_response` makes the answer if the handler raises; without it the connection is closed, as the
    client would wait for ever. For `forwarded` see `forwarding.py`.
    """
    first, _, last = versions.partition("-")
    served = range(int(first), int(last or first) + 1)

    def wrap(handle: Handler[Ports]) -> Api[Ports]:
        return Api(
            request,
            handle,
            served,
            advertised_min_version=served.start if advertised_min_version is None else advertised_min_version,
            needs=tuple(needs),
            quota=quota,
            error_response=error_response,
            forwarded=forwarded,
        )

    return wrap


def checked(check: Check) -> Callable[[Api[Ports]], Api[Ports]]:
    """Have `check` raise ProtocolError for requests that Apache Kafka refuses while it reads them, before it
    checks the authorization.
    """

    def wrap(api: Api[Ports]) -> Api[Ports]:
        api.check = check
        return api

    return wrap


def asks_controller(api: Api[Ports]) -> Api[Ports]:
    """Declare that the handler checks a request first, and the active controller decides on the rest."""
    api.asks_controller = True
    return api


def leaderless(answer: Handler[Any]) -> Callable[[Api[Ports]], Api[Ports]]:
    """Have `answer` serve a forwarded request at once if this node is sure that there is no controller."""

    def wrap(api: Api[Ports]) -> Api[Ports]:
        api.leaderless = answer
        return api

    return wrap
