"""Client quotas: which may be set for which entity, and which a filter finds (KIP-546, KIP-612).

An entity is a user, a client id, both together, or an address; the name None stands for the default of its
type. Users and client ids have byte rates, a share of the request time and a rate of partitions created and
deleted; an address has a rate of new connections. Each entry of a request succeeds or fails as a whole. The
texts are those of Apache Kafka's ClientQuotaControlManager and ClientQuotasImage.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum

from pykafka_broker.cluster.image import ClusterImage, QuotaEntity
from pykafka_broker.controller.core.events import AlterClientQuotas, AlterClientQuotasResult, QuotaFilter
from pykafka_broker.controller.core.state import ControllerState, Decision, check_operation_size
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records import metadata as m

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"
ENTITY_TYPES = (USER, CLIENT_ID, IP)

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

_INT, _LONG = ("an INT", float(2**31 - 1)), ("a LONG", float(2**63 - 1))
#: The integer type of each quota, with its largest value; None: any number.
_TYPES_FOR_CLIENTS = {
    PRODUCER_BYTE_RATE: _LONG,
    CONSUMER_BYTE_RATE: _LONG,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
_TYPES_FOR_ADDRESSES = {CONNECTION_CREATION_RATE: _INT}

QUOTAS_OF_CLIENTS = tuple(_TYPES_FOR_CLIENTS)
QUOTAS_OF_ADDRESSES = tuple(_TYPES_FOR_ADDRESSES)


class MatchType(IntEnum):
    """How a filter chooses among the entities with a type; the numbers are those of DescribeClientQuotas."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


def named_hosts(event: AlterClientQuotas) -> frozenset[str]:
    """The addresses and host names whose quotas are altered."""
    return frozenset(name for each in event.alterations for kind, name in each.entity if kind == IP and name)


def alter_client_quotas(state: ControllerState, event: AlterClientQuotas) -> Decision:
    """Set and remove quotas; each entity succeeds or fails on its own."""
    results: dict[QuotaEntity, AlterClientQuotasResult] = {}
    records: list[object] = []
    for entity, changes in event.alterations:
        keys = [key for key, _ in changes]
        try:
            if entity in results or len(set(keys)) < len(keys):
                text = f"Ignoring duplicate entity {_shown(entity)}"
                raise KafkaError(ErrorCode.INVALID_REQUEST, text)
            quota_types = _quotas_that_may_be_set_for(entity, event.unknown_hosts)
            records += _records(entity, changes, quota_types, state.image.client_quotas.get(entity, {}))
        except KafkaError as error:
            results[entity] = AlterClientQuotasResult(entity, error.code, error.message)
        else:
            results[entity] = AlterClientQuotasResult(entity)
    check_operation_size(len(records))
    return Decision(() if event.validate_only else tuple(records), tuple(results.values()))


def _quotas_that_may_be_set_for(
    entity: QuotaEntity, unknown_hosts: frozenset[str]
) -> Mapping[str, tuple[str, float] | None]:
    """The quotas that an entity may have, with their types; KafkaError if there is no such entity."""
    if not entity:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in ENTITY_TYPES:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Empty {kind} not supported")
    names = dict(entity)
    if IP not in names:
        return _TYPES_FOR_CLIENTS
    if len(names) > 1:
        # The missing blank is Apache Kafka's.
        text = "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    if names[IP] in unknown_hosts:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{names[IP]} is not a valid IP or resolvable host.")
    return _TYPES_FOR_ADDRESSES


def _records(
    entity: QuotaEntity,
    changes: Iterable[tuple[str, float | None]],
    quota_types: Mapping[str, tuple[str, float] | None],
    current: Mapping[str, float],
) -> list[object]:
    records: list[object] = []
    for key, value in changes:
        if value is None:
            # Apache Kafka lets any key be removed, even one that does not exist.
            if key in current:
                records.append(_record(entity, key, 0.0, remove=True))
            continue
        _check_value(key, value, quota_types)
        if not _is_same(current.get(key), value):
            records.append(_record(entity, key, value))
    return records


def _check_value(key: str, value: float, quota_types: Mapping[str, tuple[str, float] | None]) -> None:
    if key not in quota_types:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid configuration key {key}")
    if value <= 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Quota {key} must be greater than 0")
    integer = quota_types[key]
    if integer is None:
        return
    type_name, largest = integer
    if value > largest:
        text = f"Proposed value for {key} is too large for {type_name}."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    if value % 1 > 1e-6:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key} cannot be a fractional value.")


def _is_same(old: float | None, new: float) -> bool:
    return old == new or (old is not None and math.isnan(old) and math.isnan(new))


def _record(entity: QuotaEntity, key: str, value: float, *, remove: bool = False) -> m.ClientQuotaRecord:
    parts = [m.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    return m.ClientQuotaRecord(entity=parts, key=key, value=value, remove=remove)


def _shown(entity: QuotaEntity) -> str:
    """The entity as Apache Kafka writes it into its texts."""
    names = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{names}}})"


def matching_quotas(
    image: ClusterImage, filters: Iterable[QuotaFilter], *, strict: bool
) -> Iterator[tuple[QuotaEntity, Mapping[str, float]]]:
    """The entities with quotas that match every filter; with `strict`, only those with no other types.

    Raises:
        KafkaError: the filters contradict each other, or one of them is invalid.
    """
    asked: dict[str, QuotaFilter] = {}
    for each in filters:
        _check_filter(each, asked)
        asked[each.entity_type] = each
    if IP in asked and len(asked) > 1:
        text = (
            "Invalid entity filter component combination. IP filter component should not be used with "
            "user or clientId filter component."
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    return (
        (entity, quotas)
        for entity, quotas in image.client_quotas.items()
        if _is_meant(dict(entity), asked, strict=strict)
    )


def _check_filter(new: QuotaFilter, others: Mapping[str, QuotaFilter]) -> None:
    kind, match_type, match = new
    if not kind:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
    if kind in others:
        text = f"Entity type {kind} cannot appear more than once in the filter."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    if kind not in ENTITY_TYPES:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
    if match_type == MatchType.EXACT:
        if match is None:
            text = "Request specified MATCH_TYPE_EXACT, but set match string to null."
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    elif match_type in (MatchType.DEFAULT, MatchType.ANY):
        if match is not None:
            name = "MATCH_TYPE_DEFAULT" if match_type == MatchType.DEFAULT else "MATCH_TYPE_SPECIFIED"
            text = f"Request specified {name}, but also specified a match string."
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown match type {match_type}")


def _is_meant(names: Mapping[str, str | None], asked: Mapping[str, QuotaFilter], *, strict: bool) -> bool:
    if strict and len(names) != len(asked):
        return False
    return all(
        kind in names and (each.match_type == MatchType.ANY or names[kind] == each.match)
        for kind, each in asked.items()
    )
