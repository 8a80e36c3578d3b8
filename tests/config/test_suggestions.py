"""Which key was meant by a name that is none."""

from __future__ import annotations

import logging

import pytest

from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.config import BrokerConfig, DynamicConfig
from pykafka_broker.config.rules import MOST_SUGGESTIONS, TableRules
from pykafka_broker.config.sources import load_config
from pykafka_broker.config.suggestions import MOST_SUGGESTED, listed, suggested_key, with_suggestion
from pykafka_broker.config.unheeded import UnheededConfigs
from pykafka_broker.protocol.errors import KafkaError

TOPIC, BROKER, CLIENT_METRICS, GROUP = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.CLIENT_METRICS,
    ResourceType.GROUP,
)


@pytest.mark.parametrize(
    ("resource_type", "name", "meant"),
    [
        (BROKER, "log.retention.hour", "log.retention.hours"),
        (BROKER, "num.partition", "num.partitions"),
        (BROKER, "auto.create.topic.enable", "auto.create.topics.enable"),
        (BROKER, "advertised.listener", "advertised.listeners"),
        (BROKER, "Log_Dirs", "log.dirs"),
        (BROKER, "listener.name.internal.max.connection", "listener.name.internal.max.connections"),
        (TOPIC, "retention.msec", "retention.ms"),
        (TOPIC, "clean.up.policy", "cleanup.policy"),
        (GROUP, "consumer.session.timeout", "consumer.session.timeout.ms"),
        (CLIENT_METRICS, "intervall.ms", "interval.ms"),
    ],
)
def test_a_name_that_is_almost_a_key_is_taken_for_it(resource_type: int, name: str, meant: str) -> None:
    assert suggested_key(name, resource_type) == meant


@pytest.mark.parametrize(
    ("resource_type", "name", "meant"),
    [
        (BROKER, "retention.ms", "log.retention.ms"),
        (BROKER, "max.message.bytes", "message.max.bytes"),
        (BROKER, "cleanup.policy", "log.cleanup.policy"),
        (BROKER, "consumer.session.timeout.ms", "group.consumer.session.timeout.ms"),
        (TOPIC, "log.retention.hours", "retention.ms"),
        (TOPIC, "message.max.bytes", "max.message.bytes"),
        (GROUP, "group.consumer.heartbeat.interval.ms", "consumer.heartbeat.interval.ms"),
    ],
)
def test_a_key_of_another_resource_is_taken_for_its_counterpart(
    resource_type: int, name: str, meant: str
) -> None:
    assert suggested_key(name, resource_type) == meant


@pytest.mark.parametrize(
    "name",
    [
        "no.such.key",
        "zookeeper.connect",
        "broker.id.generation.enable",
        "inter.broker.protocol.version",
        "log.message.format.version",
        "confluent.metadata.topic.replication.factor",
        "",
        "log.retention.hours" * 10,
    ],
)
def test_nothing_is_suggested_for_what_is_like_no_key(name: str) -> None:
    assert suggested_key(name) is None
    assert with_suggestion(name) == name


def test_a_refused_key_is_explained_in_the_log_once_and_on_the_wire_in_apaches_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    rules = TableRules(DynamicConfig(load_config()))
    for _ in range(2):
        with pytest.raises(KafkaError, match=r"INVALID_CONFIG: Unknown topic config name: retention\.msec$"):
            rules.validate(TOPIC, "t", {"retention.msec": "1"}, {})
    with pytest.raises(KafkaError, match=r"INVALID_CONFIG: Unknown topic config name: other$"):
        rules.validate(TOPIC, "t", {"other": "1"}, {})
    with pytest.raises(
        KafkaError, match=r"INVALID_CONFIG: Unknown group config name: consumer\.session\.timeout$"
    ):
        rules.validate(GROUP, "g", {"consumer.session.timeout": "1"}, {})
    assert caplog.messages == [
        "Refused an unknown configuration key: retention.msec (did you mean retention.ms?)",
        "Refused an unknown configuration key: "
        "consumer.session.timeout (did you mean consumer.session.timeout.ms?)",
    ]


def test_a_client_that_makes_up_keys_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rules = TableRules(DynamicConfig(load_config()))
    for number in range(MOST_SUGGESTIONS + 10):
        with pytest.raises(KafkaError):
            rules.validate(TOPIC, "t", {f"retention.ms{number}": "1"}, {})
    assert len(caplog.messages) == MOST_SUGGESTIONS


def test_keys_are_suggested_for_the_first_names_of_a_line() -> None:
    names = [f"num.partitions{number}" for number in range(MOST_SUGGESTED + 1)]
    explained = [f"{name} (did you mean num.partitions?)" for name in names[:MOST_SUGGESTED]]
    assert listed(names) == ", ".join([*explained, names[-1]])


def test_an_empty_name_is_shown_as_one() -> None:
    assert listed(["", "no.such.key"]) == "'', no.such.key"


def test_a_broker_key_that_is_accepted_and_unknown_is_named_when_it_first_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    unheeded = UnheededConfigs(["known.before"])
    first = {"retention.ms": "1", "known.before": "1"}
    unheeded.look({(BROKER, ""): first})
    unheeded.look({(BROKER, ""): dict(first), (BROKER, "1"): {"no.such.key": "1"}})
    assert caplog.messages == [
        "These configuration keys of brokers are unknown: retention.ms (did you mean log.retention.ms?)",
        "These configuration keys of brokers are unknown: no.such.key",
    ]


def test_what_the_environment_and_overrides_misspell_is_unknown() -> None:
    config: BrokerConfig = load_config(
        environ={"KAFKA_NUM_PARTITION": "2"}, overrides=["message.max.byte=1", "retention.ms=5"]
    )
    assert [with_suggestion(name) for name in config.unknown] == [
        "message.max.byte (did you mean message.max.bytes?)",
        "num.partition (did you mean num.partitions?)",
        "retention.ms (did you mean log.retention.ms?)",
    ]
