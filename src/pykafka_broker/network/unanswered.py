"""Unanswered requests: how long they may take, what they wait for, and the log line about an overdue one.

A request that waits costs nothing here: sweeps look at the oldest of each connection (`patience.py`), and
compute its limit only after `GRACE_MS`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Union

from pykafka_broker.protocol.compile import decode
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.fields import ZERO_UUID, Field, schema_of, uuid_text
from pykafka_broker.protocol.messages.envelope import EnvelopeRequest
from pykafka_broker.protocol.messages.headers import RequestHeader, request_header_version
from pykafka_broker.protocol.messages.join_group import JoinGroupRequest
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.apis.context import Context
    from pykafka_broker.network.dispatch import Dispatch, Route
    from pykafka_broker.system.log_fields import Described

#: How much longer than its own limit a request may take.
GRACE_MS = 5_000
#: The limit of a SyncGroup if the node does not know the rebalance timeout of its group. The request waits
#: for the group's leader but does not have this timeout, and the group may have moved to another node, or
#: changed its kind. This is the default of Kafka's consumers (`max.poll.interval.ms`).
SYNC_GROUP_MS = 300_000
#: The most groups, transactions and partitions that a line names, and the most characters of a name.
MOST_NAMES = 3
MOST_CHARACTERS = 100

#: The argument of `Dispatch.find`.
API_AND_VERSION = struct.Struct(">I")

_KINDS = {"group_id": "group", "transactional_id": "transaction"}


def _unknown(_: object) -> None:
    return None


class Knowledge(NamedTuple):
    """What the rest of the node knows of the things that requests name; None stands for an unknown thing."""

    #: Topic id -> the topic's name.
    topic_name: Callable[[bytes], Union[str, None]] = _unknown
    #: Group id -> the longest rebalance timeout of its members, in milliseconds.
    rebalance_timeout_ms: Callable[[str], Union[int, None]] = _unknown


NO_KNOWLEDGE = Knowledge()


class Waiting(NamedTuple):
    """A request that is not answered yet."""

    api_name: str
    version: int
    correlation_id: int
    client_id: Union[str, None]
    limit_ms: int
    #: Empty if unknown.
    waits_for: str


def begun(
    route: Route, context: Context[Any], request: object, knowledge: Knowledge = NO_KNOWLEDGE
) -> Waiting | None:
    """A request whose handler waits; None if there is nothing to log about it."""
    limit_ms = own_limit_ms(request, knowledge)
    if limit_ms is None:
        return None
    waits_for = subjects(request, knowledge)
    if route.api.asks_controller:
        waits_for = f"the active controller, {waits_for}" if waits_for else "the active controller"
    return Waiting(route.name, route.version, context.correlation_id, context.client_id, limit_ms, waits_for)


def not_begun(
    frame: memoryview, dispatch: Dispatch[Any], waits_for: str, knowledge: Knowledge = NO_KNOWLEDGE
) -> Waiting | None:
    """The request at the front of `frame`, whose turn has not come; None if it cannot be read.

    The limit of a request that has arrived only in part counts as 0.
    """
    try:
        (code,) = API_AND_VERSION.unpack_from(frame)
        route = dispatch.find(code)
        if route is None:
            return None
        header, body_at = decode(RequestHeader, request_header_version(route.api.key, route.version), frame)
    except (ProtocolError, struct.error):
        return None
    try:
        limit_ms = own_limit_ms(route.decode(frame, body_at)[0], knowledge) or 0
    except ProtocolError:
        limit_ms = 0
    return Waiting(route.name, route.version, header.correlation_id, header.client_id, limit_ms, waits_for)


def own_limit_ms(request: object, knowledge: Knowledge = NO_KNOWLEDGE) -> int | None:
    """How long the answer may take by the request's own fields, and by the rebalance timeout of its group,
    whose other members it waits for; 0 if neither says so.

    None for an Envelope, a client's request that another broker forwarded: that broker knows its limit.
    The transaction timeout of InitProducerId does not count: an open transaction is answered at once, with
    CONCURRENT_TRANSACTIONS, and the client asks again.
    """
    if isinstance(request, EnvelopeRequest):
        return None
    return max(asked_wait_ms(request, knowledge), getattr(request, "timeout_ms", 0))


def asked_wait_ms(request: object, knowledge: Knowledge = NO_KNOWLEDGE) -> int:
    """How long the request itself asks to wait: for records, or for the other members of a group.

    A `timeout_ms` is no such wish: it says when the client gives up.
    """
    if isinstance(request, JoinGroupRequest):
        of_group_ms = knowledge.rebalance_timeout_ms(request.group_id) or 0
        return max(request.rebalance_timeout_ms, request.session_timeout_ms, of_group_ms)
    if isinstance(request, SyncGroupRequest):
        limit_ms = knowledge.rebalance_timeout_ms(request.group_id)
        return SYNC_GROUP_MS if limit_ms is None else limit_ms
    return max(0, getattr(request, "max_wait_ms", 0))


def subjects(request: object, knowledge: Knowledge = NO_KNOWLEDGE) -> str:
    """The first groups, transactions and partitions that a request names, and the number of others; the fetch
    session if the request names none.
    """
    named = _named(request, knowledge)
    first = list(islice(named, MOST_NAMES))
    more = sum(1 for _ in named)
    if not first and (session_id := getattr(request, "session_id", 0)):
        return f"fetch session {session_id}"
    return ", ".join(first) + (f" and {more} more" if more else "")


class Overdue(NamedTuple):
    """A request that has waited too long, on its connection."""

    request: Waiting
    connection: Described

    @property
    def log_fields(self) -> Mapping[str, object]:
        """The fields of log lines about the request."""
        request = self.request
        return {
            "api": request.api_name,
            "api_version": request.version,
            "correlation_id": request.correlation_id,
            **self.connection.log_fields,
            "client_id": request.client_id,
        }


def line(connection: object, request: Waiting, waited_ms: int) -> str:
    """The log line about a request that has waited too long."""
    own = f", and may take {request.limit_ms} ms by itself" if request.limit_ms else ""
    reason = f": it waits for {request.waits_for}" if request.waits_for else ""
    return (
        f"{request.api_name} v{request.version} with correlation id {request.correlation_id} of client "
        f"{quoted(request.client_id)} on {connection!r} is unanswered after {waited_ms} ms{own}{reason}"
    )


def _named(message: object, knowledge: Knowledge) -> Iterator[str]:
    fields = schema_of(message).fields
    topic = next(filter(None, (_topic(message, field, knowledge) for field in fields)), "")
    if topic:
        yield from _partitions(topic, message, fields)
    for field in fields:
        value = getattr(message, field.name)
        element = field.element or field
        for each in (value or ()) if field.element else (value,):
            if element.struct is not None and each is not None:
                yield from _named(each, knowledge)
            elif element.entity in _KINDS and each:
                yield f"{_KINDS[element.entity]} {quoted(each)}"


def _topic(message: object, field: Field, knowledge: Knowledge) -> str:
    """The name of the topic that a struct is about, or its id if no topic has it; empty if the field has
    neither.
    """
    value = getattr(message, field.name)
    if field.entity == "topic_name":
        return value or ""
    if field.name == "topic_id" and value != ZERO_UUID:
        return knowledge.topic_name(value) or uuid_text(value)
    return ""


def _partitions(topic: str, message: object, fields: tuple[Field, ...]) -> Iterator[str]:
    """The partitions of a topic that a request names; the topic itself if it names none."""
    partitions = next((field for field in fields if field.element is not None), None)
    numbers = getattr(message, partitions.name) if partitions is not None else None
    if not numbers:
        yield f"topic {quoted(topic)}"
    for each in numbers or ():
        # The first field of a partition is its number.
        number = each if isinstance(each, int) else getattr(each, schema_of(each).fields[0].name)
        yield f"partition {quoted(f'{topic}-{number}')}"


def quoted(text: str | None) -> str:
    """A name that a peer has sent: short, in quotation marks, without control characters."""
    if text is None or len(text) <= MOST_CHARACTERS:
        return repr(text)
    return f"{text[:MOST_CHARACTERS]!r}..."
