"""DescribeConfigs: every key of a resource with its value and where that comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from interop.conformance.conversation import LATEST, conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.config.broker import BROKER as BROKER_TABLE
from pykafka_broker.config.keys import render
from pykafka_broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

UNKNOWN, TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 0, 2, 4, 8, 16, 32
SET, DELETE = 0, 1
#: Keys that differ because each of the two brokers has listeners of its own.
OF_ITS_OWN_PLACE = {
    "advertised.listeners",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "inter.broker.listener.name",
    "listener.security.protocol.map",
    "listeners",
}
#: So many that their order shows; set to their defaults.
FOR_ALL_BROKERS = (
    *("background.threads", "compression.gzip.level", "compression.type", "log.cleaner.backoff.ms"),
    *("log.cleaner.delete.retention.ms", "log.cleaner.threads", "log.cleanup.policy", "log.preallocate"),
    *("log.index.interval.bytes", "log.index.size.max.bytes", "log.retention.bytes", "log.segment.bytes"),
    *("log.segment.delete.delay.ms", "max.connections.per.ip", "message.max.bytes", "num.io.threads"),
)


def resource(kind: int, name: str, *keys: str) -> DescribeConfigsResource:
    """All keys, or those named."""
    return DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )


def describe(
    *resources: DescribeConfigsResource, synonyms: bool = False, documentation: bool = False
) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=list(resources), include_synonyms=synonyms, include_documentation=documentation
    )


def setting(talk: Talk, kind: int, name: str, **values: str) -> None:
    """Set configs, underscores for dots."""
    alter(talk, kind, name, {key.replace("_", "."): value for key, value in values.items()})


def alter(talk: Talk, kind: int, name: str, values: Mapping[str, str | None]) -> None:
    """Set configs, and remove those whose value is None."""
    configs = [
        AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
        for key, value in values.items()
    ]
    changed = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    talk.do(IncrementalAlterConfigsRequest(resources=[changed], validate_only=False))


@conversation
def every_key_of_a_topic(talk: Talk) -> None:
    talk.ask(describe(resource(TOPIC, talk.topic().name)))


@conversation
def every_key_of_a_topic_with_synonyms(talk: Talk) -> None:
    topic = talk.topic(
        configs={"retention.ms": "1000", "cleanup.policy": "compact", "segment.bytes": "2000000"}
    )
    talk.ask(describe(resource(TOPIC, topic.name), synonyms=True))


@conversation("3+")
def what_a_key_means_is_told_to_those_who_ask(talk: Talk) -> None:
    talk.ask(describe(resource(TOPIC, talk.topic().name), documentation=True))


@conversation
def some_keys_of_a_topic(talk: Talk) -> None:
    name = talk.topic(configs={"retention.ms": "1000"}).name
    talk.ask(describe(resource(TOPIC, name, "retention.ms", "cleanup.policy", "no.such.key")))


@conversation
def an_empty_list_of_keys(talk: Talk) -> None:
    asked = DescribeConfigsResource(
        resource_type=TOPIC, resource_name=talk.topic().name, configuration_keys=[]
    )
    talk.ask(describe(asked))


@conversation
def a_request_without_resources(talk: Talk) -> None:
    talk.ask(describe())


@conversation
def an_unknown_topic(talk: Talk) -> None:
    talk.ask(describe(resource(TOPIC, talk.name())), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def an_unknown_topic_beside_a_known_one(talk: Talk) -> None:
    resources = [resource(TOPIC, name, "retention.ms") for name in (talk.name("missing"), talk.topic().name)]
    talk.ask(describe(*resources), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def a_topic_named_twice(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(describe(resource(TOPIC, name, "retention.ms"), resource(TOPIC, name, "segment.ms")))


@conversation
def what_cannot_be_a_topics_name(talk: Talk) -> None:
    for name in ("", "..", "two words", "x" * 250):
        talk.ask(describe(resource(TOPIC, name)), E.INVALID_TOPIC_EXCEPTION)


@conversation(LATEST, alone=True)
def every_key_of_the_broker(talk: Talk) -> None:
    talk.ask(describe(resource(BROKER, "1"), synonyms=True))


@conversation("1+", alone=True)
def every_key_of_the_broker_that_is_not_about_its_own_place(talk: Talk) -> None:
    keys = [key for key in BROKER_TABLE if key not in OF_ITS_OWN_PLACE]
    talk.ask(describe(resource(BROKER, "1", *keys), synonyms=True))


@conversation
def some_keys_of_the_broker(talk: Talk) -> None:
    keys = ("num.network.threads", "log.retention.hours", "num.partitions", "no.such.key")
    talk.ask(describe(resource(BROKER, "1", *keys), synonyms=True))


@conversation("1+", alone=True)
def what_is_set_for_all_brokers(talk: Talk) -> None:
    setting(talk, BROKER, "", log_cleaner_threads="2")
    talk.ask(
        describe(resource(BROKER, ""), synonyms=True),
        until=lambda answer: "2" in {each.value for each in answer.results[0].configs},
    )
    keys = ("log.cleaner.threads",)
    talk.ask(
        describe(resource(BROKER, "1", *keys), synonyms=True),
        until=lambda answer: [each.value for each in answer.results[0].configs] == ["2"],
    )
    alter(talk, BROKER, "", {"log.cleaner.threads": None})
    talk.ask(
        describe(resource(BROKER, "1", *keys), synonyms=True),
        until=lambda answer: [each.value for each in answer.results[0].configs] == ["1"],
    )


def has_configs(count: int) -> Callable[[DescribeConfigsResponse], bool]:
    return lambda answer: len(answer.results[0].configs) == count


@conversation(LATEST, alone=True)
def in_which_order_keys_are_told_that_are_set_for_all_brokers(talk: Talk) -> None:
    defaults = {name: render(BROKER_TABLE[name].default, BROKER_TABLE[name].type) for name in FOR_ALL_BROKERS}
    alter(talk, BROKER, "", defaults)
    for left in (16, 11, 10, 0):
        alter(talk, BROKER, "", dict.fromkeys(FOR_ALL_BROKERS[left:]))
        talk.ask(describe(resource(BROKER, "")), until=has_configs(1 + left))
        talk.ask(describe(resource(BROKER, "", *FOR_ALL_BROKERS[3:7])))


@conversation
def another_broker(talk: Talk) -> None:
    for name in ("2", "-1", "one", "01"):
        talk.ask(
            describe(resource(BROKER, name, "num.partitions")),
            *([] if name == "01" else [E.INVALID_REQUEST]),
        )


@conversation
def levels_of_loggers(talk: Talk) -> None:
    talk.ask(describe(resource(LOGGER, "1", "no.such.logger")))


@conversation
def loggers_of_another_broker(talk: Talk) -> None:
    for name in ("2", "one", ""):
        talk.ask(describe(resource(LOGGER, name)), E.INVALID_REQUEST)


@conversation
def a_group_without_configs_of_its_own(talk: Talk) -> None:
    talk.ask(describe(resource(GROUP, talk.name("group")), synonyms=True))


@conversation
def a_group_with_configs_of_its_own(talk: Talk) -> None:
    name = talk.name("group")
    setting(talk, GROUP, name, consumer_session_timeout_ms="50000")
    talk.ask(
        describe(resource(GROUP, name), synonyms=True),
        until=lambda answer: any(each.value == "50000" for each in answer.results[0].configs),
    )


@conversation
def a_group_without_a_name(talk: Talk) -> None:
    talk.ask(describe(resource(GROUP, "")), E.INVALID_REQUEST)


@conversation
def unknown_client_metrics(talk: Talk) -> None:
    talk.ask(describe(resource(CLIENT_METRICS, talk.name("metrics")), synonyms=True))


@conversation
def client_metrics_without_a_name(talk: Talk) -> None:
    talk.ask(describe(resource(CLIENT_METRICS, "")), E.INVALID_REQUEST)


@conversation
def a_kind_of_resource_without_configs(talk: Talk) -> None:
    for kind in (UNKNOWN, 1, 3, 5, 64, 127, -1):
        talk.ask(describe(resource(kind, "1")), E.INVALID_REQUEST)


@conversation
def resources_of_several_kinds(talk: Talk) -> None:
    talk.ask(
        describe(
            resource(BROKER, "1", "num.partitions"),
            resource(TOPIC, talk.name("missing")),
            resource(TOPIC, talk.topic().name, "flush.ms"),
            resource(GROUP, talk.name("group"), "consumer.heartbeat.interval.ms"),
        ),
        E.UNKNOWN_TOPIC_OR_PARTITION,
    )


@conversation
def configs_are_described_over_a_listener_of_controllers(talk: Talk) -> None:
    controllers = talk.controllers()
    name = talk.topic(configs={"retention.ms": "1000"}).name
    controllers.ask(describe(resource(TOPIC, name, "retention.ms", "cleanup.policy"), synonyms=True))
    controllers.ask(describe(resource(TOPIC, talk.name("missing"))), E.UNKNOWN_TOPIC_OR_PARTITION)
    controllers.ask(describe(resource(BROKER, "1", "log.segment.bytes"), synonyms=True))
    controllers.ask(describe(resource(BROKER, "", "log.segment.bytes"), synonyms=True))
    controllers.ask(describe(resource(BROKER, "7")), E.INVALID_REQUEST)
