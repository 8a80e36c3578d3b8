"""Users, ACLs and TLS that a program gives to a `Broker`, seen by stock clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import TopicAuthorizationFailedError

from pykafka_broker import Broker, Security, load_config
from pykafka_broker.broker.security.acl_words import acl_in_words
from pykafka_broker.broker.security.client_settings import ClientSettings
from pykafka_broker.cluster.image import acl_of
from pykafka_broker.config import BrokerConfig, ConfigError

USERS = {"writer": "writer-secret", "reader": 'qu"ot\\ed, =;é', "boss": "boss-secret"}
ACLS = {
    "writer": ["write topic orders", "create topic orders"],
    "reader": ["read topic ord*", "read group *"],
}


def config(folder: Path, **others: Any) -> BrokerConfig:
    return load_config(data_dir=folder / "data", listen="127.0.0.1:0", **others)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """With TLS, users and ACLs."""
    folder = tmp_path_factory.mktemp("secured")
    with Broker(
        config(folder), security=Security(USERS, acls=ACLS, super_users=["boss"], tls=True)
    ) as broker:
        for user, topic in (("writer", "orders"), ("boss", "hidden")):
            with KafkaProducer(**broker.client_settings(user).python) as producer:
                producer.send(topic, b"one").get(timeout=60)
        yield broker


def topics(settings: ClientSettings) -> set[str]:
    """The topics that confluent-kafka sees."""
    return set(AdminClient({**settings.confluent}).list_topics(timeout=60).topics)


def wait_for_refusal(settings: ClientSettings, code: int, **changed: str) -> None:
    """Return when confluent-kafka with changed properties has met this error."""
    codes: list[int] = []
    producer = Producer(
        {**settings.confluent, **changed, "error_cb": lambda error: codes.append(error.code())}
    )
    while code not in codes:
        producer.poll(1)


def test_kafka_python_does_what_the_acls_of_its_user_say(broker: Broker) -> None:
    with KafkaConsumer(
        "orders", group_id="billing", auto_offset_reset="earliest", **broker.client_settings("reader").python
    ) as consumer:
        assert next(consumer).value == b"one"
    with (
        KafkaProducer(**broker.client_settings("writer").python) as producer,
        pytest.raises(TopicAuthorizationFailedError),
    ):
        producer.send("others", b"no").get(timeout=60)


def test_confluent_kafka_does_what_the_acls_of_its_user_say(broker: Broker) -> None:
    assert topics(broker.client_settings("writer")) == {"orders"}
    outcomes: list[KafkaError | None] = []
    producer = Producer(broker.client_settings("reader").confluent)
    producer.produce("orders", b"no", on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(60) == 0
    [refusal] = outcomes
    assert refusal is not None
    assert refusal.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
    assert {"orders", "hidden"} <= topics(broker.client_settings("boss"))


def test_a_wrong_password_is_refused(broker: Broker) -> None:
    wrong = {"sasl.password": "wrong"}
    wait_for_refusal(broker.client_settings("boss"), KafkaError._AUTHENTICATION, **wrong)


async def test_aiokafka_takes_the_same_settings_as_kafka_python(broker: Broker) -> None:
    async with AIOKafkaProducer(**broker.client_settings("boss").python) as producer:
        written = await producer.send_and_wait("aio", b"two")
    async with AIOKafkaConsumer(
        "aio", auto_offset_reset="earliest", **broker.client_settings("boss").python
    ) as consumer:
        assert (await consumer.getone()).offset == written.offset == 0


def test_users_alone_may_do_everything_and_need_no_certificate(tmp_path: Path) -> None:
    with Broker(config(tmp_path), security=Security({"alice": "secret"})) as broker:
        settings = broker.client_settings("alice")
        assert settings.confluent == {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "alice",
            "sasl.password": "secret",
        }
        assert "secret" not in repr(settings)
        with KafkaProducer(**settings.python) as producer:
            assert producer.send("events", b"hello").get(timeout=60).offset == 0


def test_tls_alone_asks_for_no_user(tmp_path: Path) -> None:
    with Broker(config(tmp_path), security=Security(tls=True)) as broker:
        settings = broker.client_settings()
        assert settings.security_protocol == "SSL"
        assert topics(settings) == set()
        wait_for_refusal(settings, KafkaError._SSL, **{"ssl.ca.pem": ""})


def test_a_broker_that_is_not_secured_has_settings_too(tmp_path: Path) -> None:
    with Broker(config(tmp_path)) as broker:
        assert broker.client_settings().java == {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "PLAINTEXT",
        }
        with pytest.raises(ValueError, match="'alice' is none of the users: there are none"):
            broker.client_settings("alice")


def test_the_next_start_sets_new_passwords_and_keeps_other_acls(tmp_path: Path) -> None:
    may = {"alice": ["write topic a", "create topic a"]}
    with Broker(config(tmp_path), security=Security({"alice": "first"}, acls=may)) as first:
        with KafkaProducer(**first.client_settings("alice").python) as producer:
            producer.send("a", b"1").get(timeout=60)
        before = list(first.node.image.acls.values())
    may = {"alice": ["write topic a", "read topic a"]}
    with Broker(config(tmp_path), security=Security({"alice": "second"}, acls=may)) as second:
        [added] = [acl for acl in second.node.image.acls.values() if acl not in before]
        assert acl_of(added) == acl_in_words("alice", "read topic a")
        with KafkaProducer(**second.client_settings("alice").python) as producer:
            assert producer.send("a", b"2").get(timeout=60).offset == 1
        wrong = {"sasl.password": "first"}
        wait_for_refusal(second.client_settings("alice"), KafkaError._AUTHENTICATION, **wrong)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"users": {"": "x"}}, "a user needs a name"),
        ({"users": {"alice": ""}}, "and a password"),
        ({"users": {"__node": "x"}}, "which is not __node"),
        (
            {"users": {"alice": "x"}, "super_users": ["root"]},
            "'root', who shall have rights, is none of the users",
        ),
        ({"users": {}, "acls": {"a": ["read group *"]}}, "'a', who shall have rights, is none of the users"),
        ({"acls": {}}, "acls and super_users are about users"),
        ({"users": {"alice": "x"}, "acls": {"alice": "read group *"}}, "of 'alice' are a list of texts"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Security(**arguments)


def test_a_node_of_a_cluster_is_secured_in_its_configuration(tmp_path: Path) -> None:
    quorum = {"controller.quorum.voters": "1@127.0.0.1:1", "listeners": "PLAINTEXT://:0,CONTROLLER://:1"}
    with pytest.raises(ConfigError, match="is for a broker that is a cluster by itself"):
        Broker(load_config(data_dir=tmp_path, overrides=quorum), security=Security({"alice": "x"}))


def test_who_is_not_named_is_refused(broker: Broker) -> None:
    for user in (None, "nobody"):
        with pytest.raises(ValueError, match="is none of the users: writer, reader, boss"):
            broker.client_settings(user)


def test_clients_trust_the_next_broker_of_the_same_security(tmp_path: Path) -> None:
    security = Security({"alice": "secret"}, tls=True)
    with Broker(config(tmp_path), security=security) as first:
        settings = first.client_settings("alice")
    again = load_config(data_dir=tmp_path / "data", listen=settings.bootstrap_servers)
    with Broker(again, security=security):
        assert topics(settings) == set()
