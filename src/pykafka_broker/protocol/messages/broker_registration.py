"""BrokerRegistration (API key 62): a starting broker introduces itself to the controller.

v0 flexible, v1 migration from ZooKeeper (never set any more), v2 log directories, v3 the epoch before a clean
shutdown, v4 features whose minimum is 0.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i16, i32, i64, message, string, u16, uuid


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


@message(api_key=62, versions="0-4", flexible="0+", listeners="controller")
class BrokerRegistrationRequest:
    broker_id: int = i32(entity="broker_id")
    cluster_id: str = string()
    incarnation_id: bytes = uuid()
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)
    rack: str | None = string(nullable=True)
    is_migrating_zk_broker: bool = boolean("1+", default=False)
    log_dirs: list[bytes] = array(uuid(), "2+", default=[])
    previous_broker_epoch: int = i64("3+", default=-1)


@message(api_key=62, versions="0-4", flexible="0+")
class BrokerRegistrationResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    broker_epoch: int = i64(default=-1)
