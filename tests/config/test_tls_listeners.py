"""The TLS of a listener, as its keys and the general ones say."""

from __future__ import annotations

import pytest

from pykafka_broker.config import BrokerConfig, ConfigError
from pykafka_broker.config.sources import load_config
from pykafka_broker.config.tls_listeners import principal_mapping, tls_settings


def configured(**settings: str) -> BrokerConfig:
    return load_config(overrides=[f"{name.replace('_', '.')}={value}" for name, value in settings.items()])


def test_a_key_of_a_listener_counts_before_the_general_one() -> None:
    config = configured(
        ssl_keystore_location="/general.p12",
        ssl_keystore_password="general",
        listener_name_clients_ssl_keystore_location="/own.p12",
        listener_name_clients_ssl_enabled_protocols="TLSv1.3",
    )
    own, other = tls_settings(config, "CLIENTS", "SSL"), tls_settings(config, "OTHER", "SSL")
    assert (own.key_store.location, own.key_store.password) == ("/own.p12", "general")
    assert own.enabled_protocols == ("TLSv1.3",)
    assert (other.key_store.location, other.enabled_protocols) == ("/general.p12", ("TLSv1.2", "TLSv1.3"))


def test_with_sasl_only_the_listeners_own_key_asks_for_certificates() -> None:
    config = configured(ssl_client_auth="required", listener_name_b_ssl_client_auth="requested")
    assert [
        tls_settings(config, listener, protocol).client_auth
        for listener in ("A", "B")
        for protocol in ("SSL", "SASL_SSL")
    ] == ["required", "none", "requested", "requested"]


@pytest.mark.parametrize("name", ["ssl_provider", "ssl_engine_factory_class"])
def test_code_for_java_is_refused(name: str) -> None:
    config = configured(**{name: "com.example.Code"})
    with pytest.raises(ConfigError, match="code for Java"):
        tls_settings(config, "CLIENTS", "SSL")


def test_the_factory_that_is_apache_kafkas_own_may_be_named() -> None:
    named = configured(
        ssl_engine_factory_class="org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"
    )
    assert tls_settings(named, "CLIENTS", "SSL") == tls_settings(configured(), "CLIENTS", "SSL")


def test_rules_that_cannot_be_read() -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules: Invalid rule: `nonsense`"):
        principal_mapping(configured(ssl_principal_mapping_rules="nonsense"), "CLIENTS")
