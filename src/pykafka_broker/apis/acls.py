"""The common parts of CreateAcls, DescribeAcls and DeleteAcls: their filters, and invalid numbers.

The number 0 means "unknown"; Apache Kafka closes the connection of a client that sends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pykafka_broker.apis.ports.authorizer import ALLOW_ALL
from pykafka_broker.controller.core.events import AclFilter
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext

_UNKNOWN = 0


class WireFilter(Protocol):
    """A filter of DescribeAcls or DeleteAcls."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def filter_of(wire: WireFilter) -> AclFilter:
    """The filter that a request describes."""
    return AclFilter(
        wire.resource_type_filter,
        wire.resource_name_filter,
        wire.pattern_type_filter,
        wire.principal_filter,
        wire.host_filter,
        wire.operation,
        wire.permission_type,
    )


def refuse_unknown_filter(wire: WireFilter) -> None:
    """Raise ProtocolError if one of its numbers is 0."""
    refuse_unknown(wire.resource_type_filter, wire.pattern_type_filter, wire.operation, wire.permission_type)


def refuse_unknown(*numbers: int) -> None:
    """Raise ProtocolError if one of them is 0."""
    if _UNKNOWN in numbers:
        raise ProtocolError("ACLs, or filters of ACLs, contain UNKNOWN elements")


def need_an_authorizer(ctx: AdministrationContext, otherwise: str) -> None:
    """Raise KafkaError SECURITY_DISABLED with the text `otherwise` if no authorizer is configured."""
    if ctx.node.authorizer is ALLOW_ALL:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, otherwise)
