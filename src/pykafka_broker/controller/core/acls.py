"""ACLs: which may be created, and which a filter finds (KIP-11, KIP-290).

A filter with a name looks only at the ACLs for that name, with MATCH also at those for its prefixes and for
`*`. A filter without a name looks at all ACLs.

Each ACL of a request succeeds or fails on its own; an ACL that exists succeeds without a record. Each filter
of a deletion succeeds or fails on its own. A request that needs too many records for one operation is refused
as a whole. The texts are those of Apache Kafka's AclControlManager.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from itertools import chain

from pykafka_broker.authorization.index import WILDCARD, Acl
from pykafka_broker.cluster.image import AclPattern, ClusterImage, acl_of, acl_record
from pykafka_broker.cluster.records import MAX_RECORDS_PER_OPERATION
from pykafka_broker.controller.core.events import (
    AclFilter,
    AclResult,
    CreateAcls,
    DeleteAcls,
    DeleteAclsResult,
    Moment,
)
from pykafka_broker.controller.core.state import ControllerState, Decision, check_operation_size
from pykafka_broker.protocol.acls import AclOperation, AclPermission, AclResourceType, PatternType
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records import metadata as m

#: For a longer name it is cheaper to go through all ACLs than to look up all prefixes of the name.
MAX_LOOKED_UP = 1000


def create_acls(state: ControllerState, event: CreateAcls, moment: Moment) -> Decision:
    """Create each ACL that does not exist yet."""
    results: list[AclResult] = []
    records: dict[Acl, m.AccessControlEntryRecord] = {}
    for acl, acl_id in zip(event.acls, moment.random_uuids(), strict=False):
        if text := _fault(acl):
            results.append(AclResult(ErrorCode.INVALID_REQUEST, text))
            continue
        results.append(AclResult())
        if acl not in state.image.acl_ids and acl not in records:
            records[acl] = acl_record(acl, acl_id)
    check_operation_size(len(records))
    return Decision(tuple(records.values()), tuple(results))


def delete_acls(state: ControllerState, event: DeleteAcls) -> Decision:
    """Delete the ACLs that the filters find. An ACL found by several filters is in the result of each."""
    results: list[DeleteAclsResult] = []
    removed: dict[bytes, None] = {}
    for each in event.filters:
        if text := _fault_of_filter(each):
            results.append(DeleteAclsResult(error=ErrorCode.INVALID_REQUEST, message=text))
            continue
        found = []
        for record in _matching_records(state.image, each):
            if len(removed) >= MAX_RECORDS_PER_OPERATION:
                text = (
                    f"Cannot remove more than {MAX_RECORDS_PER_OPERATION} acls in a single delete operation."
                )
                raise KafkaError(ErrorCode.INVALID_REQUEST, text)
            found.append(acl_of(record))
            removed[record.id] = None
        results.append(DeleteAclsResult(tuple(found)))
    records = tuple(m.RemoveAccessControlEntryRecord(id=acl_id) for acl_id in removed)
    return Decision(records, tuple(results))


def matching_acls(image: ClusterImage, wanted: AclFilter) -> Iterator[Acl]:
    """The ACLs that the filter finds, in no order; none if the filter has a number unknown to Kafka."""
    return map(acl_of, _matching_records(image, wanted))


def _matching_records(image: ClusterImage, wanted: AclFilter) -> Iterator[m.AccessControlEntryRecord]:
    if wanted.name is None or len(wanted.name) > MAX_LOOKED_UP:
        records = iter(image.acls.values())
    else:
        patterns = _patterns_named(image, wanted, wanted.name)
        records = chain.from_iterable(image.acls_of_patterns[each].values() for each in patterns)
    return (record for record in records if _is_meant(record, wanted))


def _patterns_named(image: ClusterImage, wanted: AclFilter, name: str) -> Iterator[AclPattern]:
    """The existing patterns that a filter with this name may match."""
    types = AclResourceType if wanted.resource_type == AclResourceType.ANY else (wanted.resource_type,)
    names = {PatternType.LITERAL: {name}, PatternType.PREFIXED: {name}}
    if wanted.pattern_type == PatternType.MATCH:
        names[PatternType.LITERAL] = {name, WILDCARD}
        names[PatternType.PREFIXED] = {name[:length] for length in range(1, len(name) + 1)}
    for resource_type in types:
        for pattern_type, candidates in names.items():
            for candidate in sorted(candidates):
                if (resource_type, candidate, pattern_type) in image.acls_of_patterns:
                    yield int(resource_type), candidate, int(pattern_type)


def _is_meant(acl: m.AccessControlEntryRecord, wanted: AclFilter) -> bool:
    if wanted.resource_type not in (AclResourceType.ANY, acl.resource_type):
        return False
    if wanted.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
        return False
    return (
        (wanted.name is None or _is_named(acl, wanted.name, wanted.pattern_type))
        and wanted.principal in (None, acl.principal)
        and wanted.host in (None, acl.host)
        and wanted.operation in (AclOperation.ANY, acl.operation)
        and wanted.permission in (AclPermission.ANY, acl.permission_type)
    )


def _is_named(acl: m.AccessControlEntryRecord, name: str, pattern_type: int) -> bool:
    if pattern_type != PatternType.MATCH:
        return acl.resource_name == name
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, WILDCARD)


def _fault(acl: Acl) -> str | None:
    """What is wrong with an ACL to create, or None."""
    if text := (
        _fault_of_number("resourceType", AclResourceType, acl.resource_type, without=(AclResourceType.ANY,))
        or _fault_of_number(
            "patternType", PatternType, acl.pattern_type, without=(PatternType.ANY, PatternType.MATCH)
        )
        or _fault_of_number("operation", AclOperation, acl.operation, without=(AclOperation.ANY,))
        or _fault_of_number("permissionType", AclPermission, acl.permission, without=(AclPermission.ANY,))
    ):
        return text
    if not acl.name:
        return "Resource name should not be empty"
    if ":" not in acl.principal:
        return (
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the "
            "principal type from the principal name)"
        )
    return None


def _fault_of_number(
    field: str, numbers: type[IntEnum], number: int, *, without: tuple[IntEnum, ...]
) -> str | None:
    try:
        known = numbers(number)
    except ValueError:
        return f"Invalid {field} UNKNOWN"
    return f"Invalid {field} {known.name}" if known in without else None


def _fault_of_filter(wanted: AclFilter) -> str | None:
    """The error text for a filter of a deletion that has a number unknown to Kafka, or None."""
    if wanted.resource_type not in tuple(AclResourceType) or wanted.pattern_type not in tuple(PatternType):
        return "Unknown patternFilter."
    if wanted.operation not in tuple(AclOperation) or wanted.permission not in tuple(AclPermission):
        return "Unknown entryFilter."
    return None
