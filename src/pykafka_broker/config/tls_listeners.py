"""The TLS of a listener: its stores, and whether it asks clients for certificates.

Each key is looked up as `listener.name.<listener>.<key>`, then as `<key>`. So a listener with its own
`ssl.keystore.location` uses the general `ssl.keystore.password` if it has no own one, as in Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pykafka_broker.config.keys import ConfigError, code_for_java
from pykafka_broker.config.listeners import Endpoint
from pykafka_broker.config.typed_values import TypedValues
from pykafka_broker.tls.contexts import TlsSettings, server_context
from pykafka_broker.tls.core.principal_mapping import PrincipalMapping
from pykafka_broker.tls.renewal import check_renewed
from pykafka_broker.tls.stores import StoreError, StoreSettings, read_key_store
from pykafka_broker.tls.trial import check_handshake

#: Apache Kafka's default.
_ENGINE_FACTORY = "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"


def tls_settings(values: TypedValues, listener: str, security_protocol: str) -> TlsSettings:
    """The `ssl.*` keys of `listener`, whose security protocol is SSL or SASL_SSL.

    Raises:
        ConfigError: one of them names Java code.
    """
    prefix = f"listener.name.{listener.lower()}."

    def value(name: str) -> Any:
        own = values.values.get(prefix + name)
        return values.values[name] if own is None else own

    for name, own in (("ssl.engine.factory.class", _ENGINE_FACTORY), ("ssl.provider", None)):
        if value(name) not in (None, own):
            raise code_for_java(listener, name)
    # With SASL the general `ssl.client.auth` does not count, only the listener's own one (KIP-684).
    asks = value("ssl.client.auth")
    if security_protocol == "SASL_SSL":
        asks = values.values.get(prefix + "ssl.client.auth") or "none"
    return TlsSettings(
        key_store=StoreSettings(
            value("ssl.keystore.type"),
            value("ssl.keystore.location"),
            value("ssl.keystore.password"),
            value("ssl.key.password"),
            value("ssl.keystore.key"),
            value("ssl.keystore.certificate.chain"),
        ),
        trust_store=StoreSettings(
            value("ssl.truststore.type"),
            value("ssl.truststore.location"),
            value("ssl.truststore.password"),
            certificates=value("ssl.truststore.certificates"),
        ),
        protocol=value("ssl.protocol"),
        enabled_protocols=value("ssl.enabled.protocols"),
        cipher_suites=value("ssl.cipher.suites"),
        client_auth=asks,
        endpoint_identification=value("ssl.endpoint.identification.algorithm"),
    )


def check_tls_change(
    current: TypedValues, changed: TypedValues, listeners: Iterable[Endpoint], between_brokers: str | None
) -> None:
    """Refuse a dynamic change after which a listener could not serve TLS, or would change its identity.

    `between_brokers` is the listener over which brokers connect to each other; during the change some have
    the old keys, others the new ones. None if there are no other brokers.

    Raises:
        ConfigError: with Kafka's message.
    """
    for listener in listeners:
        if not listener.security_protocol.endswith("SSL"):
            continue
        before = tls_settings(current, listener.name, listener.security_protocol)
        after = tls_settings(changed, listener.name, listener.security_protocol)
        if before == after:
            continue
        try:
            if _has_none(before.trust_store) and not _has_none(after.trust_store):
                raise StoreError(
                    "Cannot add SSL truststore to an existing listener for which no truststore was "
                    "configured."
                )
            server_context(after)
            check_renewed(
                read_key_store(before.key_store), read_key_store(after.key_store), **may_change(changed)
            )
            if listener.name == between_brokers:
                check_handshake(before, after)
                check_handshake(after, before)
        except ValueError as error:
            raise ConfigError(f"Validation of dynamic config update of SSLFactory failed: {error}") from None


def _has_none(store: StoreSettings) -> bool:
    return store.location is None and store.certificates is None


def may_change(values: TypedValues) -> dict[str, bool]:
    """What a renewed certificate may change, as arguments of `check_renewed`."""
    return {
        "may_change_name": values.values["ssl.allow.dn.changes"],
        "may_change_hosts": values.values["ssl.allow.san.changes"],
    }


def principal_mapping(values: TypedValues, listener: str) -> PrincipalMapping:
    """`ssl.principal.mapping.rules` of a listener.

    Raises:
        ConfigError: a rule cannot be read.
    """
    name = "ssl.principal.mapping.rules"
    own = values.values.get(f"listener.name.{listener.lower()}.{name}")
    try:
        return PrincipalMapping(values.values[name] if own is None else own)
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None
