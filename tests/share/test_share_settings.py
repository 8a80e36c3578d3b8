"""What a share group goes by: its own configuration within the broker's bounds, or else the broker's."""

from __future__ import annotations

import pytest

from pykafka_broker.cluster.image import ClusterImage, ResourceType
from pykafka_broker.config import ConfigError
from pykafka_broker.config.group import GROUP
from pykafka_broker.config.sources import load_config
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.settings import (
    OffsetResetStrategy,
    SharePartitionSettings,
    offset_reset,
    share_partition_settings,
    share_settings,
)


def test_without_any_configuration_the_defaults_are_kafkas() -> None:
    assert share_settings(load_config(), ClusterImage()).of("any") == SharePartitionSettings(
        ShareConfig(2_000, 5, 30_000, True), "high_watermark", OffsetResetStrategy("latest")
    )


def test_a_group_without_values_of_its_own_has_the_brokers() -> None:
    config = load_config(
        overrides=[
            "group.share.partition.max.record.locks=300",
            "group.share.delivery.count.limit=3",
            "group.share.record.lock.duration.ms=20000",
        ]
    )
    image = ClusterImage(configs={(ResourceType.GROUP, "own"): {"share.delivery.count.limit": "7"}})

    settings = share_settings(config, image)

    assert settings.of("any").partitions == ShareConfig(300, 3, 20_000)
    assert settings.of("own").partitions == ShareConfig(300, 7, 20_000)


def test_a_group_has_its_own_values() -> None:
    settings = share_partition_settings(
        load_config(),
        {
            "share.partition.max.record.locks": "100",
            "share.record.lock.duration.ms": "15000",
            "share.renew.acknowledge.enable": "false",
            "share.isolation.level": "read_committed",
            "share.auto.offset.reset": "earliest",
        },
    )

    assert settings == SharePartitionSettings(
        ShareConfig(100, 5, 15_000, False), "last_stable", OffsetResetStrategy("earliest")
    )


def test_a_value_that_was_set_when_bounds_were_wider_counts_as_the_bound() -> None:
    settings = share_partition_settings(
        load_config(),
        {
            "share.partition.max.record.locks": "9000",
            "share.delivery.count.limit": "20",
            "share.record.lock.duration.ms": "1000",
        },
    )

    assert settings.partitions == ShareConfig(4_000, 10, 15_000)


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("P1D", 86_400_000),
        ("PT1H30M", 5_400_000),
        ("pt2.5s", 2_500),
        ("P2DT3H4M5.006S", 183_845_006),
        ("PT0S", 0),
        ("PT1,0009S", 1_000),
        pytest.param(f"P{'0' * 5_000}1D", 86_400_000, id="more digits than an int may be read from"),
        ("PT9223372036854775807S", 9_223_372_036_854_775_807_000),
    ],
)
def test_a_group_may_begin_some_time_back(text: str, duration_ms: int) -> None:
    assert offset_reset(f"by_duration:{text}") == OffsetResetStrategy("by_duration", duration_ms)


@pytest.mark.parametrize(
    "text",
    [
        *("", "P", "PT", "1D", "PT1", "P1H", "P\uff11D", "PT1.1234567890S", "P-1D"),
        *("PT9223372036854775808S", "P106751991167301D", "P99999999999999999999D"),
        pytest.param(f"P{'9' * 5_000}D", id="5,000 digits"),
    ],
)
def test_what_is_no_duration_is_refused_when_it_is_set(text: str) -> None:
    with pytest.raises(ConfigError, match="must be either 'earliest', 'latest' or of the format"):
        GROUP["share.auto.offset.reset"].parse(f"by_duration:{text}")
