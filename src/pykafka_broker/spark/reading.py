"""One read of Kafka through Spark itself, and the meaning of its failure.

Spark's errors are chains of Java exceptions, of which the last is mostly the reason. `explain` knows those
that a wrong set-up causes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pykafka_broker.spark.classpath import AGAIN
from pykafka_broker.spark.errors import Fault
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _Meaning(NamedTuple):
    """The meaning of errors that match a pattern; `{0}` in the message stands for the pattern's group."""

    pattern: re.Pattern[str]
    message: str
    remedy: str


_ACL = (
    "Allow it, with the tool of the cluster:\n"
    "  kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal User:NAME --operation Read "
    "--operation Describe --topic TOPIC --group 'spark-kafka-' --resource-pattern-type prefixed"
)
MEANINGS = (
    _Meaning(
        re.compile(r"Failed to find (?:the )?data source: kafka|DATA_SOURCE_NOT_FOUND.*kafka", re.DOTALL),
        'The session does not have the connector: it does not find format("kafka").',
        AGAIN + '\nand give it to the session: kafka_session(jars="DIR").',
    ),
    _Meaning(
        re.compile(
            r"(?:NoClassDefFoundError|NoSuchMethodError|NoSuchFieldError|AbstractMethodError|"
            r"ClassNotFoundException|IncompatibleClassChangeError): ?'?([\w./$<>]+)"
        ),
        "The jars of the session do not fit together: {0} is not there.",
        AGAIN,
    ),
    _Meaning(
        re.compile(
            r"(TopicAuthorizationException|GroupAuthorizationException|ClusterAuthorizationException)"
        ),
        "The broker does not let this user read: {0}.",
        _ACL,
    ),
    _Meaning(
        re.compile(r"SaslAuthenticationException: ([^\n]+)"),
        "The broker refuses the user or the password: {0}",
        "Check kafka.sasl.mechanism, and the user and the password in kafka.sasl.jaas.config.",
    ),
    _Meaning(
        re.compile(r"Could not find a 'KafkaClient' entry in the JAAS configuration"),
        "kafka.security.protocol asks for SASL, and there are no credentials.",
        "Give them as an option of the source:\n  kafka.sasl.jaas.config="
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="..." password="...";',
    ),
    _Meaning(
        re.compile(r"(?:SslAuthenticationException|SSLHandshakeException): ([^\n]+)"),
        "The TLS handshake with the broker fails: {0}",
        "Check that the port is one of TLS, and kafka.ssl.truststore.location; a PEM file needs "
        "kafka.ssl.truststore.type=PEM.",
    ),
    _Meaning(
        re.compile(r"No resolvable bootstrap urls"),
        "Spark does not know the host in kafka.bootstrap.servers.",
        "Check the spelling, and the name service of the machine that the driver runs on.",
    ),
    _Meaning(
        re.compile(r"UnknownTopicOrPartitionException"),
        "The topic does not exist.",
        "Create it:\n  pykafka-broker topics create TOPIC",
    ),
    _Meaning(
        re.compile(r"Partitions specified for Kafka start offsets don't match"),
        "startingOffsets does not name the partitions that the topic has.",
        "Name each of them; -2 stands for the beginning of a partition, -1 for its end.",
    ),
    _Meaning(
        re.compile(
            r"OffsetOutOfRangeException|Some data may have been lost|some data may have been missed"
            r"|Beginning offset \d+ is after the ending offset"
        ),
        "The offsets to begin with are not in the topic any more, or not yet.",
        "Begin at earliest, or see where the topic is:\n  pykafka-broker spark doctor --topic TOPIC "
        "--checkpoint DIR",
    ),
    _Meaning(
        re.compile(r"TimeoutException: ([^\n]+)"),
        "No broker answers Spark in time: {0}",
        "Look at what `connection` and `brokers` say above. Where they say nothing, the listener may want "
        "another kafka.security.protocol.",
    ),
)


def explain(error: str) -> Fault:
    """Explain an error of Spark; with its last cause, if its meaning is not known here."""
    for pattern, message, remedy in MEANINGS:
        if match := pattern.search(error):
            return Fault(message.format(*match.groups()), remedy)
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    said = [
        line.removeprefix(": ") for line in lines if not line.startswith("An error occurred while calling")
    ]
    last = causes[-1] if causes else (said or ["nothing is said"])[0]
    return Fault(f"Spark does not read: {last}", "Look at the whole error in the log of the driver.")


def read_once(session: SparkSession, options: Mapping[str, str], timeout_s: float) -> Fault | None:
    """Read a record, or find that there is none; return the fault if that fails.

    Args:
        session: Any session, with or without the connector.
        options: Of the source: kafka.bootstrap.servers, subscribe and others that a program gives.
        timeout_s: How long Kafka's client may take.
    """
    limits = {
        "kafka.default.api.timeout.ms": str(round(timeout_s * 1000)),
        "kafka.request.timeout.ms": str(round(timeout_s * 1000 / 2)),
        "kafkaConsumer.pollTimeoutMs": str(round(timeout_s * 1000)),
        "fetchOffset.numRetries": "1",
    }
    try:
        session.read.format("kafka").options(**{**limits, **options}).load().limit(1).collect()
    except Exception as error:
        return explain(str(error))
    return None
