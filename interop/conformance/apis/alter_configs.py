"""AlterConfigs: replace all that is set on a resource."""

from __future__ import annotations

from interop.conformance.apis.describe_configs import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    LOGGER,
    TOPIC,
    UNKNOWN,
)
from interop.conformance.apis.incremental_alter_configs import see
from interop.conformance.conversation import LATEST, conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)


def resource(kind: int, name: str, *configs: tuple[str, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[AlterableConfig(name=key, value=value) for key, value in configs],
    )


def alter(*resources: AlterConfigsResource, only_validate: bool = False) -> AlterConfigsRequest:
    return AlterConfigsRequest(resources=list(resources), validate_only=only_validate)


def topic(name: str, *configs: tuple[str, str | None]) -> AlterConfigsRequest:
    return alter(resource(TOPIC, name, *configs))


@conversation
def everything_that_is_set_is_replaced(talk: Talk) -> None:
    name = talk.topic(configs={"retention.ms": "1000", "segment.ms": "1000"}).name
    talk.ask(topic(name, ("retention.ms", "2000")))
    see(talk, name, retention_ms="2000", segment_ms="604800000")


@conversation
def nothing_is_left_set(talk: Talk) -> None:
    name = talk.topic(configs={"retention.ms": "1000"}).name
    talk.ask(topic(name))
    see(talk, name, retention_ms="-1")


@conversation
def a_request_without_resources(talk: Talk) -> None:
    talk.ask(alter())


@conversation
def an_unknown_topic(talk: Talk) -> None:
    talk.ask(topic(talk.name(), ("retention.ms", "1")), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def one_bad_resource_does_not_spoil_the_others(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(
        alter(
            resource(TOPIC, talk.name("missing"), ("retention.ms", "5")),
            resource(TOPIC, name, ("retention.ms", "5")),
        ),
        E.UNKNOWN_TOPIC_OR_PARTITION,
    )
    see(talk, name, retention_ms="5")


@conversation
def values_that_cannot_be(talk: Talk) -> None:
    name = talk.topic().name
    for key, value in (
        ("retention.ms", "soon"),
        ("cleanup.policy", "shred"),
        ("min.insync.replicas", "0"),
        ("no.such.key", "1"),
        ("retention.ms", ""),
    ):
        talk.ask(topic(name, (key, value)), E.INVALID_CONFIG)


@conversation
def one_bad_value_changes_nothing(talk: Talk) -> None:
    name = talk.topic(configs={"retention.ms": "1000"}).name
    talk.ask(topic(name, ("retention.ms", "5"), ("segment.ms", "never")), E.INVALID_CONFIG)
    see(talk, name, retention_ms="1000")


@conversation
def a_value_that_is_null(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(topic(name, ("retention.ms", None), ("segment.ms", "5"), ("flush.ms", None)), E.INVALID_REQUEST)


@conversation
def a_key_named_twice(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(topic(name, ("retention.ms", "1"), ("retention.ms", "2")), E.INVALID_REQUEST)


@conversation(LATEST)
def a_resource_named_twice(talk: Talk) -> None:
    name = talk.topic().name
    twice = [resource(TOPIC, name, ("retention.ms", "1")), resource(TOPIC, name, ("segment.ms", "1"))]
    talk.send(alter(*twice)).is_waiting(2.0)  # Apache never answers this


@conversation
def only_validated(talk: Talk) -> None:
    name = talk.topic(configs={"retention.ms": "1000"}).name
    talk.ask(alter(resource(TOPIC, name, ("segment.ms", "5")), only_validate=True))
    talk.ask(alter(resource(TOPIC, name, ("segment.ms", "never")), only_validate=True), E.INVALID_CONFIG)
    see(talk, name, retention_ms="1000")


@conversation
def what_cannot_be_a_topics_name(talk: Talk) -> None:
    talk.ask(topic("", ("retention.ms", "1")), E.INVALID_REQUEST)
    talk.ask(topic("two words", ("retention.ms", "1")), E.INVALID_TOPIC_EXCEPTION)


@conversation
def another_broker(talk: Talk) -> None:
    for name in ("2", "one"):
        talk.ask(alter(resource(BROKER, name, ("log.cleaner.threads", "2"))), E.INVALID_REQUEST)


@conversation
def broker_values_that_cannot_be(talk: Talk) -> None:
    for name in ("1", ""):
        talk.ask(alter(resource(BROKER, name, ("log.cleaner.threads", "many"))), E.INVALID_REQUEST)
        talk.ask(alter(resource(BROKER, name, ("broker.rack", "r1"))), E.INVALID_REQUEST)


@conversation
def what_belongs_to_the_whole_cluster_cannot_be_replaced_away(talk: Talk) -> None:
    talk.ask(alter(resource(BROKER, "", ("log.cleaner.threads", "1"))), E.INVALID_CONFIG)
    talk.ask(alter(resource(BROKER, "")), E.INVALID_CONFIG)


@conversation
def a_group_config(talk: Talk) -> None:
    name = talk.name("group")
    talk.ask(alter(resource(GROUP, name, ("consumer.session.timeout.ms", "50000"))))
    talk.ask(alter(resource(GROUP, name, ("consumer.session.timeout.ms", "1"))), E.INVALID_CONFIG)
    talk.ask(alter(resource(GROUP, name)))


@conversation
def client_metrics(talk: Talk) -> None:
    name = talk.name("metrics")
    talk.ask(alter(resource(CLIENT_METRICS, name, ("interval.ms", "1000"))))
    talk.ask(alter(resource(CLIENT_METRICS, name, ("interval.ms", "1"))), E.INVALID_REQUEST)
    talk.ask(alter(resource(CLIENT_METRICS, name)))


@conversation
def loggers_are_changed_incrementally_only(talk: Talk) -> None:
    talk.ask(alter(resource(LOGGER, "1", ("root", "INFO"))), E.INVALID_REQUEST)


@conversation
def a_kind_of_resource_without_configs(talk: Talk) -> None:
    for kind in (UNKNOWN, 1, 64, -1):
        talk.ask(alter(resource(kind, "1", ("retention.ms", "1"))), E.INVALID_REQUEST)


@conversation
def a_listener_of_controllers_asks_the_controller_at_once(talk: Talk) -> None:
    """Only the broker that takes a request checks values and broker ids."""
    controllers = talk.controllers()
    name = talk.topic().name
    controllers.ask(topic(name, ("retention.ms", "2000")))
    see(talk, name, retention_ms="2000")
    for resource_type, resource_name, error in (
        (BROKER, "3000000", E.BROKER_ID_NOT_REGISTERED),
        (BROKER, "x", E.INVALID_REQUEST),
        (9, "x", E.UNSUPPORTED_VERSION),
        (LOGGER, "1", E.INVALID_REQUEST),
    ):
        change = resource(resource_type, resource_name, ("log.retention.ms", "1"))
        controllers.ask(alter(change, only_validate=True), error)
