"""AlterClientQuotas (API key 49): set or remove quotas of users, clients and addresses.

v1 flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, f64, i16, i32, message, string


@message()
class EntityData:
    entity_type: str = string()
    entity_name: str | None = string(nullable=True)


@message()
class OpData:
    key: str = string()
    value: float = f64()
    remove: bool = boolean()


@message()
class AlterClientQuotasRequestEntryData:
    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


@message(api_key=49, versions="0-1", flexible="1+", listeners="broker controller")
class AlterClientQuotasRequest:
    entries: list[AlterClientQuotasRequestEntryData] = array(AlterClientQuotasRequestEntryData)
    validate_only: bool = boolean()


@message()
class AlterClientQuotasResponseEntryData:
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    entity: list[EntityData] = array(EntityData)


@message(api_key=49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    throttle_time_ms: int = i32(default=0)
    entries: list[AlterClientQuotasResponseEntryData] = array(AlterClientQuotasResponseEntryData)
