"""Dynamic configuration: layers, changes while running, and what topics make of it."""

from __future__ import annotations

import re

import pytest

from pykafka_broker.config import BrokerConfig, DynamicConfig, log_config_for
from pykafka_broker.config.describe import ConfigSource, describe_broker, describe_topic
from pykafka_broker.config.resources import BROKER_RESOURCE, TOPIC_RESOURCE
from pykafka_broker.config.rules import TableRules, validate_broker_configs
from pykafka_broker.config.sources import load_config
from pykafka_broker.log.config import LogConfig
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


def started_with(*overrides: str) -> DynamicConfig:
    return DynamicConfig(load_config(overrides=overrides))


def test_this_brokers_value_beats_the_default_of_all_brokers_which_beats_the_file() -> None:
    configs = started_with("message.max.bytes=1000")
    assert configs.current.values["message.max.bytes"] == 1000
    configs.update({"message.max.bytes": "2000"}, {})
    assert configs.current.values["message.max.bytes"] == 2000
    configs.update({"message.max.bytes": "2000"}, {"message.max.bytes": "3000"})
    assert configs.current.values["message.max.bytes"] == 3000
    configs.update({}, {})
    assert configs.current.values["message.max.bytes"] == 1000


def test_subscribers_see_the_configuration_before_and_after() -> None:
    configs = started_with()
    seen: list[tuple[BrokerConfig, BrokerConfig]] = []
    configs.subscribe(lambda old, new: seen.append((old, new)))
    before = configs.current
    assert configs.update({"message.max.bytes": "2000"}, {}) == {"message.max.bytes"}
    assert seen == [(before, configs.current)]
    assert before.values["message.max.bytes"] != configs.current.values["message.max.bytes"]


def test_an_update_that_changes_nothing_calls_no_subscriber() -> None:
    configs = started_with("message.max.bytes=1000")
    seen: list[BrokerConfig] = []
    configs.subscribe(lambda old, new: seen.append(new))
    assert configs.update({}, {}) == frozenset()
    assert configs.update({"message.max.bytes": "1000"}, {}) == frozenset()
    assert seen == []


def test_a_value_that_cannot_be_used_is_left_out_and_the_broker_goes_on() -> None:
    configs = started_with()
    configs.update({"message.max.bytes": "many", "log.segment.bytes": "2000000"}, {})
    assert configs.current.values["message.max.bytes"] == 1048588
    assert configs.current.values["log.segment.bytes"] == 2000000


def test_values_that_contradict_each_other_change_nothing() -> None:
    configs = started_with()
    assert configs.update({"log.cleaner.threads": "1000000"}, {}) == frozenset()
    assert configs.current["log.cleaner.threads"] == 1


def test_topics_take_the_brokers_values_in_their_own_units() -> None:
    configs = started_with("log.retention.minutes=5", "log.roll.hours=2", "log.segment.bytes=2000000")
    log_config = log_config_for({}, configs.current)
    assert log_config.retention_ms == 300_000
    assert log_config.segment_ms == 7_200_000
    assert log_config.segment_bytes == 2_000_000
    configs.update({"log.retention.ms": "7000"}, {})
    assert log_config_for({}, configs.current).retention_ms == 7000


def test_without_any_setting_a_topic_has_kafkas_defaults() -> None:
    assert log_config_for({}, load_config()) == LogConfig()


def test_a_topics_own_values_beat_the_brokers() -> None:
    config = load_config(overrides=["log.cleanup.policy=compact", "compression.type=lz4"])
    overrides = {"cleanup.policy": "delete,compact", "retention.ms": "-1", "min.insync.replicas": "2"}
    log_config = log_config_for(overrides, config)
    assert log_config.cleanup_policy == {"delete", "compact"}
    assert log_config.compression_type == "lz4"
    assert log_config.retention_ms == -1
    assert log_config.min_insync_replicas == 2


def test_an_empty_policy_keeps_everything() -> None:
    assert log_config_for({"cleanup.policy": ""}, load_config()).cleanup_policy == frozenset()


def test_every_negative_retention_of_the_broker_means_for_ever() -> None:
    assert log_config_for({}, load_config(overrides=["log.retention.ms=-5"])).retention_ms == -1


def test_a_segment_may_be_made_smaller_than_the_minimum_for_tests() -> None:
    assert log_config_for({"internal.segment.bytes": "500"}, load_config()).segment_bytes == 500


def test_what_another_version_left_in_a_topic_does_not_stop_its_log() -> None:
    overrides = {"message.format.version": "2.0", "retention.ms": "soon", "segment.ms": "5"}
    log_config = log_config_for(overrides, load_config())
    assert log_config.segment_ms == 5
    assert log_config.retention_ms == LogConfig().retention_ms


def test_a_topic_value_tells_all_it_overrides() -> None:
    configs = started_with("compression.type=lz4")
    entries = {entry.name: entry for entry in describe_topic(configs, {"compression.type": "zstd"})}
    entry = entries["compression.type"]
    assert entry.source is ConfigSource.TOPIC
    assert [(s.value, s.source) for s in entry.synonyms] == [
        ("zstd", ConfigSource.TOPIC),
        ("lz4", ConfigSource.STATIC_BROKER),
        ("producer", ConfigSource.DEFAULT),
    ]


def test_a_secret_is_described_without_its_value() -> None:
    configs = started_with("sasl.jaas.config=secret")
    entry = next(e for e in describe_broker(configs, "1") if e.name == "sasl.jaas.config")
    assert entry.is_sensitive
    assert "secret" not in repr(entry)


def test_the_controller_learns_which_keys_hold_lists_and_where_appending_starts() -> None:
    rules = TableRules(started_with("min.insync.replicas=2"))
    assert rules.is_list(TOPIC_RESOURCE, "cleanup.policy")
    assert not rules.is_list(TOPIC_RESOURCE, "retention.ms")
    assert not rules.is_list(TOPIC_RESOURCE, "no.such.key")
    assert rules.default(TOPIC_RESOURCE, "cleanup.policy") == "delete"
    assert rules.default(BROKER_RESOURCE, "node.id") is None
    assert rules.static("min.insync.replicas") == "2"
    assert rules.static("num.partitions") == "1"
    assert rules.static("default.replication.factor") == "1"


FOREIGN = "x.y"
NOT_FOUND = "INVALID_REQUEST: Invalid value x.y for configuration {}: Class x.y could not be found."
NOT_FOUND_LATER = (
    "INVALID_REQUEST: Invalid value org.apache.kafka.common.config.ConfigException: Invalid value x.y for "
    "configuration {}: Class x.y could not be found. for configuration Invalid dynamic configuration"
)
SECURED = (
    "listeners=SASL_PLAINTEXT://127.0.0.1:9092,INSIDE://127.0.0.1:9094",
    "listener.security.protocol.map=SASL_PLAINTEXT:SASL_PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name=INSIDE",
    "sasl.enabled.mechanisms=PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config="
    "org.apache.kafka.common.security.plain.PlainLoginModule required;",
)


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"principal.builder.class": FOREIGN}, NOT_FOUND.format("principal.builder.class")),
        (
            {"listener.name.sasl_plaintext.principal.builder.class": FOREIGN},
            NOT_FOUND.format("principal.builder.class"),
        ),
        (
            {"listener.name.sasl_plaintext.client.quota.callback.class": FOREIGN},
            NOT_FOUND_LATER.format("client.quota.callback.class"),
        ),
        (
            {"listener.name.sasl_plaintext.plain.sasl.server.callback.handler.class": FOREIGN},
            NOT_FOUND_LATER.format("sasl.server.callback.handler.class"),
        ),
        (
            {"principal.builder.class": "org.apache.kafka.Other"},
            "INVALID_REQUEST: principal.builder.class is set, but this broker does not support it",
        ),
        (
            {"config.providers": "vault", "config.providers.vault.class": FOREIGN},
            "INVALID_REQUEST: Invalid value x.y for configuration config.providers.vault.class: "
            "Could not load config provider class or one of its dependencies",
        ),
    ],
)
def test_what_would_end_a_start_is_no_dynamic_change(changes: dict[str, str], refusal: str) -> None:
    configs = started_with(*SECURED)
    with pytest.raises(KafkaError, match=re.escape(refusal)):
        validate_broker_configs(str(configs.static.node_id), changes, configs)


def test_a_class_that_does_the_same_is_a_dynamic_change() -> None:
    own = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
    configs = started_with(*SECURED)
    changes = {"principal.builder.class": own, "listener.name.sasl_plaintext.principal.builder.class": own}
    validate_broker_configs(str(configs.static.node_id), changes, configs)


def test_a_foreign_class_that_apache_kafka_has_recorded_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    configs = started_with(*SECURED)
    configs.update({"principal.builder.class": FOREIGN}, {})
    assert configs.cluster_overrides == {}
    assert "Class x.y could not be found." in caplog.text


COMBINED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:3",
    "controller.listener.names": "CONTROLLER",
    "listeners": "OUTSIDE://127.0.0.1:2,INSIDE://127.0.0.1:1,CONTROLLER://127.0.0.1:3",
    "inter.broker.listener.name": "INSIDE",
    "listener.security.protocol.map": "OUTSIDE:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
}


@pytest.mark.parametrize(
    ("listeners", "refusal"),
    [
        (
            "OUTSIDE://127.0.0.1:2,INSIDE://127.0.0.1:1",
            "controller.listener.names must contain at least one value appearing in the 'listeners' "
            "configuration when running the KRaft controller role",
        ),
        (
            "OUTSIDE://127.0.0.1:2,CONTROLLER://127.0.0.1:3",
            "inter.broker.listener.name must be a listener name defined in advertised.listeners. "
            "The valid options based on currently configured listeners are OUTSIDE",
        ),
    ],
)
def test_listeners_without_which_the_node_could_not_go_on_stay(listeners: str, refusal: str) -> None:
    configs = DynamicConfig(BrokerConfig(COMBINED))
    with pytest.raises(KafkaError) as refused:
        validate_broker_configs("1", {"listeners": listeners}, configs)
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_REQUEST, refusal)


def test_a_listener_keeps_its_security_protocol() -> None:
    configs = DynamicConfig(BrokerConfig(COMBINED))
    others = "OUTSIDE:SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT"
    with pytest.raises(KafkaError) as refused:
        validate_broker_configs("1", {"listener.security.protocol.map": others}, configs)
    told = "Security protocol cannot be updated for existing listener ListenerName(OUTSIDE)"
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_REQUEST, told)
