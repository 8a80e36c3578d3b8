"""DescribeConfigs (API key 32): the configuration of topics, brokers, groups and client metrics.

v1 the source of each value and the values it hides (synonyms), v3 types and documentation, v4 flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i8, i16, i32, message, string


@message()
class DescribeConfigsResource:
    resource_type: int = i8()
    resource_name: str = string()
    #: None asks for all of them.
    configuration_keys: list[str] | None = array(string(), nullable=True)


@message(api_key=32, versions="1-4", flexible="4+", listeners="broker controller")
class DescribeConfigsRequest:
    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean(default=False)
    include_documentation: bool = boolean("3+", default=False)


@message()
class DescribeConfigsSynonym:
    name: str = string()
    value: str | None = string(nullable=True)
    source: int = i8()


@message()
class DescribeConfigsResourceResult:
    name: str = string()
    #: None also for sensitive values.
    value: str | None = string(nullable=True)
    read_only: bool = boolean()
    config_source: int = i8(default=-1)
    is_sensitive: bool = boolean()
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym)
    config_type: int = i8("3+", default=0)
    documentation: str | None = string("3+", nullable=True, default=None)


@message()
class DescribeConfigsResult:
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    resource_type: int = i8()
    resource_name: str = string()
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


@message(api_key=32, versions="1-4", flexible="4+")
class DescribeConfigsResponse:
    throttle_time_ms: int = i32(default=0)
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)
