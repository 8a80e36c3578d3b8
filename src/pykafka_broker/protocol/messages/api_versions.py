"""ApiVersions (API key 18)."""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i16, i32, i64, message, string


@message(api_key=18, versions="0-4", flexible="3+")
class ApiVersionsRequest:
    client_software_name: str = string("3+", default="")
    client_software_version: str = string("3+", default="")


@message()
class ApiVersion:
    api_key: int = i16()
    min_version: int = i16()
    max_version: int = i16()


@message()
class SupportedFeatureKey:
    name: str = string()
    min_version: int = i16()
    max_version: int = i16()


@message()
class FinalizedFeatureKey:
    name: str = string()
    max_version_level: int = i16()
    min_version_level: int = i16()


@message(api_key=18, versions="0-4", flexible="3+")
class ApiVersionsResponse:
    error_code: int = i16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = i32("1+", default=0)
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, "3+", tag=0, default=[])
    finalized_features_epoch: int = i64("3+", tag=1, default=-1)
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, "3+", tag=2, default=[])
    zk_migration_ready: bool = boolean("3+", tag=3, default=False)
