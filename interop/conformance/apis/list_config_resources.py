"""ListConfigResources: which resources have a configuration."""

from __future__ import annotations

from typing import Any

from interop.conformance.apis.describe_configs import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    LOGGER,
    TOPIC,
    UNKNOWN,
    setting,
)
from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.list_config_resources import ListConfigResourcesRequest

#: Topics, groups and subscriptions come from hash maps and sets.
BY_NAME = {"config_resources": "resource_name"}
BY_NAME_AND_KIND = {"config_resources": "resource_name/resource_type"}


def of(*kinds: int) -> ListConfigResourcesRequest:
    return ListConfigResourcesRequest(resource_types=list(kinds))


def named(answer: Any) -> list[str]:
    return [each.resource_name for each in answer.config_resources]


def holds(name: str) -> Any:
    return lambda answer: name in named(answer)


@conversation("0+", alone=True)
def client_metrics_that_are_set(talk: Talk) -> None:
    name = talk.name("metrics")
    setting(talk, CLIENT_METRICS, name, interval_ms="1000")
    talk.ask(of(CLIENT_METRICS), until=holds(name), in_any_order=BY_NAME)


@conversation("1+", alone=True)
def groups_that_have_configs(talk: Talk) -> None:
    name = talk.name("group")
    setting(talk, GROUP, name, consumer_session_timeout_ms="50000")
    talk.ask(of(GROUP), until=holds(name), in_any_order=BY_NAME)


@conversation("1+", alone=True)
def topics_whether_they_have_configs_or_not(talk: Talk) -> None:
    names = {talk.topic("a").name, talk.topic("b", configs={"retention.ms": "1000"}).name}
    talk.ask(
        of(TOPIC),
        until=lambda answer: (
            {each.resource_name for each in answer.config_resources if each.resource_name[:2] != "__"}
            == names
        ),
        in_any_order=BY_NAME,
    )


@conversation("1+")
def brokers_and_their_loggers(talk: Talk) -> None:
    talk.ask(of(BROKER))
    talk.ask(of(LOGGER))


@conversation("1+")
def a_kind_named_twice(talk: Talk) -> None:
    talk.ask(of(BROKER, BROKER))


@conversation("1+")
def kinds_without_configs(talk: Talk) -> None:
    for kind in (UNKNOWN, 1, 64, -1):
        talk.ask(of(kind), E.UNSUPPORTED_VERSION)
    talk.ask(of(BROKER, 1), E.UNSUPPORTED_VERSION)


@conversation("1+", alone=True)
def no_kind_means_every_kind(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(
        of(),
        until=lambda answer: (
            {each.resource_name for each in answer.config_resources if each.resource_type == TOPIC}
            - {"__consumer_offsets", "__transaction_state", "__share_group_state"}
            == {name}
        ),
        in_any_order=BY_NAME_AND_KIND,
    )
