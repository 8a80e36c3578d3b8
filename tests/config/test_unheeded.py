"""Keys that make no difference are accepted, and named in the log once."""

from __future__ import annotations

import logging

import pytest

from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.config.broker import BROKER_KEYS
from pykafka_broker.config.keys import ACTS
from pykafka_broker.config.sources import load_config
from pykafka_broker.config.unheeded import UnheededConfigs, name_static

BROKER, GROUP, TOPIC = (ResourceType.BROKER, ""), (ResourceType.GROUP, "g"), (ResourceType.TOPIC, "t")
#: Keys of the coordinators of groups and transactions of which nothing depends here.
OF_COORDINATORS = [
    "group.coordinator.append.linger.ms",
    "group.coordinator.background.threads",
    "group.coordinator.cached.buffer.max.bytes",
    "group.coordinator.threads",
    "transaction.two.phase.commit.enable",
]


def test_what_is_changed_while_the_broker_runs_is_named_when_it_first_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    unheeded = UnheededConfigs()
    remote = {"retention.ms": "1", "remote.log.copy.disable": "true"}

    unheeded.look({TOPIC: remote})
    unheeded.look({TOPIC: remote, (ResourceType.TOPIC, "other"): dict(remote)})
    unheeded.look({TOPIC: remote, BROKER: {"share.coordinator.cached.buffer.max.bytes": "600000"}})

    assert caplog.messages == [
        "These configuration keys of topics make no difference to this broker: remote.log.copy.disable",
        "These configuration keys of brokers make no difference to this broker: "
        "share.coordinator.cached.buffer.max.bytes",
    ]


def test_what_has_been_named_at_the_start_and_what_changes_nothing_is_not_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    unheeded = UnheededConfigs(["share.coordinator.cached.buffer.max.bytes"])

    unheeded.look({BROKER: {"share.coordinator.cached.buffer.max.bytes": "600000"}})
    unheeded.look({GROUP: {"share.delivery.count.limit": "5", "of.some.plug.in": "1"}})
    unheeded.look({TOPIC: {"remote.log.copy.disable": "perhaps"}})

    assert caplog.messages == []


@pytest.mark.parametrize(
    ("keys", "is_told"),
    [
        ({}, False),
        ({"ssl.client.auth": "required"}, True),
        ({"ssl.client.auth": "none"}, False),
        ({"ssl.client.auth": "required", "listener.name.b.ssl.client.auth": "none"}, False),
        ({"ssl.client.auth": "required", "listener.name.a.ssl.client.auth": "none"}, True),
    ],
)
def test_certificates_for_which_a_listener_with_sasl_does_not_ask(
    keys: dict[str, str], is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule required;"
    settings = {
        "listeners": "A://127.0.0.1:0,B://127.0.0.1:0",
        "listener.security.protocol.map": "A:SSL,B:SASL_SSL,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "A",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.b.plain.sasl.jaas.config": plain,
        **keys,
    }
    name_static(load_config(overrides=[f"{key}={value}" for key, value in settings.items()]))
    told = ["Broker configuration 'ssl.client.auth' is applied only to SSL listeners."]
    assert [line.partition(" Listener-prefixed")[0] for line in caplog.messages] == (told if is_told else [])


def test_all_other_keys_of_the_coordinators_are_acted_upon() -> None:
    of_coordinators = ("group.", "offsets.", "transaction", "producer.id.")
    kind_to_come = "group.share."
    unheeded = [
        key.name
        for key in BROKER_KEYS
        if key.name.startswith(of_coordinators)
        and not key.name.startswith(kind_to_come)
        and key.handling != ACTS
    ]
    assert sorted(unheeded) == OF_COORDINATORS


@pytest.mark.parametrize("name", OF_COORDINATORS)
def test_a_key_of_the_coordinators_that_does_nothing_is_named_at_the_start(name: str) -> None:
    value = "true" if name.endswith(".enable") else "2000000"
    assert name in load_config(overrides=[f"{name}={value}"]).unheeded


def test_what_a_broker_is_started_with_is_named(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    name_static(load_config())
    name_static(load_config(overrides=["num.io.threads=2", "num.partition=3", "num.partitions=3"]))
    assert caplog.messages == [
        "These configuration keys are unknown: num.partition (did you mean num.partitions?)",
        "These configuration keys make no difference to this broker: num.io.threads",
    ]
