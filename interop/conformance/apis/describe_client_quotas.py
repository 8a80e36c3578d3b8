"""DescribeClientQuotas: which entities a filter matches, and which filters are refused."""

from __future__ import annotations

from interop.conformance.apis.alter_client_quotas import DESCRIBED, altering, describing, entry
from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.describe_client_quotas import ComponentData

EXACT, DEFAULT, ANY_NAME = 0, 1, 2


def component(kind: str, match_type: int, match: str | None = None) -> ComponentData:
    return ComponentData(entity_type=kind, match_type=match_type, match=match)


@conversation(alone=True)
def every_filter(talk: Talk) -> None:
    user, client = talk.name("user"), talk.name("client")
    entities: list[dict[str, str | None]] = [
        {"user": user},
        {"user": None},
        {"client_id": client},
        {"client_id": None},
        {"user": user, "client_id": client},
        {"user": user, "client_id": None},
        {"user": None, "client_id": client},
        {"user": None, "client_id": None},
    ]
    rates: list[dict[str, str | None]] = [{"ip": "10.1.2.3"}, {"ip": None}]
    for entity in entities:
        talk.do(altering(entry(entity, producer_byte_rate=1e12, controller_mutation_rate=1e6)))
    for address in rates:
        talk.do(altering(entry(address, connection_creation_rate=1e6)))
    talk.ask(describing(), until=lambda answer: len(answer.entries) == 10, in_any_order=DESCRIBED)
    talk.ask(describing(strict=True))
    choices = [(EXACT, user), (EXACT, client), (EXACT, "nobody"), (DEFAULT, None), (ANY_NAME, None)]
    filters = [[component(kind, *choice)] for kind in ("user", "client-id") for choice in choices]
    filters += [
        [component("user", *of_users), component("client-id", *of_clients)]
        for of_users in choices
        for of_clients in choices
    ]
    filters += [
        [component("ip", match_type, match)]
        for match_type, match in ((EXACT, "10.1.2.3"), (EXACT, "::1"), (DEFAULT, None), (ANY_NAME, None))
    ]
    for each in filters:
        talk.ask(describing(*each), in_any_order=DESCRIBED)
        talk.ask(describing(*each, strict=True), in_any_order=DESCRIBED)
    for entity in entities:
        talk.do(altering(entry(entity, producer_byte_rate=None, controller_mutation_rate=None)))
    for address in rates:
        talk.do(altering(entry(address, connection_creation_rate=None)))
    talk.ask(describing(), until=lambda answer: not answer.entries)


@conversation
def filters_that_are_refused(talk: Talk) -> None:
    for refused in [
        [component("", ANY_NAME)],
        [component("user", EXACT)],
        [component("user", DEFAULT, "a name")],
        [component("user", ANY_NAME, "a name")],
        [component("user", 3)],
        [component("user", -1, "a name")],
        [component("user", ANY_NAME), component("user", DEFAULT)],
        [component("ip", ANY_NAME), component("user", ANY_NAME)],
        [component("client-id", DEFAULT), component("ip", EXACT, "10.1.2.3")],
    ]:
        talk.ask(describing(*refused), E.INVALID_REQUEST)
    talk.ask(describing(component("group", ANY_NAME)), E.UNSUPPORTED_VERSION)


@conversation
def an_empty_name_is_looked_for_and_not_found(talk: Talk) -> None:
    talk.ask(describing(component("user", EXACT, "")))
