"""From the first four bytes of a request, API key and version, to everything needed to serve it.

A `Route` is one version of one API: its compiled decoder, its handler, which header formats go with it.
Routes are made on first use (compiling takes about a millisecond) and found again by one dictionary look-up.
The `Api` table alone decides what is served: on which listeners, in which versions, behind which checks.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any, Generic, TypeVar

from pykafka_broker.apis.admission import admitted
from pykafka_broker.apis.api import BROKER_LISTENER, Api, Handler
from pykafka_broker.apis.ports.authorizer import ALLOW_ALL, Authorizer
from pykafka_broker.apis.ports.quotas import UNLIMITED, Quotas
from pykafka_broker.network.request_times import (
    CONSUMER_FETCH,
    FOLLOWER_FETCH,
    RequestTimes,
    Times,
    error_counter,
)
from pykafka_broker.protocol.compile import Cut, Decoder, Encoder, decoder, encoder
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.fields import has_records, schema_of
from pykafka_broker.protocol.messages import API_VERSIONS_KEY, response_type
from pykafka_broker.protocol.messages.fetch import FetchRequest

Ports = TypeVar("Ports")
FETCH_KEY = schema_of(FetchRequest).api_key


class Route:
    """One version of one API."""

    __slots__ = (
        "api",
        "count_errors",
        "decode",
        "flexible_request",
        "flexible_response",
        "follower_requests",
        "follower_times",
        "handle",
        "large_answers",
        "name",
        "requests",
        "times",
        "version",
    )

    def __init__(
        self, api: Api[Any], version: int, handle: Handler[Any], times: RequestTimes | None = None
    ) -> None:
        self.api = api
        self.version = version
        self.name = api.name
        self.handle = handle
        self.decode: Decoder[Any] = decoder(api.request, version)
        self.flexible_request = version in schema_of(api.request).flexible
        # A client of any age must be able to read the answer to its first question.
        self.flexible_response = self.flexible_request and api.key != API_VERSIONS_KEY
        self.large_answers = has_records(response_type(api.key))
        #: Requests served, for metrics.
        self.requests = 0
        #: Those of them that are fetches of followers, where there are metrics.
        self.follower_requests = 0
        #: How long they take; None without metrics. Fetches of followers are apart, as in Kafka.
        self.times: Times | None = None
        self.follower_times: Times | None = None
        #: Counts the errors that an answer tells.
        self.count_errors: Callable[[Any, dict[int, int]], None]
        if times is not None:
            is_fetch = api.key == FETCH_KEY
            self.times = times.of(CONSUMER_FETCH if is_fetch else api.name)
            self.follower_times = times.of(FOLLOWER_FETCH) if is_fetch else None
            self.count_errors = error_counter(response_type(api.key))

    def encode(self, response: object, out: bytearray, cuts: list[Cut]) -> None:
        """Append the answer's body to `out`."""
        compiled: Encoder[Any] = encoder(type(response), self.version)
        compiled(response, out, cuts)


class Dispatch(Generic[Ports]):
    """All routes of one kind of listener: the APIs it serves, each behind the checks it declares."""

    def __init__(
        self,
        apis: Iterable[Api[Ports]],
        listener: str = BROKER_LISTENER,
        authorizer: Authorizer = ALLOW_ALL,
        quotas: Quotas = UNLIMITED,
        unlisted: Container[int] = (),
        times: RequestTimes | None = None,
    ) -> None:
        """`unlisted` has the keys of APIs that are served although ApiVersions does not list them.

        Raises:
            NotImplementedError: a handler does not make a check that `authorizer` requires of it.
        """
        self.apis = {api.key: api for api in apis if listener in api.listeners}
        self.listed = [api for key, api in self.apis.items() if key not in unlisted]
        forwards = listener == BROKER_LISTENER
        self._handlers = {
            key: admitted(api, authorizer, quotas, may_forward=forwards) for key, api in self.apis.items()
        }
        self.routes: dict[int, Route] = {}
        self._times = times
        self._refusal = ""

    def restricted(
        self, handler_of: Callable[[Api[Any]], Handler[Any] | None], refusal: str
    ) -> Dispatch[Ports]:
        """These APIs with other handlers: `handler_of` returns the handler of an API, or None to refuse it;
        `refusal` says why.
        """
        handlers = {key: handler_of(api) for key, api in self.apis.items()}
        restricted: Dispatch[Ports] = object.__new__(Dispatch)
        restricted._handlers = {key: handle for key, handle in handlers.items() if handle is not None}
        restricted.apis = {key: self.apis[key] for key in restricted._handlers}
        restricted.listed = self.listed
        restricted.routes = {}
        # As in Kafka, requests of peers that have not authenticated are not measured.
        restricted._times = None
        restricted._refusal = f": {refusal}"
        return restricted

    def find(self, code: int) -> Route | None:
        """The route of `code` (API key and version as one unsigned number); None for an unserved ApiVersions.

        Raises:
            ProtocolError: no such API, or not this version of it.
        """
        route = self.routes.get(code)
        if route is not None:
            return route
        key, version = _signed(code >> 16), _signed(code & 0xFFFF)
        api = self.apis.get(key)
        if api is None:
            raise ProtocolError(f"Received request api key {key} which is not served{self._refusal}")
        if not api.min_version <= version <= api.max_version:
            if key == API_VERSIONS_KEY:
                return None
            raise ProtocolError(
                f"Received request for api {api.name} with version {version} which is not served "
                f"(versions {api.min_version}-{api.max_version} are)"
            )
        route = self.routes[code] = Route(api, version, self._handlers[key], self._times)
        return route


def _signed(value: int) -> int:
    return value - 0x10000 if value > 0x7FFF else value
