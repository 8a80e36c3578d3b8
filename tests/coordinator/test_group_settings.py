"""What the group coordinator is told of configuration and of the cluster's topics."""

from __future__ import annotations

import pytest

from pykafka_broker.cluster.image import (
    BrokerRegistration,
    ClusterImage,
    PartitionRegistration,
    ResourceType,
    TopicImage,
)
from pykafka_broker.config import BrokerConfig
from pykafka_broker.coordinator.groups.cluster_topics import ClusterTopics, changed_topics
from pykafka_broker.coordinator.groups.core.config import (
    ConsumerGroupSettings,
    MigrationPolicy,
    ShareGroupSettings,
    StreamsGroupSettings,
)
from pykafka_broker.coordinator.groups.core.topics import TopicInfo
from pykafka_broker.coordinator.groups.settings import coordinator_config
from pykafka_broker.testing.home import Home

T = b"t" * 16
NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
}


def config(**values: str) -> BrokerConfig:
    return BrokerConfig(NODE | {name.replace("__", "."): value for name, value in values.items()})


def test_a_group_has_the_brokers_settings_or_its_own_within_the_brokers_bounds() -> None:
    image = ClusterImage(
        configs={
            (ResourceType.GROUP, "quick"): {"consumer.heartbeat.interval.ms": "6000"},
            (ResourceType.GROUP, "bold"): {"consumer.session.timeout.ms": "1000000"},
            (ResourceType.TOPIC, "t"): {"retention.ms": "1"},
        }
    )

    told = coordinator_config(
        config(
            group__consumer__session__timeout__ms="50000",
            group__consumer__assignment__interval__ms="0",
            group__consumer__migration__policy="Upgrade",
            group__consumer__assignors="org.apache.kafka.coordinator.group.assignor.RangeAssignor",
        ),
        image,
    )

    assert told.consumer_settings("any") == ConsumerGroupSettings(50_000, 5_000, 0)
    assert told.consumer_settings("quick") == ConsumerGroupSettings(50_000, 6_000, 0)
    assert told.consumer_settings("bold") == ConsumerGroupSettings(60_000, 5_000, 0)
    assert told.consumer_group_migration_policy is MigrationPolicy.UPGRADE
    assert told.consumer_group_assignors == ("range",)


def test_a_share_group_has_the_brokers_settings_or_its_own_within_the_brokers_bounds() -> None:
    image = ClusterImage(
        configs={
            (ResourceType.GROUP, "quick"): {"share.heartbeat.interval.ms": "6000"},
            (ResourceType.GROUP, "bold"): {
                "share.session.timeout.ms": "1000000",
                "share.assignment.interval.ms": "7",
            },
        }
    )

    told = coordinator_config(
        config(
            group__share__session__timeout__ms="50000",
            group__share__max__size="7",
            group__share__assignors="org.apache.kafka.coordinator.group.assignor.SimpleAssignor",
            group__share__initialize__retry__interval__ms="9",
        ),
        image,
    )

    assert told.share_settings("any") == ShareGroupSettings(50_000, 5_000, 1_000)
    assert told.share_settings("quick") == ShareGroupSettings(50_000, 6_000, 1_000)
    assert told.share_settings("bold") == ShareGroupSettings(60_000, 5_000, 7)
    assert (told.share_group_max_size, told.share_group_assignors) == (7, ("simple",))
    assert told.share_group_initialize_retry_interval_ms == 9


def test_a_streams_group_has_the_brokers_settings_or_its_own_within_the_brokers_bounds() -> None:
    image = ClusterImage(
        configs={
            (ResourceType.GROUP, "quick"): {
                "streams.heartbeat.interval.ms": "6000",
                "streams.initial.rebalance.delay.ms": "0",
                "streams.num.standby.replicas": "1",
            },
            (ResourceType.GROUP, "bold"): {
                "streams.session.timeout.ms": "1000000",
                "streams.heartbeat.interval.ms": "1",
                "streams.num.standby.replicas": "9",
                "streams.assignment.interval.ms": "100000",
                "streams.initial.rebalance.delay.ms": "900000",
            },
        }
    )

    told = coordinator_config(
        config(
            group__streams__session__timeout__ms="50000",
            group__streams__max__size="7",
            group__streams__num__standby__replicas="2",
            group__streams__initial__rebalance__delay__ms="9",
            group__streams__assignment__interval__ms="5",
        ),
        image,
    )

    assert told.streams_settings("any") == StreamsGroupSettings(50_000, 5_000, 2, 9, 5, 7)
    assert told.streams_settings("quick") == StreamsGroupSettings(50_000, 6_000, 1, 0, 5, 7)
    assert told.streams_settings("bold") == StreamsGroupSettings(60_000, 5_000, 2, 900_000, 15_000, 7)


def topic(name: str, *replicas: tuple[int, ...], topic_id: bytes = T) -> TopicImage:
    partitions = {
        number: PartitionRegistration(number, each, each, each[0]) for number, each in enumerate(replicas)
    }
    return TopicImage(name, topic_id, partitions)


def image_of(*topics: TopicImage, racks: dict[int, str] | None = None) -> ClusterImage:
    brokers = {
        number: BrokerRegistration(number, 0, bytes(16), {}, rack) for number, rack in (racks or {}).items()
    }
    return ClusterImage(
        offset=7,
        brokers=brokers,
        topics={each.name: each for each in topics},
        topic_names={each.topic_id: each.name for each in topics},
    )


def test_topics_are_found_by_name_and_id_with_the_racks_of_their_replicas() -> None:
    topics = ClusterTopics(image_of(topic("t", (1, 2), (3,)), racks={1: "a", 2: "b"}))

    assert topics.topic("t") == topics.topic_by_id(T) == TopicInfo("t", T, 2, (("a", "b"), ()))
    assert topics.topic("u") is topics.topic_by_id(b"u" * 16) is None
    assert (topics.version, list(topics.names())) == (7, ["t"])
    assert ClusterTopics(image_of(topic("t", (1,)))).topic("t") == TopicInfo("t", T, 1)


def test_what_came_what_changed_and_what_went() -> None:
    same = topic("same", (1,), topic_id=b"s" * 16)
    old = image_of(same, topic("grows", (1,)), topic("goes", (1,), topic_id=b"g" * 16))
    grown = image_of(same, topic("grows", (1,), (1,)))

    assert changed_topics(old, grown) == (frozenset({"grows", "goes"}), False)
    assert changed_topics(grown, image_of(same, topic("grows", (1,), topic_id=b"n" * 16))) == (
        frozenset({"grows"}),
        True,
    )
    assert changed_topics(ClusterImage(), old) == (frozenset({"same", "grows", "goes"}), True)


async def test_a_running_broker_names_what_makes_no_difference_to_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "kafka.server.KafkaConfig")
    async with Home().running() as user:
        for bytes_cached in ("600000", "700000"):
            changed = {"share_coordinator_cached_buffer_max_bytes": bytes_cached}
            assert await user.try_to_alter(ResourceType.BROKER, "", **changed) == 0

    text = "These configuration keys of brokers make no difference to this broker: "
    assert caplog.messages.count(f"{text}share.coordinator.cached.buffer.max.bytes") == 1
