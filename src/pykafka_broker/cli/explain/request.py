"""What Kafka's APIs tell about a client: the quotas that may apply to it, and the ACLs for it.

A client id is not authenticated: quotas are for client ids and users, ACLs for users only.
"""

from __future__ import annotations

from pykafka_broker.cli.acls import described_acls
from pykafka_broker.cli.explain.explanation import Fact
from pykafka_broker.cli.quotas import entity_in_words, quotas_of
from pykafka_broker.client.blocking import Client
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.wording import counted

USER = "User:"
#: The principal of ACLs for every user.
EVERY_USER = "User:*"


def look(client: Client, name: str) -> list[Fact]:
    """The quotas and ACLs for the client id, or user, of this name."""
    return [*_quotas(client, name.removeprefix(USER)), *_acls(client, name.removeprefix(USER))]


def _quotas(client: Client, name: str) -> list[Fact]:
    try:
        found = quotas_of(client, {})
    except KafkaError as error:
        return [Fact(f"The cluster does not tell this user of its quotas: {error.code.name}.")]
    facts = [
        Fact(f"The quota of {entity_in_words(one.entity)}: {_values(one.quotas)}.")
        for one in found
        if "ip" not in one.entity and (name in one.entity.values() or set(one.entity.values()) == {None})
    ]
    return facts or [Fact(f"No quota applies to a client id, or a user, {name}.")]


def _acls(client: Client, name: str) -> list[Fact]:
    try:
        found = [
            acl
            for principal in dict.fromkeys((f"{USER}{name}", EVERY_USER))
            for acl in described_acls(client, None, None, "any", principal)
        ]
    except KafkaError as error:
        if error.code is ErrorCode.SECURITY_DISABLED:
            return [Fact("The cluster has no authorizer: it denies no request.")]
        return [Fact(f"The cluster does not tell this user of its ACLs: {error.code.name}.")]
    denying = [acl for acl in found if acl.permission == "DENY"]
    facts = [
        Fact(
            f"A user {name} has {counted(len(found), 'ACL')}, those of {EVERY_USER} among them, of which "
            f"{len(denying)} deny. A super user (super.users) needs none."
        )
    ]
    facts += [
        Fact(
            f"{acl.operation} on {acl.resource_type} {acl.resource_name} ({acl.pattern_type}) from "
            f"{acl.host} is denied to {acl.principal}."
        )
        for acl in denying
    ]
    return facts


def _values(quotas: dict[str, float]) -> str:
    return ", ".join(f"{key}={value:g}" for key, value in quotas.items())
