"""ListConfigResources (API key 74): the resources that have a configuration of their own.

v0 flexible, client metrics only (it was called ListClientMetricsResources), v1 any resource type.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i8, i16, i32, message, string


@message(api_key=74, versions="0-1", flexible="0+", listeners="broker")
class ListConfigResourcesRequest:
    resource_types: list[int] = array(i8(), "1+", default=[])


@message()
class ConfigResource:
    resource_name: str = string()
    resource_type: int = i8("1+", default=16)


@message(api_key=74, versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    config_resources: list[ConfigResource] = array(ConfigResource)
