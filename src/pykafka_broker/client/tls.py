"""The TLS of a client, in the keys of Kafka's own clients (`ssl.*`)."""

from __future__ import annotations

from collections.abc import Mapping
from ssl import SSLContext

from pykafka_broker.tls.contexts import TlsSettings, client_context
from pykafka_broker.tls.stores import StoreSettings

_DEFAULTS = TlsSettings()


def context_of(properties: Mapping[str, str]) -> SSLContext:
    """The TLS context of client properties.

    Raises:
        ValueError: a value is invalid; the message names the key, and holds no secret.
    """

    def words(name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        text = properties.get(name)
        if text is None:
            return default
        return tuple(word.strip() for word in text.split(",") if word.strip())

    get = properties.get
    return client_context(
        TlsSettings(
            key_store=StoreSettings(
                get("ssl.keystore.type", "JKS"),
                get("ssl.keystore.location"),
                get("ssl.keystore.password"),
                get("ssl.key.password"),
                get("ssl.keystore.key"),
                get("ssl.keystore.certificate.chain"),
            ),
            trust_store=StoreSettings(
                get("ssl.truststore.type", "JKS"),
                get("ssl.truststore.location"),
                get("ssl.truststore.password"),
                certificates=get("ssl.truststore.certificates"),
            ),
            protocol=get("ssl.protocol", _DEFAULTS.protocol),
            enabled_protocols=words("ssl.enabled.protocols", _DEFAULTS.enabled_protocols),
            cipher_suites=words("ssl.cipher.suites", _DEFAULTS.cipher_suites),
            endpoint_identification=get(
                "ssl.endpoint.identification.algorithm", _DEFAULTS.endpoint_identification
            ),
        )
    )
