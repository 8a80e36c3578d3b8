"""ControllerRegistration (API key 70): a controller introduces itself to the active one.

v0 is the only version, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i16, i32, message, string, u16, uuid


@message()
class Listener:
    name: str = string()
    host: str = string()
    port: int = u16()
    security_protocol: int = i16()


@message()
class Feature:
    name: str = string()
    min_supported_version: int = i16()
    max_supported_version: int = i16()


@message(api_key=70, versions="0", flexible="0+", listeners="controller")
class ControllerRegistrationRequest:
    controller_id: int = i32()
    incarnation_id: bytes = uuid()
    zk_migration_ready: bool = boolean()
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)


@message(api_key=70, versions="0", flexible="0+")
class ControllerRegistrationResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
