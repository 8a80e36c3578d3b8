"""Which ACLs may be created, and which of them a filter finds."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.authorization.index import Acl
from pykafka_broker.cluster.image import ClusterImage, acl_of, acl_record, pattern_of, replay
from pykafka_broker.cluster.records import MAX_RECORDS_PER_OPERATION
from pykafka_broker.cluster.snapshot import snapshot_records
from pykafka_broker.controller.core import acls as acls_module
from pykafka_broker.controller.core.acls import matching_acls
from pykafka_broker.controller.core.events import (
    AclFilter,
    AclResult,
    CreateAcls,
    DeleteAcls,
    DeleteAclsResult,
    EventError,
    Moment,
)
from pykafka_broker.controller.core.state import ControllerState
from pykafka_broker.protocol.acls import AclOperation, AclPermission, AclResourceType, PatternType
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records import metadata as m
from tests.controller.deciding import NOW_MS, an_empty_cluster, decide, uuid

ALICE_READS = Acl(
    AclResourceType.TOPIC,
    "orders",
    PatternType.LITERAL,
    "User:alice",
    "*",
    AclOperation.READ,
    AclPermission.ALLOW,
)
BOB_IS_DENIED = ALICE_READS._replace(principal="User:bob", permission=AclPermission.DENY)
ORDERS_AND_MORE = ALICE_READS._replace(name="ord", pattern_type=PatternType.PREFIXED)
EVERY_TOPIC = ALICE_READS._replace(name="*", operation=AclOperation.DESCRIBE, host="10.0.0.1")
A_GROUP = ALICE_READS._replace(resource_type=AclResourceType.GROUP)
ACLS = (ALICE_READS, BOB_IS_DENIED, ORDERS_AND_MORE, EVERY_TOPIC, A_GROUP)
ANY = AclFilter(AclResourceType.ANY, None, PatternType.ANY, None, None, AclOperation.ANY, AclPermission.ANY)
#: The ids of the first ACLs of a cluster.
IDS = tuple(islice(Moment(NOW_MS, NOW_MS).random_uuids(), 3))
#: A number that Kafka does not have.
LACKING = 99


def creating(*acls: Acl) -> CreateAcls:
    return CreateAcls(acls)


def a_cluster_with_acls(*acls: Acl) -> ControllerState:
    return decide(an_empty_cluster(), creating(*acls))[0]


def found(**wanted: Any) -> list[Acl]:
    return list(matching_acls(a_cluster_with_acls(*ACLS).image, ANY._replace(**wanted)))


def test_acls_are_created() -> None:
    state, records, results = decide(an_empty_cluster(), creating(ALICE_READS, ORDERS_AND_MORE))

    assert records[0] == m.AccessControlEntryRecord(
        id=IDS[0],
        resource_type=2,
        resource_name="orders",
        pattern_type=3,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    )
    assert results == (AclResult(), AclResult())
    assert {acl_id: acl_of(record) for acl_id, record in state.image.acls.items()} == {
        IDS[0]: ALICE_READS,
        IDS[1]: ORDERS_AND_MORE,
    }


def test_an_acl_that_is_there_already_is_created_without_a_record() -> None:
    state = a_cluster_with_acls(ALICE_READS)

    _, records, results = decide(state, creating(BOB_IS_DENIED, ALICE_READS, BOB_IS_DENIED), seed=1)

    assert [(record.id, acl_of(record)) for record in records] == [
        (next(Moment(NOW_MS, NOW_MS, 1).random_uuids()), BOB_IS_DENIED)
    ]
    assert results == (AclResult(),) * 3


def test_an_acl_that_was_deleted_can_be_created_again() -> None:
    state = decide(a_cluster_with_acls(ALICE_READS), DeleteAcls((ANY,)))[0]
    assert (dict(state.image.acls), dict(state.image.acl_ids)) == ({}, {})

    _, records, _ = decide(state, creating(ALICE_READS), seed=7)

    assert [record.id for record in records] == [next(Moment(NOW_MS, NOW_MS, 7).random_uuids())]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"resource_type": AclResourceType.ANY}, "Invalid resourceType ANY"),
        ({"resource_type": LACKING}, "Invalid resourceType UNKNOWN"),
        ({"pattern_type": PatternType.ANY}, "Invalid patternType ANY"),
        ({"pattern_type": PatternType.MATCH}, "Invalid patternType MATCH"),
        ({"pattern_type": LACKING}, "Invalid patternType UNKNOWN"),
        ({"operation": AclOperation.ANY}, "Invalid operation ANY"),
        ({"operation": LACKING}, "Invalid operation UNKNOWN"),
        ({"permission": AclPermission.ANY}, "Invalid permissionType ANY"),
        ({"permission": LACKING}, "Invalid permissionType UNKNOWN"),
        ({"name": ""}, "Resource name should not be empty"),
        (
            {"principal": "alice"},
            "Could not parse principal from `alice` (no colon is present separating the principal type "
            "from the principal name)",
        ),
        # Of several faults the first in this order is told.
        ({"principal": "alice", "name": "", "operation": LACKING}, "Invalid operation UNKNOWN"),
    ],
)
def test_an_acl_that_cannot_be_is_refused_and_the_others_are_created(
    changes: dict[str, Any], text: str
) -> None:
    _, records, results = decide(an_empty_cluster(), creating(ALICE_READS._replace(**changes), BOB_IS_DENIED))

    assert results == (AclResult(ErrorCode.INVALID_REQUEST, text), AclResult())
    assert [(record.id, acl_of(record)) for record in records] == [(IDS[1], BOB_IS_DENIED)]


def test_a_request_of_too_many_acls_is_refused_as_a_whole() -> None:
    most = tuple(ALICE_READS._replace(name=str(number)) for number in range(MAX_RECORDS_PER_OPERATION))
    text = "Unable to perform excessively large batch operation."

    state, records, results = decide(an_empty_cluster(), creating(*most, most[0]))
    assert (len(records), len(results)) == (MAX_RECORDS_PER_OPERATION, MAX_RECORDS_PER_OPERATION + 1)

    _, records, result = decide(an_empty_cluster(), creating(*most, BOB_IS_DENIED))
    assert (records, result) == ((), EventError(ErrorCode.POLICY_VIOLATION, text))

    _, records, _ = decide(state, DeleteAcls((ANY,)))
    assert len(records) == MAX_RECORDS_PER_OPERATION

    state = decide(state, creating(BOB_IS_DENIED), seed=2)[0]
    _, records, result = decide(state, DeleteAcls((ANY,)))
    text = "Cannot remove more than 10000 acls in a single delete operation."
    assert (records, result) == ((), EventError(ErrorCode.INVALID_REQUEST, text))


def test_each_filter_of_a_deletion_tells_what_it_found_and_each_acl_is_deleted_once() -> None:
    state = a_cluster_with_acls(ALICE_READS, BOB_IS_DENIED, A_GROUP)

    state, records, results = decide(
        state,
        DeleteAcls(
            (
                ANY._replace(resource_type=AclResourceType.TOPIC),
                ANY._replace(principal="User:alice"),
                ANY._replace(principal="User:carol"),
            ),
        ),
    )

    assert [set(result.acls) for result in results] == [
        {ALICE_READS, BOB_IS_DENIED},
        {ALICE_READS, A_GROUP},
        set(),
    ]
    assert {record.id for record in records} == set(IDS)
    assert len(records) == 3
    assert state.image.acls == {}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"resource_type": LACKING}, "Unknown patternFilter."),
        ({"pattern_type": LACKING}, "Unknown patternFilter."),
        ({"operation": LACKING}, "Unknown entryFilter."),
        ({"permission": LACKING}, "Unknown entryFilter."),
        ({"permission": LACKING, "pattern_type": LACKING}, "Unknown patternFilter."),
    ],
)
def test_a_filter_of_a_deletion_with_unknown_numbers_is_refused_and_the_others_delete(
    changes: dict[str, Any], text: str
) -> None:
    state = a_cluster_with_acls(ALICE_READS)

    state, _, results = decide(state, DeleteAcls((ANY._replace(**changes), ANY)))

    refused = DeleteAclsResult(error=ErrorCode.INVALID_REQUEST, message=text)
    assert results == (refused, DeleteAclsResult((ALICE_READS,)))
    assert state.image.acls == {}


@pytest.mark.parametrize(
    ("wanted", "acls"),
    [
        ({}, ACLS),
        ({"resource_type": AclResourceType.GROUP}, (A_GROUP,)),
        ({"resource_type": AclResourceType.USER}, ()),
        ({"resource_type": LACKING}, ()),
        ({"pattern_type": PatternType.PREFIXED}, (ORDERS_AND_MORE,)),
        ({"pattern_type": PatternType.MATCH}, ACLS),
        ({"pattern_type": LACKING}, ()),
        # A name stands for itself, and with MATCH for a resource that has it.
        ({"name": "orders"}, (ALICE_READS, BOB_IS_DENIED, A_GROUP)),
        ({"name": "ord"}, (ORDERS_AND_MORE,)),
        ({"name": "*"}, (EVERY_TOPIC,)),
        ({"name": "ord", "pattern_type": PatternType.LITERAL}, ()),
        ({"name": "orders", "pattern_type": PatternType.PREFIXED}, ()),
        ({"name": "orders", "pattern_type": PatternType.MATCH}, ACLS),
        ({"name": "ordinary", "pattern_type": PatternType.MATCH}, (ORDERS_AND_MORE, EVERY_TOPIC)),
        ({"name": "or", "pattern_type": PatternType.MATCH}, (EVERY_TOPIC,)),
        ({"principal": "User:bob"}, (BOB_IS_DENIED,)),
        ({"principal": "User:*"}, ()),
        ({"host": "10.0.0.1"}, (EVERY_TOPIC,)),
        ({"operation": AclOperation.DESCRIBE}, (EVERY_TOPIC,)),
        ({"operation": AclOperation.ALL}, ()),
        ({"permission": AclPermission.DENY}, (BOB_IS_DENIED,)),
    ],
)
def test_a_filter_finds_acls(wanted: dict[str, Any], acls: tuple[Acl, ...]) -> None:
    assert sorted(found(**wanted)) == sorted(acls)


@pytest.mark.parametrize("pattern_type", [PatternType.LITERAL, PatternType.ANY, PatternType.MATCH])
def test_a_filter_with_a_name_looks_at_the_acls_about_it_alone(
    pattern_type: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = []
    is_meant = acls_module._is_meant

    def counting(acl: m.AccessControlEntryRecord, wanted: AclFilter) -> bool:
        looked_at.append(acl.resource_name)
        return is_meant(acl, wanted)

    monkeypatch.setattr(acls_module, "_is_meant", counting)
    others = [ALICE_READS._replace(name=f"other-{number}") for number in range(9000)]
    image = a_cluster_with_acls(*others, *ACLS).image
    assert set(matching_acls(image, ANY._replace(name="orders", pattern_type=pattern_type))) >= {ALICE_READS}
    assert len(looked_at) <= len(ACLS)


def test_a_long_name_is_found_too() -> None:
    long = ALICE_READS._replace(name="x" * 30_000, resource_type=AclResourceType.TRANSACTIONAL_ID)
    prefix = long._replace(name="xx", pattern_type=PatternType.PREFIXED)
    image = a_cluster_with_acls(*ACLS, long, prefix).image
    assert list(matching_acls(image, ANY._replace(name=long.name))) == [long]
    wanted = ANY._replace(name=long.name, pattern_type=PatternType.MATCH, resource_type=long.resource_type)
    assert set(matching_acls(image, wanted)) == {long, prefix}


def test_acls_come_back_from_a_snapshot() -> None:
    image = a_cluster_with_acls(*ACLS).image

    copy = replay(ClusterImage(image.cluster_id), snapshot_records(image), offset=0, epoch=1)

    assert (copy.acls, copy.acl_ids) == (image.acls, image.acl_ids)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(1, 4), st.sampled_from(ACLS)),
            st.tuples(st.just("remove"), st.integers(1, 4), st.none()),
        )
    )
)
def test_acls_are_known_by_their_ids_whatever_a_log_says(
    steps: list[tuple[str, int, Acl | None]],
) -> None:
    """Also where an id or an ACL comes twice, which no controller writes."""
    image = ClusterImage("c")
    for what, number, acl in steps:
        record: object
        if what == "put" and acl is not None:
            record = acl_record(acl, uuid(number))
        elif uuid(number) in image.acls:
            record = m.RemoveAccessControlEntryRecord(id=uuid(number))
        else:
            continue
        image = replay(image, [record], offset=image.offset + 1, epoch=1)

    assert all(acl_of(image.acls[acl_id]) == acl for acl, acl_id in image.acl_ids.items())
    of_patterns = [
        (each, record) for each, acls in image.acls_of_patterns.items() for record in acls.values()
    ]
    assert all(pattern_of(acl_of(record)) == each for each, record in of_patterns)
    assert {record.id: record for _, record in of_patterns} == image.acls
