"""A denial of the authorizer, as a decision for the history of the node."""

from __future__ import annotations

from pykafka_broker.authorization.index import Acl
from pykafka_broker.broker.security.audit_log import Question
from pykafka_broker.machine.history import Decision, Kind
from pykafka_broker.protocol.acls import AclOperation, AclPermission, AclResourceType, PatternType
from pykafka_broker.protocol.messages import API_NAMES
from pykafka_broker.system.wording import argument, client_in_words

REMOVE = (
    "An ACL that denies overrides all that allow: remove it with `pykafka-broker acls remove`, or keep it."
)


def denial(question: Question, client_id: str | None, rule: Acl | str) -> Decision:
    """The attempt of a client was denied, because of `rule`: an ACL, or its absence."""
    principal = question.principal
    resource = f"{question.resource_type.name.lower().replace('_', ' ')} {question.name}"
    if isinstance(rule, str):
        why, remedy = f"no ACL allows it ({rule})", _add(question)
    else:
        why, remedy = f"this ACL denies it: {_in_words(rule)}", REMOVE
    text = (
        f"{client_in_words(client_id, principal, question.host)} was denied "
        f"{question.operation.name} on {resource} in a request {API_NAMES[question.api_key]}: {why}."
    )
    names = (client_id or "", principal, principal.partition(":")[2])
    return Decision(Kind.REQUEST, tuple(name for name in names if name), text, remedy)


def _add(question: Question) -> str:
    """How to allow it."""
    kind = question.resource_type
    option = "user-principal" if kind is AclResourceType.USER else _word(kind)
    resource = "--cluster" if kind is AclResourceType.CLUSTER else f"--{option} {argument(question.name)}"
    who = f"--allow-principal {argument(question.principal)}"
    command = f"pykafka-broker acls add {who} --operation {_word(question.operation)} {resource}"
    return f"If it is to be allowed, add an ACL: `{command}`."


def _word(member: AclOperation | AclResourceType) -> str:
    """As an option of `acls add` has it."""
    return member.name.lower().replace("_", "-")


def _in_words(acl: Acl) -> str:
    kind = AclResourceType(acl.resource_type).name.lower().replace("_", " ")
    pattern = PatternType(acl.pattern_type).name.lower()
    return (
        f"{acl.principal} from {acl.host} is {AclPermission(acl.permission).name} "
        f"{AclOperation(acl.operation).name} on {kind} {acl.name} ({pattern})"
    )
