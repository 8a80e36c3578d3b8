"""AlterConfigs (API key 33): replace a resource's whole configuration; IncrementalAlterConfigs is better.

v1: a broker answers before it throttles, not after; v2 flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i8, i16, i32, message, string


@message()
class AlterableConfig:
    name: str = string()
    value: str | None = string(nullable=True, secret=True)


@message()
class AlterConfigsResource:
    resource_type: int = i8()
    resource_name: str = string()
    configs: list[AlterableConfig] = array(AlterableConfig)


@message(api_key=33, versions="0-2", flexible="2+", listeners="broker controller")
class AlterConfigsRequest:
    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


@message()
class AlterConfigsResourceResponse:
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    resource_type: int = i8()
    resource_name: str = string()


@message(api_key=33, versions="0-2", flexible="2+")
class AlterConfigsResponse:
    throttle_time_ms: int = i32(default=0)
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
