"""The doctor through a session of Spark: each fault is made, and what Spark says of it is explained."""

from __future__ import annotations

import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import trustme

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.addresses import Address, parse_address
from pykafka_broker.client.core.metadata import code_of
from pykafka_broker.doctor.findings import Finding, Level
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.spark.doctor import Question, examine
from pykafka_broker.spark.executors import reach
from pykafka_broker.spark.reading import explain, read_once
from pykafka_broker.testing.processes import free_port
from tests.spark.conftest import connector_jars
from tests.spark.kafka import Kafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read(session: SparkSession, bootstrap: str, topic: str, **options: str) -> str:
    """What is wrong with a read; "" if nothing is."""
    given = {name.replace("__", "."): value for name, value in options.items()}
    asked = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, **given}
    fault = read_once(session, asked, timeout_s=4)
    return "" if fault is None else fault.message


def test_a_session_that_reads_is_said_to_be_right(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, ["a"])
    found = list(examine(Question(kafka.bootstrap, timeout_s=10.0, topics=[topic]), spark))
    assert [(finding.level, finding.check) for finding in found] == [
        (Level.OK, check) for check in ("connection", "brokers", "topics", "executors", "read")
    ]
    assert found[-1] == Finding(Level.OK, "read", topic, f"Spark reads topic {topic!r}.")


def test_executors_say_which_addresses_they_do_not_reach(spark: SparkSession, kafka: Kafka) -> None:
    there, closed = parse_address(kafka.bootstrap), Address("127.0.0.1", free_port())
    unknown = Address("no-such-host.invalid", 9092)
    found = {one.address: one.reason for one in reach(spark, [there, closed, unknown], 5.0)}
    assert found[there] == ""
    assert found[closed] == "Connection refused"
    assert "not known" in found[unknown] or "resolution" in found[unknown]


def test_what_is_wrong_with_a_read_is_explained(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, ["a", "b", "c"])
    at = kafka.bootstrap
    assert read(spark, at, topic) == ""
    assert read(spark, at, kafka.new_name()) == "The topic does not exist."
    assert read(spark, f"127.0.0.1:{free_port()}", topic).startswith("No broker answers Spark in time: ")
    assert read(spark, "no-such-host.invalid:9092", topic) == (
        "Spark does not know the host in kafka.bootstrap.servers."
    )
    assert read(spark, at, topic, kafka__security__protocol="SASL_PLAINTEXT") == (
        "kafka.security.protocol asks for SASL, and there are no credentials."
    )
    offsets = "The offsets to begin with are not in the topic any more, or not yet."
    assert read(spark, at, topic, startingOffsets=f'{{"{topic}":{{"0":100}}}}') == offsets
    assert read(spark, at, topic, startingOffsets=f'{{"{topic}":{{"1":0}}}}') == (
        "startingOffsets does not name the partitions that the topic has."
    )
    kafka.delete_records(topic, before=2)
    assert read(spark, at, topic, startingOffsets=f'{{"{topic}":{{"0":0}}}}') == offsets


@contextmanager
def tls_server() -> Iterator[str]:
    """A server whose certificate nobody has heard of."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with suppress(OSError):
            yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_certificate_that_is_not_trusted_is_explained(spark: SparkSession) -> None:
    with tls_server() as address:
        said = read(spark, address, "t", kafka__security__protocol="SSL")
    assert said.startswith("The TLS handshake with the broker fails: ")


#: The connector is added to a session without jars, and then what it needs is missing.
WITHOUT_JARS = """\
import sys
from pyspark.sql import SparkSession
from pykafka_broker.spark.reading import read_once
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
options = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}
print(read_once(spark, options, 4).message)
spark.sql(f"ADD JAR '{sys.argv[1]}'")
print(read_once(spark, options, 4).message)
spark.stop()
"""


def test_a_session_without_the_connector_or_what_it_needs_is_explained() -> None:
    [connector] = connector_jars().glob("spark-sql-kafka-*.jar")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_JARS, str(connector)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == 'The session does not have the connector: it does not find format("kafka").'
    assert second.startswith("The jars of the session do not fit together: org/apache/")


def test_an_error_that_is_not_known_is_told_by_its_last_cause() -> None:
    assert explain("An error occurred while calling o1.collect\n: java.lang.Oops: first").message == (
        "Spark does not read: java.lang.Oops: first"
    )
    chain = "outer\n\tat a.b.c\nCaused by: one\n\tat d\nCaused by: java.io.IOException: two\n"
    assert explain(chain).message == "Spark does not read: java.io.IOException: two"


def test_authorisation_and_credentials_are_explained(
    spark: SparkSession, kafka_jars: Path, tmp_path: Path
) -> None:
    from kafka import KafkaAdminClient
    from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

    from pykafka_broker.testing.apache.broker import ApacheBroker

    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    sasl_port = free_port()
    broker = ApacheBroker(
        {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{login} user_reader="right";',
            "listener.security.protocol.map": (
                "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
            ),
        },
        tmp_path,
    )
    listeners = (
        f"PLAINTEXT://{broker.address},SASL_PLAINTEXT://127.0.0.1:{sasl_port},"
        f"CONTROLLER://127.0.0.1:{broker.controller_port}"
    )
    broker.properties.update({"listeners": listeners, "advertised.listeners": listeners})
    with broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.address)
        admin.create_topics({"secret": {"num_partitions": 1, "replication_factor": 1}})
        for_another = ACL(
            "User:another",
            "*",
            ACLOperation.READ,
            ACLPermissionType.ALLOW,
            ResourcePattern(ResourceType.TOPIC, "secret"),
        )
        admin.create_acls([for_another])
        admin.close()
        with Client(broker.address) as client:
            while code_of(client.metadata(["secret"]).topics[0]) != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                time.sleep(0.01)
        found = list(examine(Question(broker.address, timeout_s=10.0, topics=["secret"]), spark))
        assert [(f.check, f.message) for f in found if f.level is Level.PROBLEM] == [
            ("topics", "The brokers do not let this user see topic 'secret' (TOPIC_AUTHORIZATION_FAILED)."),
            ("read", "The broker does not let this user read: TopicAuthorizationException."),
        ]
        credentials = {
            "kafka__security__protocol": "SASL_PLAINTEXT",
            "kafka__sasl__mechanism": "PLAIN",
            "kafka__sasl__jaas__config": f'{login} username="reader" password="wrong";',
        }
        said = read(spark, f"127.0.0.1:{sasl_port}", "secret", **credentials)
        assert said.startswith("The broker refuses the user or the password: ")
