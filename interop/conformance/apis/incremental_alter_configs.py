"""IncrementalAlterConfigs: set, delete, append to or subtract from single keys."""

from __future__ import annotations

from interop.conformance.apis.describe_configs import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    LOGGER,
    TOPIC,
    UNKNOWN,
    describe,
)
from interop.conformance.apis.describe_configs import resource as all_keys
from interop.conformance.conversation import LATEST, conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3

Change = tuple[str, int, str | None]


def resource(kind: int, name: str, *changes: Change) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )


def alter(*resources: AlterConfigsResource, only_validate: bool = False) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(resources=list(resources), validate_only=only_validate)


def topic(name: str, *changes: Change) -> IncrementalAlterConfigsRequest:
    return alter(resource(TOPIC, name, *changes))


def see(talk: Talk, name: str, **values: str | None) -> None:
    """See what a topic's keys (underscores for dots) are, once they have these values."""
    wanted = {key.replace("_", "."): value for key, value in values.items()}
    talk.ask(
        describe(all_keys(TOPIC, name, *wanted), synonyms=True),
        until=lambda answer: {each.name: each.value for each in answer.results[0].configs} == wanted,
    )


@conversation
def a_value_is_set(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(topic(name, ("retention.ms", SET, "1000"), ("cleanup.policy", SET, "compact")))
    see(talk, name, retention_ms="1000", cleanup_policy="compact")


@conversation
def a_value_is_deleted(talk: Talk) -> None:
    name = talk.topic(configs={"retention.ms": "1000"}).name
    talk.ask(topic(name, ("retention.ms", DELETE, None)))
    see(talk, name, retention_ms="-1")


@conversation
def what_is_not_set_can_be_deleted(talk: Talk) -> None:
    talk.ask(topic(talk.topic().name, ("retention.ms", DELETE, None)))


@conversation
def a_value_beside_a_deletion_is_not_looked_at(talk: Talk) -> None:
    talk.ask(topic(talk.topic().name, ("retention.ms", DELETE, "soon")))


@conversation
def a_list_is_appended_to(talk: Talk) -> None:
    name = talk.topic(configs={"cleanup.policy": "compact"}).name
    talk.ask(topic(name, ("cleanup.policy", APPEND, "delete")))
    see(talk, name, cleanup_policy="compact,delete")


@conversation
def a_default_is_appended_to(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(topic(name, ("cleanup.policy", APPEND, "compact")))
    see(talk, name, cleanup_policy="delete,compact")


@conversation
def what_is_in_a_list_is_not_appended_again(talk: Talk) -> None:
    name = talk.topic(configs={"cleanup.policy": "compact"}).name
    talk.ask(topic(name, ("cleanup.policy", APPEND, "compact")))
    see(talk, name, cleanup_policy="compact")


@conversation
def a_list_is_subtracted_from(talk: Talk) -> None:
    name = talk.topic(configs={"cleanup.policy": "compact,delete"}).name
    talk.ask(topic(name, ("cleanup.policy", SUBTRACT, "delete")))
    see(talk, name, cleanup_policy="compact")


@conversation
def what_is_not_in_a_list_is_subtracted(talk: Talk) -> None:
    name = talk.topic(configs={"cleanup.policy": "delete"}).name
    talk.ask(topic(name, ("cleanup.policy", SUBTRACT, "compact")))
    see(talk, name, cleanup_policy="delete")


@conversation
def the_last_of_a_list_is_subtracted(talk: Talk) -> None:
    name = talk.topic(configs={"cleanup.policy": "compact"}).name
    talk.ask(topic(name, ("cleanup.policy", SUBTRACT, "compact")))
    see(talk, name, cleanup_policy="")


@conversation
def several_items_are_appended_at_once(talk: Talk) -> None:
    name = talk.topic().name
    follower = "leader.replication.throttled.replicas"
    talk.ask(topic(name, (follower, APPEND, "0:1,0:2"), (follower.replace("leader", "follower"), SET, "*")))
    see(
        talk,
        name,
        leader_replication_throttled_replicas="0:1,0:2",
        follower_replication_throttled_replicas="*",
    )


@conversation
def what_is_no_list_is_neither_appended_to_nor_subtracted_from(talk: Talk) -> None:
    name = talk.topic().name
    for operation in (APPEND, SUBTRACT):
        talk.ask(topic(name, ("retention.ms", operation, "1")), E.INVALID_CONFIG)


@conversation
def an_unknown_config_is_appended_to(talk: Talk) -> None:
    talk.ask(topic(talk.topic().name, ("no.such.key", APPEND, "1")), E.INVALID_CONFIG)


@conversation
def an_unknown_config_is_set_or_deleted(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(topic(name, ("no.such.key", SET, "1")), E.INVALID_CONFIG)
    talk.ask(topic(name, ("no.such.key", DELETE, None)))


@conversation
def values_that_cannot_be(talk: Talk) -> None:
    name = talk.topic().name
    for key, value in (
        ("retention.ms", "soon"),
        ("cleanup.policy", "shred"),
        ("cleanup.policy", "compact,shred"),
        ("min.insync.replicas", "0"),
        ("segment.bytes", "1"),
        ("compression.type", "rar"),
        ("unclean.leader.election.enable", "yes"),
        ("leader.replication.throttled.replicas", "one:two"),
        ("message.timestamp.type", "Never"),
        ("compression.gzip.level", "0"),
        ("compression.zstd.level", "99"),
    ):
        talk.ask(topic(name, (key, SET, value)), E.INVALID_CONFIG)


@conversation
def values_with_blanks_around_them(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(topic(name, ("cleanup.policy", SET, " compact , delete "), ("retention.ms", SET, " 5 ")))
    see(talk, name, cleanup_policy="compact,delete", retention_ms="5")


@conversation
def a_list_that_names_something_twice(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(topic(name, ("cleanup.policy", SET, "compact,compact")))
    see(talk, name, cleanup_policy="compact")


@conversation
def one_bad_value_spoils_the_good_ones_beside_it(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(topic(name, ("retention.ms", SET, "5"), ("segment.ms", SET, "never")), E.INVALID_CONFIG)
    see(talk, name, retention_ms="-1")


@conversation
def one_bad_resource_does_not_spoil_the_others(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(
        alter(
            resource(TOPIC, talk.name("missing"), ("retention.ms", SET, "5")),
            resource(TOPIC, name, ("retention.ms", SET, "5")),
        ),
        E.UNKNOWN_TOPIC_OR_PARTITION,
    )
    see(talk, name, retention_ms="5")


@conversation
def a_value_that_is_null(talk: Talk) -> None:
    name = talk.topic().name
    for operation in (SET, APPEND, SUBTRACT):
        talk.ask(topic(name, ("cleanup.policy", operation, None)), E.INVALID_REQUEST)


@conversation
def a_value_that_is_empty(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(topic(name, ("retention.ms", SET, "")), E.INVALID_CONFIG)
    talk.ask(topic(name, ("leader.replication.throttled.replicas", SET, "")))


@conversation
def a_key_named_twice(talk: Talk) -> None:
    changes: list[Change] = [("retention.ms", SET, "1"), ("retention.ms", DELETE, None)]
    talk.ask(topic(talk.topic().name, *changes), E.INVALID_REQUEST)


@conversation
def a_resource_named_twice(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(
        alter(
            resource(TOPIC, name, ("retention.ms", SET, "1")), resource(TOPIC, name, ("segment.ms", SET, "1"))
        ),
        E.INVALID_REQUEST,
        E.INVALID_REQUEST,
    )


@conversation
def an_unknown_operation(talk: Talk) -> None:
    """Apache Kafka's controller takes it for a fault of its own and resigns: a new epoch begins."""
    for operation in (4, -1):
        talk.ask(
            topic(talk.topic(f"t{operation}").name, ("retention.ms", operation, "1")), E.UNKNOWN_SERVER_ERROR
        )


@conversation
def an_unknown_topic(talk: Talk) -> None:
    talk.ask(topic(talk.name(), ("retention.ms", SET, "1")), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def what_cannot_be_a_topics_name(talk: Talk) -> None:
    talk.ask(topic("", ("retention.ms", SET, "1")), E.INVALID_REQUEST)
    talk.ask(topic("two words", ("retention.ms", SET, "1")), E.INVALID_TOPIC_EXCEPTION)


@conversation
def a_wrong_value_is_seen_before_an_unknown_topic(talk: Talk) -> None:
    talk.ask(topic(talk.name(), ("retention.ms", SET, "soon")), E.INVALID_CONFIG)


@conversation
def a_request_without_resources(talk: Talk) -> None:
    talk.ask(alter())


@conversation
def a_resource_without_changes(talk: Talk) -> None:
    talk.ask(topic(talk.topic().name))
    talk.ask(topic(talk.name("missing")), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def only_validated(talk: Talk) -> None:
    name = talk.topic().name
    good, bad = ("retention.ms", SET, "5"), ("retention.ms", SET, "soon")
    talk.ask(alter(resource(TOPIC, name, good), only_validate=True))
    talk.ask(alter(resource(TOPIC, name, bad), only_validate=True), E.INVALID_CONFIG)
    see(talk, name, retention_ms="-1")


@conversation
def values_that_contradict_each_other(talk: Talk) -> None:
    name = talk.topic(configs={"max.compaction.lag.ms": "1000"}).name
    talk.ask(topic(name, ("min.compaction.lag.ms", SET, "2000")), E.INVALID_CONFIG)


@conversation
def another_broker(talk: Talk) -> None:
    for name in ("2", "-1", "one"):
        talk.ask(alter(resource(BROKER, name, ("log.cleaner.threads", SET, "2"))), E.INVALID_REQUEST)


@conversation
def a_broker_config_that_cannot_change_while_it_runs(talk: Talk) -> None:
    for name in ("1", ""):
        talk.ask(alter(resource(BROKER, name, ("broker.rack", SET, "r1"))), E.INVALID_REQUEST)


@conversation
def broker_values_that_cannot_be(talk: Talk) -> None:
    for key, value in (
        ("log.cleaner.threads", "many"),
        ("num.io.threads", "0"),
        ("log.retention.ms", "soon"),
    ):
        for name in ("1", ""):
            talk.ask(alter(resource(BROKER, name, (key, SET, value))), E.INVALID_REQUEST)


@conversation
def a_group_config(talk: Talk) -> None:
    name = talk.name("group")
    talk.ask(alter(resource(GROUP, name, ("consumer.session.timeout.ms", SET, "50000"))))
    talk.ask(alter(resource(GROUP, name, ("consumer.session.timeout.ms", SET, "1"))), E.INVALID_CONFIG)
    talk.ask(alter(resource(GROUP, name, ("no.such.key", SET, "1"))), E.INVALID_CONFIG)
    talk.ask(alter(resource(GROUP, "", ("consumer.session.timeout.ms", SET, "50000"))), E.INVALID_REQUEST)
    talk.ask(alter(resource(GROUP, name, ("consumer.session.timeout.ms", DELETE, None))))


@conversation
def client_metrics(talk: Talk) -> None:
    name = talk.name("metrics")
    talk.ask(alter(resource(CLIENT_METRICS, name, ("interval.ms", SET, "1000"), ("metrics", SET, "*"))))
    talk.ask(alter(resource(CLIENT_METRICS, name, ("interval.ms", SET, "1"))), E.INVALID_REQUEST)
    talk.ask(alter(resource(CLIENT_METRICS, name, ("match", SET, "no such thing"))), E.INVALID_CONFIG)
    talk.ask(alter(resource(CLIENT_METRICS, name, ("no.such.key", SET, "1"))), E.INVALID_REQUEST)
    talk.ask(alter(resource(CLIENT_METRICS, "", ("interval.ms", SET, "1000"))), E.INVALID_REQUEST)
    talk.ask(alter(resource(CLIENT_METRICS, name, ("interval.ms", DELETE, None), ("metrics", DELETE, None))))


@conversation(LATEST)
def patterns_of_client_metrics(talk: Talk) -> None:
    name = talk.name("metrics")
    for wrong in (
        "client_id=",
        "client_id=a=b",
        "client_id==a",
        "=a",
        "=",
        "id=a",
        "client_id=(",
        "a",
        " = a",
    ):
        talk.ask(alter(resource(CLIENT_METRICS, name, ("match", SET, wrong))), E.INVALID_CONFIG)
    for right in (
        "client_id=a=",
        " client_id = a==",
        r"client_id=\p{L}+",
        "client_id=(?!a).*",
        "client_id=a++",
    ):
        talk.ask(alter(resource(CLIENT_METRICS, name, ("match", SET, right))))
    talk.ask(alter(resource(CLIENT_METRICS, name, ("match", DELETE, None))))


@conversation
def levels_of_loggers_that_cannot_be(talk: Talk) -> None:
    talk.ask(alter(resource(LOGGER, "1", ("kafka.server.KafkaApis", SET, "LOUD"))), E.INVALID_CONFIG)
    talk.ask(alter(resource(LOGGER, "1", ("no.such.logger", SET, "INFO"))), E.INVALID_CONFIG)
    talk.ask(alter(resource(LOGGER, "1", ("root", DELETE, None))), E.INVALID_REQUEST)
    talk.ask(alter(resource(LOGGER, "1", ("root", APPEND, "INFO"))), E.INVALID_REQUEST)
    talk.ask(alter(resource(LOGGER, "2", ("root", SET, "INFO"))), E.INVALID_REQUEST)
    talk.ask(alter(resource(LOGGER, "one", ("root", SET, "INFO"))), E.INVALID_REQUEST)


@conversation
def a_kind_of_resource_without_configs(talk: Talk) -> None:
    for kind in (UNKNOWN, 1, 64, -1):
        talk.ask(alter(resource(kind, "1", ("retention.ms", SET, "1"))), E.INVALID_REQUEST)


@conversation
def a_listener_of_controllers_asks_the_controller_at_once(talk: Talk) -> None:
    """Only the broker that takes a request checks values and broker ids."""
    controllers = talk.controllers()
    name = talk.topic().name
    controllers.ask(topic(name, ("retention.ms", SET, "1000"), ("retention.ms", SET, "2000")))
    see(talk, name, retention_ms="2000")
    controllers.ask(topic(talk.name("missing"), ("retention.ms", SET, "1")), E.UNKNOWN_TOPIC_OR_PARTITION)
    for resource_type, resource_name, error in (
        (BROKER, "3000000", E.BROKER_ID_NOT_REGISTERED),
        (BROKER, "x", E.INVALID_REQUEST),
        (BROKER, "-1", E.INVALID_REQUEST),
        (9, "x", E.UNSUPPORTED_VERSION),
        (LOGGER, "2", E.INVALID_REQUEST),
        (LOGGER, "x", E.INVALID_REQUEST),
        (LOGGER, "1", E.INVALID_CONFIG),
        (GROUP, "", E.INVALID_REQUEST),
    ):
        change = resource(resource_type, resource_name, ("log.retention.ms", SET, "1"))
        controllers.ask(alter(change, only_validate=True), error)


@conversation
def a_listener_of_controllers_refuses_a_resource_that_is_named_twice(talk: Talk) -> None:
    twice = resource(TOPIC, talk.topic().name, ("retention.ms", SET, "1000"))
    talk.controllers().ask(alter(twice, twice), E.INVALID_REQUEST)
