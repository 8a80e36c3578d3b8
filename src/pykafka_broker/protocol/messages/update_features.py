"""UpdateFeatures (API key 57): raise or lower finalized feature levels.

v0 flexible, v1 validation only and kinds of downgrade, v2 one answer for all features instead of one each.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i8, i16, i32, message, string


@message()
class FeatureUpdateKey:
    feature: str = string()
    max_version_level: int = i16()
    allow_downgrade: bool = boolean("0", default=False)
    upgrade_type: int = i8("1+", default=1)


@message(api_key=57, versions="0-2", flexible="0+", listeners="broker controller")
class UpdateFeaturesRequest:
    timeout_ms: int = i32(default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = boolean("1+", default=False)


@message()
class UpdatableFeatureResult:
    feature: str = string()
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)


@message(api_key=57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, "0-1", default=[])
