"""ApiVersions (API key 18): the APIs and versions that a broker serves; every modern client's first request.

v1 throttle time, v3 flexible, the client's name and version, and the features; v4 may list features whose
minimum is 0. The response header is v0 for ever (see `headers`). To a version that it does not know, a broker
answers v0 with UNSUPPORTED_VERSION and the row of this API only.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i16, i32, i64, message, string


@message(api_key=18, versions="0-4", flexible="3+", listeners="broker controller")
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
    #: Before v4, features whose minimum is 0 must be left out.
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, "3+", tag=0, default=[])
    #: -1 when it is not known.
    finalized_features_epoch: int = i64("3+", tag=1, default=-1)
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, "3+", tag=2, default=[])
    zk_migration_ready: bool = boolean("3+", tag=3, default=False)
