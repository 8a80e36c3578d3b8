"""Which client quotas may be set, and which of them a filter matches."""

from __future__ import annotations

import math

import pytest

from pykafka_broker.cluster.image import ClusterImage, QuotaEntity, replay
from pykafka_broker.cluster.snapshot import snapshot_records
from pykafka_broker.controller.core.client_quotas import MatchType, matching_quotas
from pykafka_broker.controller.core.events import (
    AlterClientQuotas,
    AlterClientQuotasResult,
    EventError,
    QuotaAlteration,
    QuotaFilter,
)
from pykafka_broker.controller.core.state import ControllerState
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records import metadata as m
from tests.controller.deciding import an_empty_cluster, decide, stepped

ALICE: QuotaEntity = (("user", "alice"),)
ANY_USER: QuotaEntity = (("user", None),)
APP: QuotaEntity = (("client-id", "app"),)
ALICE_AND_APP: QuotaEntity = (("client-id", "app"), ("user", "alice"))
ALICE_AND_ANY_CLIENT: QuotaEntity = (("client-id", None), ("user", "alice"))
ADDRESS: QuotaEntity = (("ip", "10.0.0.1"),)
ENTITIES = (ALICE, ANY_USER, APP, ALICE_AND_APP, ALICE_AND_ANY_CLIENT, ADDRESS)


def setting(entity: QuotaEntity, **changes: float | None) -> QuotaAlteration:
    return QuotaAlteration(entity, tuple(changes.items()))


def altering(*alterations: QuotaAlteration, **details: object) -> AlterClientQuotas:
    return AlterClientQuotas(alterations)._replace(**details)  # type: ignore[arg-type]


def refused(entity: QuotaEntity, text: str) -> AlterClientQuotasResult:
    return AlterClientQuotasResult(entity, ErrorCode.INVALID_REQUEST, text)


def quota_record(entity: QuotaEntity, key: str, value: float, *, remove: bool = False) -> m.ClientQuotaRecord:
    parts = [m.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    return m.ClientQuotaRecord(entity=parts, key=key, value=value, remove=remove)


def a_cluster_with_quotas() -> ControllerState:
    """Every entity has one quota."""
    alterations = [
        setting(entity, connection_creation_rate=5.0)
        if entity is ADDRESS
        else setting(entity, producer_byte_rate=1000.0)
        for entity in ENTITIES
    ]
    return decide(an_empty_cluster(), altering(*alterations))[0]


def test_quotas_are_set_for_users_client_ids_both_and_addresses() -> None:
    state = a_cluster_with_quotas()

    assert state.image.client_quotas == {
        **{entity: {"producer_byte_rate": 1000.0} for entity in ENTITIES if entity is not ADDRESS},
        ADDRESS: {"connection_creation_rate": 5.0},
    }


def test_only_what_changes_is_recorded() -> None:
    state = a_cluster_with_quotas()

    state, records, results = decide(
        state,
        altering(
            setting(ALICE, producer_byte_rate=1000.0, consumer_byte_rate=2000.0, request_percentage=None),
            setting(APP, producer_byte_rate=None),
        ),
    )

    assert records == (
        quota_record(ALICE, "consumer_byte_rate", 2000.0),
        quota_record(APP, "producer_byte_rate", 0.0, remove=True),
    )
    assert results == (AlterClientQuotasResult(ALICE), AlterClientQuotasResult(APP))
    assert APP not in state.image.client_quotas


def test_a_quota_that_is_no_number_is_set_once() -> None:
    state = an_empty_cluster()
    once = stepped(state, altering(setting(ALICE, request_percentage=math.nan)))
    again = stepped(once.state, altering(setting(ALICE, request_percentage=float("nan"))))

    assert (len(once.records), len(again.records)) == (1, 0)


def test_what_is_only_validated_is_not_recorded() -> None:
    _, records, results = decide(
        an_empty_cluster(), altering(setting(ALICE, producer_byte_rate=1.0), validate_only=True)
    )

    assert (records, results) == ((), (AlterClientQuotasResult(ALICE),))


@pytest.mark.parametrize(
    ("entity", "changes", "text"),
    [
        ((), {"producer_byte_rate": 1.0}, "Invalid empty client quota entity"),
        ((("group", "g"),), {"producer_byte_rate": 1.0}, "Unhandled client quota entity type: group"),
        ((("user", ""),), {"producer_byte_rate": 1.0}, "Empty user not supported"),
        (
            (("ip", "10.0.0.1"), ("user", "alice")),
            {"connection_creation_rate": 1.0},
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        (
            (("ip", "nowhere"),),
            {"connection_creation_rate": 1.0},
            "nowhere is not a valid IP or resolvable host.",
        ),
        (ALICE, {"connection_creation_rate": 1.0}, "Invalid configuration key connection_creation_rate"),
        (ADDRESS, {"producer_byte_rate": 1.0}, "Invalid configuration key producer_byte_rate"),
        (ALICE, {"producer_byte_rate": 0.0}, "Quota producer_byte_rate must be greater than 0"),
        (ALICE, {"request_percentage": -1.0}, "Quota request_percentage must be greater than 0"),
        (ALICE, {"producer_byte_rate": 1.5}, "producer_byte_rate cannot be a fractional value."),
        (
            ALICE,
            {"consumer_byte_rate": math.inf},
            "Proposed value for consumer_byte_rate is too large for a LONG.",
        ),
        (
            ADDRESS,
            {"connection_creation_rate": 2.0**31},
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
    ],
)
def test_a_quota_that_cannot_be_set_leaves_its_entity_as_it_is(
    entity: QuotaEntity, changes: dict[str, float], text: str
) -> None:
    _, records, results = decide(
        an_empty_cluster(),
        altering(setting(entity, **changes), setting(ANY_USER, producer_byte_rate=1.0))._replace(
            unknown_hosts=frozenset({"nowhere"})
        ),
    )

    assert results == (refused(entity, text), AlterClientQuotasResult(ANY_USER))
    assert records == (quota_record(ANY_USER, "producer_byte_rate", 1.0),)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("producer_byte_rate", 2.0**63),
        ("consumer_byte_rate", 1.0000001),
        ("request_percentage", 0.5),
        ("controller_mutation_rate", 1e300),
    ],
)
def test_values_at_the_edge_are_set(key: str, value: float) -> None:
    state = decide(an_empty_cluster(), altering(setting(ALICE, **{key: value})))[0]

    assert state.image.client_quotas == {ALICE: {key: value}}


def test_an_entity_that_is_named_twice_keeps_its_first_change_and_is_answered_with_an_error() -> None:
    _, records, results = decide(
        an_empty_cluster(),
        altering(
            setting(ALICE_AND_ANY_CLIENT, producer_byte_rate=1.0),
            setting(ALICE_AND_ANY_CLIENT, producer_byte_rate=2.0),
        ),
    )

    text = "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=null, user=alice})"
    assert results == (refused(ALICE_AND_ANY_CLIENT, text),)
    assert records == (quota_record(ALICE_AND_ANY_CLIENT, "producer_byte_rate", 1.0),)


def test_a_quota_that_is_named_twice_changes_nothing() -> None:
    twice = QuotaAlteration(ALICE, (("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)))

    _, records, results = decide(an_empty_cluster(), altering(twice))

    text = "Ignoring duplicate entity ClientQuotaEntity(entries={user=alice})"
    assert (records, results) == ((), (refused(ALICE, text),))


def test_a_request_of_too_many_changes_is_refused_as_a_whole() -> None:
    many = [setting((("user", f"u{number}"),), producer_byte_rate=1.0) for number in range(10_001)]

    _, records, result = decide(an_empty_cluster(), altering(*many))

    text = "Unable to perform excessively large batch operation."
    assert (records, result) == ((), EventError(ErrorCode.POLICY_VIOLATION, text))


def test_quotas_come_back_from_a_snapshot() -> None:
    image = a_cluster_with_quotas().image

    copy = replay(ClusterImage(image.cluster_id), snapshot_records(image), offset=0, epoch=1)

    assert copy.client_quotas == image.client_quotas


def found(*filters: QuotaFilter, strict: bool = False) -> list[QuotaEntity]:
    image = a_cluster_with_quotas().image
    return [entity for entity, _ in matching_quotas(image, filters, strict=strict)]


USER_IS_ALICE = QuotaFilter("user", MatchType.EXACT, "alice")
ANY_CLIENT_ID = QuotaFilter("client-id", MatchType.ANY)


@pytest.mark.parametrize(
    ("filters", "strict", "entities"),
    [
        ((), False, ENTITIES),
        ((), True, ()),
        ((USER_IS_ALICE,), False, (ALICE, ALICE_AND_APP, ALICE_AND_ANY_CLIENT)),
        ((USER_IS_ALICE,), True, (ALICE,)),
        ((QuotaFilter("user", MatchType.DEFAULT),), False, (ANY_USER,)),
        ((QuotaFilter("user", MatchType.ANY),), True, (ALICE, ANY_USER)),
        ((USER_IS_ALICE, ANY_CLIENT_ID), True, (ALICE_AND_APP, ALICE_AND_ANY_CLIENT)),
        ((USER_IS_ALICE, QuotaFilter("client-id", MatchType.DEFAULT)), False, (ALICE_AND_ANY_CLIENT,)),
        ((QuotaFilter("user", MatchType.EXACT, "bob"),), False, ()),
        ((QuotaFilter("ip", MatchType.ANY),), False, (ADDRESS,)),
    ],
)
def test_a_filter_chooses_entities(
    filters: tuple[QuotaFilter, ...], strict: bool, entities: tuple[QuotaEntity, ...]
) -> None:
    assert found(*filters, strict=strict) == list(entities)


@pytest.mark.parametrize(
    ("filters", "text"),
    [
        ((QuotaFilter("", MatchType.ANY),), "Invalid empty entity type."),
        (
            (USER_IS_ALICE, QuotaFilter("user", MatchType.ANY)),
            "Entity type user cannot appear more than once in the filter.",
        ),
        (
            (QuotaFilter("user", MatchType.EXACT),),
            "Request specified MATCH_TYPE_EXACT, but set match string to null.",
        ),
        (
            (QuotaFilter("user", MatchType.DEFAULT, "alice"),),
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
        ),
        (
            (QuotaFilter("user", MatchType.ANY, "alice"),),
            "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
        ),
        ((QuotaFilter("user", 7),), "Unknown match type 7"),
        (
            (QuotaFilter("ip", MatchType.ANY), ANY_CLIENT_ID),
            "Invalid entity filter component combination. IP filter component should not be used with user "
            "or clientId filter component.",
        ),
    ],
)
def test_a_filter_that_contradicts_itself_is_refused(filters: tuple[QuotaFilter, ...], text: str) -> None:
    with pytest.raises(KafkaError) as refusal:
        found(*filters)

    assert (refusal.value.code, refusal.value.message) == (ErrorCode.INVALID_REQUEST, text)


def test_a_type_of_entities_that_there_is_not_is_not_supported() -> None:
    with pytest.raises(KafkaError) as refusal:
        found(QuotaFilter("group", MatchType.ANY))

    expected = (ErrorCode.UNSUPPORTED_VERSION, "Unsupported entity type group")
    assert (refusal.value.code, refusal.value.message) == expected
