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
    share = {"share.session.timeout.ms": "50000", "consumer.session.timeout.ms": "50000"}

    unheeded.look({GROUP: share})
    unheeded.look({GROUP: share, (ResourceType.GROUP, "other"): dict(share)})
    unheeded.look({GROUP: share, BROKER: {"group.share.assignment.interval.ms": "5"}})
    unheeded.look({TOPIC: {"retention.ms": "1", "remote.log.copy.disable": "true"}})

    assert caplog.messages == [
        "These configuration keys of groups make no difference to this broker: share.session.timeout.ms",
        "These configuration keys of brokers make no difference to this broker: "
        "group.share.assignment.interval.ms",
        "These configuration keys of topics make no difference to this broker: remote.log.copy.disable",
    ]


def test_what_has_been_named_at_the_start_and_what_changes_nothing_is_not_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    unheeded = UnheededConfigs(["group.streams.assignment.interval.ms"])

    unheeded.look({BROKER: {"group.streams.assignment.interval.ms": "5"}})
    unheeded.look({GROUP: {"share.session.timeout.ms": "45000", "of.some.plug.in": "1"}})
    unheeded.look({TOPIC: {"remote.log.copy.disable": "perhaps"}})

    assert caplog.messages == []


def test_all_other_keys_of_the_coordinators_are_acted_upon() -> None:
    of_coordinators = ("group.", "offsets.", "transaction", "producer.id.")
    kinds_to_come = ("group.share.", "group.streams.")
    unheeded = [
        key.name
        for key in BROKER_KEYS
        if key.name.startswith(of_coordinators)
        and not key.name.startswith(kinds_to_come)
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
