"""What the tables say about a key's effect is what the code does with it."""

from __future__ import annotations

import re
from pathlib import Path

import pykafka_broker
from pykafka_broker.config.broker import BROKER, BROKER_KEYS
from pykafka_broker.config.group import GROUP
from pykafka_broker.config.groups import broker_keys
from pykafka_broker.config.keys import ACTS, REFUSED
from pykafka_broker.config.topic import BROKER_SYNONYMS, TOPIC_KEYS
from pykafka_broker.config.topics import BROKER_WIDE_KEYS

PACKAGE = Path(pykafka_broker.__file__).parent

#: Keys that this package turns into attributes, which the rest of the code reads.
READ_AS_ATTRIBUTES = {
    "authorizer.class.name",
    "broker.id",
    "config.providers",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "connections.max.reauth.ms",
    "cordoned.log.dirs",
    "early.start.listeners",
    "inter.broker.listener.name",
    "listener.security.protocol.map",
    "listeners",
    "log.dir",
    "log.dirs",
    "max.connections.per.ip.overrides",
    "metadata.log.dir",
    "node.id",
    "process.roles",
    "sasl.enabled.mechanisms",
    "sasl.jaas.config",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "ssl.allow.dn.changes",
    "ssl.allow.san.changes",
    "sasl.oauthbearer.jwt.validator.class",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "sasl.server.callback.handler.class",
    "sasl.server.max.receive.size",
    "security.inter.broker.protocol",
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.principal.mapping.rules",
    "ssl.protocol",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
}


def code() -> str:
    """All code but that of configuration itself, of commands and the test kit, which know any broker, and of
    local clusters, which write down what their nodes read. Of clients, whose own keys are called as the
    broker's are, neither.
    """
    return "\n".join(
        path.read_text()
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in ("config", "cli", "client", "local_cluster", "testing")
    )


def read_topic_keys(text: str) -> set[str]:
    """Topic keys that are read as fields of LogConfig, or by their names."""
    fields = {key.name: key.name.replace(".", "_") for key in TOPIC_KEYS}
    return {
        name
        for name, field in fields.items()
        if re.search(rf"\.{field}\b", text) or f'"{name}"' in text or name == "internal.segment.bytes"
    }


def test_a_topic_key_acts_exactly_if_something_reads_it() -> None:
    # The levels are looked up by the codec's name.
    levels = {f"compression.{codec}.level" for codec in ("gzip", "lz4", "zstd")}
    acting = {key.name for key in TOPIC_KEYS if key.handling == ACTS}
    assert acting == read_topic_keys(code()) | levels


def test_a_broker_key_acts_exactly_if_something_reads_it() -> None:
    text = code()
    topic_keys = read_topic_keys(text)
    as_default = {
        broker_key
        for topic_key, synonyms in BROKER_SYNONYMS.items()
        for broker_key, _ in synonyms
        if topic_key in topic_keys or topic_key.startswith("compression.")
    }
    of_groups = {each for name in GROUP if f'"{name}"' in text for each in broker_keys(name)} & BROKER.keys()
    by_name = {key.name for key in BROKER_KEYS if f'"{key.name}"' in text}
    acting = {key.name for key in BROKER_KEYS if key.handling == ACTS}
    assert acting == by_name | as_default | of_groups | READ_AS_ATTRIBUTES | set(BROKER_WIDE_KEYS)


def test_only_keys_with_a_harmless_default_are_refused() -> None:
    refused = [key.name for key in BROKER_KEYS if key.handling == REFUSED]
    assert refused
    for name in refused:
        # Kafka's own plug-in does what is done here.
        is_own = str(BROKER[name].default).endswith("DefaultKafkaPrincipalBuilder")
        assert is_own or BROKER[name].default in (None, "", (), False, 0), name
