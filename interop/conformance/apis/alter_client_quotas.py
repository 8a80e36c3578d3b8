"""AlterClientQuotas: whose quotas may be set, to which values, and what is told of those that may not."""

from __future__ import annotations

from typing import Any

from interop.conformance.conversation import ENDS, conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from pykafka_broker.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)

#: Apache keeps entities and quotas in hash maps.
RESULTS = {"entries": "entity"}
DESCRIBED = {"entries": "entity", "values": "key"}
INFINITE, NO_NUMBER = float("inf"), float("nan")


def entry(entity: dict[str, str | None], **quotas: float | None) -> AlterClientQuotasRequestEntryData:
    """Quotas to set, or to remove where they are None."""
    return AlterClientQuotasRequestEntryData(
        entity=[
            EntityData(entity_type=kind.replace("_", "-"), entity_name=name) for kind, name in entity.items()
        ],
        ops=[
            OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in quotas.items()
        ],
    )


def altering(
    *entries: AlterClientQuotasRequestEntryData, validate_only: bool = False
) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)


def describing(*components: ComponentData, strict: bool = False) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(components=list(components), strict=strict)


def shows(*, present: bool = True) -> Any:
    """True of an answer that has entries, or has none: the broker follows its controller."""
    return lambda answer: bool(answer.entries) is present


def of_user(name: str) -> DescribeClientQuotasRequest:
    return describing(ComponentData(entity_type="user", match_type=0, match=name))


@conversation
def quotas_are_set_changed_and_removed(talk: Talk) -> None:
    user = talk.name("user")
    talk.ask(altering(entry({"user": user}, producer_byte_rate=1e6, request_percentage=12.5)))
    talk.ask(of_user(user), until=shows(), in_any_order=DESCRIBED)
    talk.ask(altering(entry({"user": user}, producer_byte_rate=2e6, consumer_byte_rate=3e6)))
    talk.ask(
        of_user(user),
        until=lambda answer: len(answer.entries[0].values) == 3,
        in_any_order=DESCRIBED,
    )
    removal = entry({"user": user}, producer_byte_rate=None, consumer_byte_rate=None, request_percentage=None)
    talk.ask(altering(removal))
    talk.ask(of_user(user), until=shows(present=False))
    talk.ask(altering(removal))


@conversation
def every_kind_of_entity(talk: Talk) -> None:
    user, client = talk.name("user"), talk.name("client")
    entities: list[dict[str, str | None]] = [
        {"user": user},
        {"client_id": client},
        {"user": user, "client_id": client},
        {"client_id": client, "user": user},
        {"user": user, "client_id": None},
    ]
    for entity in entities:
        talk.ask(altering(entry(entity, controller_mutation_rate=1000.5)))
    talk.ask(altering(entry({"ip": "10.1.2.3"}, connection_creation_rate=1000.0)))
    for entity in entities:
        talk.ask(altering(entry(entity, controller_mutation_rate=None)))
    talk.ask(altering(entry({"ip": "10.1.2.3"}, connection_creation_rate=None)))


@conversation
def entities_that_there_are_not(talk: Talk) -> None:
    user = talk.name("user")
    refused: list[dict[str, str | None]] = [
        {},
        {"user": ""},
        {"client_id": ""},
        {"ip": ""},
        {"group": "g"},
        {"USER": user},
        {"": user},
        {"ip": "10.1.2.3", "user": user},
        {"ip": None, "client_id": None},
        {"ip": "not an address"},
        {"ip": "300.1.2.3.4"},
    ]
    for entity in refused:
        request = altering(entry(entity, producer_byte_rate=1e6), validate_only=True)
        talk.ask(request, E.INVALID_REQUEST, in_any_order={"entity": "entity_type"})


@conversation
def values_that_cannot_be_set(talk: Talk) -> None:
    user = talk.name("user")
    for key, value in [
        ("producer_byte_rate", 0.0),
        ("producer_byte_rate", -1.0),
        ("producer_byte_rate", 1.5),
        ("producer_byte_rate", INFINITE),
        ("consumer_byte_rate", 1e300),
        ("request_percentage", 0.0),
        ("controller_mutation_rate", -INFINITE),
        ("connection_creation_rate", 5.0),
        ("unknown_quota", 5.0),
        ("", 5.0),
    ]:
        talk.ask(altering(entry({"user": user}, **{key: value}), validate_only=True), E.INVALID_REQUEST)
    for key, value in [
        ("connection_creation_rate", 2.0**31),
        ("connection_creation_rate", 0.5),
        ("producer_byte_rate", 1.0),
    ]:
        talk.ask(altering(entry({"ip": "10.1.2.3"}, **{key: value}), validate_only=True), E.INVALID_REQUEST)


@conversation
def values_at_the_edge(talk: Talk) -> None:
    user = talk.name("user")
    for key, value in [
        ("producer_byte_rate", 2.0**63),
        ("producer_byte_rate", 1.0000001),
        ("consumer_byte_rate", 1.0),
        ("request_percentage", 1e-300),
        ("request_percentage", INFINITE),
        ("producer_byte_rate", NO_NUMBER),
    ]:
        talk.ask(altering(entry({"user": user}, **{key: value}), validate_only=True))
    talk.ask(altering(entry({"ip": "10.1.2.3"}, connection_creation_rate=2.0**31 - 1), validate_only=True))


@conversation
def one_entity_fails_beside_another(talk: Talk) -> None:
    good, bad = talk.name("good"), talk.name("bad")
    talk.ask(
        altering(
            entry({"user": bad}, unknown_quota=1.0, producer_byte_rate=1e6),
            entry({"user": good}, producer_byte_rate=1e6),
        ),
        E.INVALID_REQUEST,
        in_any_order=RESULTS,
    )
    talk.ask(of_user(good), until=shows())
    talk.ask(of_user(bad))
    talk.ask(altering(entry({"user": good}, producer_byte_rate=None)))


@conversation
def an_entity_named_twice(talk: Talk) -> None:
    user = talk.name("user")
    talk.ask(
        altering(
            entry({"user": user, "client_id": None}, producer_byte_rate=1e6),
            entry({"client_id": None, "user": user}, producer_byte_rate=2e6),
            validate_only=True,
        ),
        E.INVALID_REQUEST,
    )


@conversation
def a_quota_named_twice(talk: Talk) -> None:
    twice = entry({"user": talk.name("user")}, producer_byte_rate=1e6)
    twice.ops.append(OpData(key="producer_byte_rate", value=2e6, remove=False))
    talk.ask(altering(twice, validate_only=True), E.INVALID_REQUEST)


@conversation
def a_type_named_twice_in_an_entity(talk: Talk) -> None:
    user = talk.name("user")
    twice = entry({"user": "first"}, producer_byte_rate=1e6)
    twice.entity.append(EntityData(entity_type="user", entity_name=user))
    talk.ask(altering(twice, validate_only=True))


@conversation(ENDS)
def nothing_to_alter(talk: Talk) -> None:
    talk.ask(altering())
    talk.ask(altering(entry({"user": talk.name("user")})))


@conversation(ENDS)
def what_is_only_validated_is_not_set(talk: Talk) -> None:
    user = talk.name("user")
    talk.ask(altering(entry({"user": user}, producer_byte_rate=1e6), validate_only=True))
    talk.ask(of_user(user))


@conversation
def controllers_are_asked_themselves(talk: Talk) -> None:
    controllers = talk.controllers()
    user = talk.name("user")
    controllers.ask(altering(entry({"user": user}, producer_byte_rate=1e6), validate_only=True))
    controllers.ask(altering(entry({"user": ""}, producer_byte_rate=1e6)), E.INVALID_REQUEST)
