"""What a listener with SASL may ask for, and what it is told where it cannot have it."""

from __future__ import annotations

import pytest

from pykafka_broker.config import BrokerConfig
from pykafka_broker.config.keys import ConfigError
from pykafka_broker.config.sasl_listeners import NodeUser, node_login, sasl_settings
from pykafka_broker.config.sources import load_config

LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="s3cret";'
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
JAAS = "listener.name.clients.plain.sasl.jaas.config"
SETTINGS = {
    "listeners": "CLIENTS://127.0.0.1:9092,INSIDE://127.0.0.1:9094",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "PLAIN",
    JAAS: LOGIN,
}


def config(**changes: str | None) -> BrokerConfig:
    """`SETTINGS` with these changes; None leaves a key out. Keys have _ for dots."""
    settings = SETTINGS | {key.replace("_", "."): value for key, value in changes.items()}
    return load_config(overrides=[f"{key}={value}" for key, value in settings.items() if value is not None])


def test_a_mechanism_has_its_login_and_the_limits_of_its_listener() -> None:
    settings = sasl_settings(config(connections_max_reauth_ms="7000"), "CLIENTS")

    plain = settings.mechanisms["PLAIN"]
    assert (plain.login.passwords, plain.max_reauth_ms) == ({"alice": "s3cret"}, 7000)
    assert settings.max_receive_bytes == 524_288


def test_the_nearest_value_counts() -> None:
    nearest = config(
        connections_max_reauth_ms="7000",
        listener_name_clients_connections_max_reauth_ms="8000",
        listener_name_clients_plain_connections_max_reauth_ms="9000",
        listener_name_clients_sasl_server_max_receive_size="100",
    )
    settings = sasl_settings(nearest, "CLIENTS")

    assert (settings.mechanisms["PLAIN"].max_reauth_ms, settings.max_receive_bytes) == (9000, 100)


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"sasl_enabled_mechanisms": None}, "SASL mechanism GSSAPI, which is not served: Kerberos needs"),
        (
            {"inter_broker_listener_name": "CLIENTS"},
            "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms",
        ),
        ({"sasl_enabled_mechanisms": "PLAIN,MINE"}, "SASL mechanism MINE, which is not served. "),
        ({"listener_name_clients_sasl_enabled_mechanisms": ""}, "no SASL mechanisms are enabled"),
        ({"listener_name_clients_plain_sasl_jaas_config": None}, f"has no login .*: set {JAAS}"),
        (
            {"listener_name_clients_plain_sasl_jaas_config": None, "sasl_jaas_config": LOGIN},
            r"has no login .* \(sasl\.jaas\.config without this prefix is ignored\)",
        ),
        ({"listener_name_clients_plain_sasl_jaas_config": "x"}, f"{JAAS}: Login module control flag"),
        ({"listener_name_clients_plain_sasl_jaas_config": LOGIN * 2}, "contains 2 login modules"),
        (
            {"listener_name_clients_plain_sasl_jaas_config": LOGIN.replace("Plain", "My")},
            "login module that this broker does not know",
        ),
        (
            {"listener_name_clients_plain_sasl_server_callback_handler_class": "com.example.Handler"},
            "callback.handler.class names code for Java, which this broker cannot run",
        ),
    ],
)
def test_what_cannot_be_served_is_refused_at_the_start(changes: dict[str, str | None], refusal: str) -> None:
    with pytest.raises(ConfigError, match=refusal) as raised:
        config(**changes)
    assert "s3cret" not in str(raised.value)


SECURITY = "org.apache.kafka.common.security"
PLAIN_HANDLER = f"{SECURITY}.plain.internals.PlainServerCallbackHandler"
LOGIN_HANDLER = f"{SECURITY}.authenticator.AbstractLogin$DefaultLoginCallbackHandler"


def test_classes_that_are_apache_kafkas_own_may_be_named() -> None:
    named = config(
        sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-512",
        listener_name_clients_plain_sasl_server_callback_handler_class=PLAIN_HANDLER,
        listener_name_clients_plain_sasl_login_callback_handler_class=LOGIN_HANDLER,
        listener_name_clients_plain_sasl_login_class=f"{SECURITY}.authenticator.DefaultLogin",
        sasl_client_callback_handler_class=f"{SECURITY}.authenticator.SaslClientCallbackHandler",
        principal_builder_class=f"{SECURITY}.authenticator.DefaultKafkaPrincipalBuilder",
        **{
            "listener_name_clients_scram-sha-512_sasl_jaas_config": SCRAM,
            "listener_name_clients_scram-sha-512_sasl_login_callback_handler_class": LOGIN_HANDLER,
        },
    )
    assert list(sasl_settings(named, "CLIENTS").mechanisms) == ["PLAIN", "SCRAM-SHA-512"]


def test_a_handler_of_one_mechanism_is_none_of_another() -> None:
    with pytest.raises(ConfigError, match=r"callback\.handler\.class names code for Java"):
        config(
            sasl_enabled_mechanisms="SCRAM-SHA-512",
            **{
                "listener_name_clients_scram-sha-512_sasl_jaas_config": SCRAM,
                "listener_name_clients_scram-sha-512_sasl_server_callback_handler_class": PLAIN_HANDLER,
            },
        )


NODE = LOGIN.replace("user_", 'username="node" password="s3cret" user_')
QUORUM: dict[str, str | None] = {
    "process_roles": "broker,controller",
    "node_id": "1",
    "controller_listener_names": "CONTROLLER",
    "controller_quorum_voters": "1@127.0.0.1:9093,2@127.0.0.2:9093",
    "inter_broker_listener_name": "CLIENTS",
    "sasl_mechanism_inter_broker_protocol": "PLAIN",
    "listeners": "CLIENTS://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "listener_name_clients_plain_sasl_jaas_config": NODE,
}


def test_the_login_of_a_listener_names_the_user_of_the_node() -> None:
    assert node_login(config(**QUORUM), "CLIENTS", "PLAIN") == NodeUser("node", "s3cret")


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"listener_name_clients_plain_sasl_jaas_config": LOGIN}, f"{JAAS} needs username and password"),
        (
            {"listener_security_protocol_map": "CLIENTS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"},
            "Listener CONTROLLER has no login",
        ),
        (
            {
                "listener_security_protocol_map": "CLIENTS:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
                "process_roles": "broker",
                "node_id": "3",
                "listeners": "CLIENTS://127.0.0.1:9092",
            },
            "Listener CONTROLLER asks for the SASL mechanism GSSAPI",
        ),
    ],
)
def test_nodes_of_a_cluster_need_a_user(changes: dict[str, str | None], refusal: str) -> None:
    with pytest.raises(ConfigError, match=refusal) as raised:
        config(**(QUORUM | changes))
    assert "s3cret" not in str(raised.value)


def test_a_login_is_shown_nowhere() -> None:
    read = config()
    assert "s3cret" not in repr(read.values)
    assert "s3cret" not in repr(sasl_settings(read, "CLIENTS"))
