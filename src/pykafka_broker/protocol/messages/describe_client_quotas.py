"""DescribeClientQuotas (API key 48): the quotas that match a filter of users, clients and addresses.

v1 flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, f64, i8, i16, i32, message, string


@message()
class ComponentData:
    entity_type: str = string()
    match_type: int = i8()
    match: str | None = string(nullable=True)


@message(api_key=48, versions="0-1", flexible="1+", listeners="broker")
class DescribeClientQuotasRequest:
    components: list[ComponentData] = array(ComponentData)
    strict: bool = boolean()


@message()
class EntityData:
    entity_type: str = string()
    entity_name: str | None = string(nullable=True)


@message()
class ValueData:
    key: str = string()
    value: float = f64()


@message()
class EntryData:
    entity: list[EntityData] = array(EntityData)
    values: list[ValueData] = array(ValueData)


@message(api_key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    entries: list[EntryData] | None = array(EntryData, nullable=True)
