"""The log of the authorizer's decisions, in the words of Apache Kafka's `kafka.authorizer.logger`.

Denied attempts are logged at INFO, allowed ones at DEBUG. Repeated denials of the same principal, address,
operation and resource are logged once in ten seconds with a count. There are at most `MAX_LINES` lines in
that time, so a client that tries many names cannot fill a disk.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from pykafka_broker.authorization.index import Acl
from pykafka_broker.protocol.acls import AclOperation, AclPermission, AclResourceType, PatternType
from pykafka_broker.protocol.messages import API_NAMES
from pykafka_broker.system.log_fields import Described, about
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.repeated_lines import RepeatedLines

logger = logging.getLogger("kafka.authorizer.logger")

#: The most lines about denials in ten seconds.
MAX_LINES = 1_000


class Question(NamedTuple):
    """What the authorizer was asked."""

    principal: str
    host: str
    operation: AclOperation
    resource_type: AclResourceType
    name: str
    api_key: int


class AuditLog:
    """Writes the lines. Event loop only."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        left_out = "%d more operations were denied, which are not logged one by one"
        self._denials = RepeatedLines(logger, now_ms, most_lines=MAX_LINES, left_out=left_out)

    def denied(self, question: Question, rule: Acl | str, request: Described) -> None:
        """An attempt of `request` was denied."""
        if not logger.isEnabledFor(logging.INFO):
            return
        subject = "\0".join(map(str, question))
        self._denials.log(logging.INFO, "denied", subject, _line(question, "Denied", rule), None, request)

    def allowed(self, question: Question, rule: Acl | str, request: Described) -> None:
        """An attempt of `request` was allowed; the caller has asked `is_detailed`."""
        logger.debug("%s", _line(question, "Allowed", rule), extra=about(request))

    @property
    def is_detailed(self) -> bool:
        """Whether allowed attempts are logged too."""
        return logger.isEnabledFor(logging.DEBUG)


def _line(question: Question, decision: str, rule: Acl | str) -> str:
    return (
        f"Principal = {question.principal} is {decision} operation = {question.operation.name} "
        f"from host = {question.host} on resource = "
        f"{_in_words(question.resource_type)}:LITERAL:{question.name} "
        f"for request = {API_NAMES[question.api_key]} with resourceRefCount = 1 based on rule "
        f"{rule if isinstance(rule, str) else _matching(rule)}"
    )


def _matching(acl: Acl) -> str:
    return (
        f"MatchingAcl(acl=StandardAcl(resourceType={AclResourceType(acl.resource_type).name}, "
        f"resourceName={acl.name}, patternType={PatternType(acl.pattern_type).name}, "
        f"principal={acl.principal}, host={acl.host}, operation={AclOperation(acl.operation).name}, "
        f"permissionType={AclPermission(acl.permission).name}))"
    )


def _in_words(resource_type: AclResourceType) -> str:
    return "".join(word.capitalize() for word in resource_type.name.split("_"))
