"""BrokerConfig: typed access, what is reported, what is refused, and values for one listener."""

from __future__ import annotations

import pytest

from pykafka_broker.authorization.rules import StandardRules
from pykafka_broker.config import BrokerConfig, ConfigError
from pykafka_broker.config.keys import ConfigType, Password, parse, render
from pykafka_broker.config.sources import load_config


def configured(**overrides: str) -> BrokerConfig:
    """A stand-alone node with these keys; `_` stands for `.`."""
    return load_config(overrides=[f"{name.replace('_', '.')}={value}" for name, value in overrides.items()])


def test_values_are_typed() -> None:
    config = configured(
        num_partitions="+03",
        auto_create_topics_enable=" FALSE ",
        log_cleanup_policy="compact, delete,compact",
    )
    assert config["num.partitions"] == 3
    assert config["auto.create.topics.enable"] is False
    assert config.values["log.cleanup.policy"] == ("compact", "delete")
    assert config.values["log.cleaner.min.cleanable.ratio"] == 0.5
    assert config["log.retention.ms"] is None


def test_get_answers_the_fallback_for_what_is_unset_or_unknown() -> None:
    config = configured(num_partitions="3")
    assert config.get("num.partitions", 9) == 3
    assert config.get("log.retention.ms", 9) == 9
    assert config.get("no.such.key", 9) == 9


def test_unknown_keys_are_kept_and_named() -> None:
    config = configured(my_plugin_setting="7")
    assert config.values["my.plugin.setting"] == "7"
    assert config.unknown == ["my.plugin.setting"]


def test_keys_without_effect_here_are_named_unless_they_say_what_is_so_anyway() -> None:
    config = configured(num_io_threads="4", num_network_threads="3", num_partitions="2")
    assert "num.io.threads" in config.unheeded
    assert "num.network.threads" not in config.unheeded
    assert "num.partitions" not in config.unheeded


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("remote.log.storage.system.enable", "true"),
        ("create.topic.policy.class.name", "com.example.Policy"),
    ],
)
def test_what_an_operator_would_rely_on_is_refused_rather_than_ignored(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^{key} is set, but this broker does not support it"):
        load_config(overrides=[f"{key}={value}"])


STANDARD = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def test_the_authorizer_reads_keys_of_its_own() -> None:
    config = load_config(
        overrides=[STANDARD, "super.users=User:root; User:CN=x,O=y;", "allow.everyone.if.no.acl.found= TRUE "]
    )
    assert config.authorizer == StandardRules(frozenset({"User:root", "User:CN=x,O=y"}), True)
    assert config.unknown == []
    assert load_config(overrides=[STANDARD]).authorizer == StandardRules(frozenset(), False)
    assert load_config(overrides=["super.users=User:root"]).authorizer is None
    assert load_config(overrides=["super.users=User:root"]).unknown == ["super.users"]


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        (["authorizer.class.name=kafka.security.authorizer.AclAuthorizer"], "has only org.apache.kafka"),
        ([STANDARD, "super.users=User:root;alice"], "principalType:principalName but got alice"),
    ],
)
def test_an_authorizer_that_would_decide_otherwise_is_refused(overrides: list[str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        load_config(overrides=overrides)


@pytest.mark.parametrize("roles", ["controller", "broker,controller"])
def test_a_node_may_be_one_of_several_controllers(roles: str) -> None:
    listeners = "CONTROLLER://:9093" if roles == "controller" else "PLAINTEXT://:9092,CONTROLLER://:9093"
    config = load_config(
        overrides=[
            f"process.roles={roles}",
            "controller.quorum.voters=1@a:9093,2@b:9093",
            f"listeners={listeners}",
        ]
    )
    assert [voter.node_id for voter in config.voters] == [1, 2]


def test_a_listener_may_have_its_own_value() -> None:
    config = load_config(overrides=["max.connections=100", "listener.name.plaintext.max.connections=10"])
    assert config["max.connections"] == 100
    assert config.for_listener("PLAINTEXT", "max.connections") == 10
    assert config.for_listener("OTHER", "max.connections") == 100
    assert config.unknown == []


def test_a_listeners_own_value_is_checked_like_any_other() -> None:
    with pytest.raises(ConfigError, match="Not a number of type INT"):
        load_config(overrides=["listener.name.plaintext.max.connections=many"])


def test_connection_limits_per_address_are_a_map() -> None:
    config = configured(max_connections_per_ip_overrides="127.0.0.1:5, ::1:6, some.host:7")
    assert config.connections_per_ip_overrides == {"127.0.0.1": 5, "::1": 6, "some.host": 7}


@pytest.mark.parametrize(
    ("port", "why"),
    [
        ("65536", "is not between 0 and 65535"),
        ("-1", "is not between 0 and 65535"),
        ("--1", "Unable to parse PLAINTEXT://127.0.0.1:--1 to a broker endpoint"),
    ],
)
def test_a_port_out_of_range_is_refused(port: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        load_config(overrides=[f"listeners=PLAINTEXT://127.0.0.1:{port}"])


def test_an_ipv6_listener_is_written_with_brackets() -> None:
    config = load_config(listen="[::1]:9092")
    assert config.listeners[0].host == "::1"
    assert str(config.listeners[0]) == "PLAINTEXT://[::1]:9092"


def test_the_metadata_log_is_in_the_first_folder_unless_said_otherwise() -> None:
    assert configured(log_dirs="/a,/b").metadata_log_dir == "/a"
    assert configured(log_dirs="/a,/b", metadata_log_dir="/m").metadata_log_dir == "/m"


def test_a_secret_does_not_show_itself() -> None:
    value = parse("sasl.jaas.config", " secret ", ConfigType.PASSWORD)
    assert isinstance(value, Password)
    assert value == "secret"
    assert "secret" not in repr({"password": value})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.0, "0.0"),
        (1e-5, "1.0E-5"),
        (123456789.0, "1.23456789E8"),
        (-2.5e10, "-2.5E10"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert render(value, ConfigType.DOUBLE) == text


@pytest.mark.parametrize("text", ["1_000", "1.0", "", "0x10", "\u0663", "--1"])
def test_only_plain_digits_make_a_whole_number(text: str) -> None:
    with pytest.raises(ConfigError, match="Not a number of type INT"):
        parse("num.partitions", text, ConfigType.INT)


@pytest.mark.parametrize("text", ["1_0.5", "", "one"])
def test_only_numbers_make_a_double(text: str) -> None:
    with pytest.raises(ConfigError, match="Not a number of type DOUBLE"):
        parse("x", text, ConfigType.DOUBLE)


def test_an_empty_identification_algorithm_makes_a_difference() -> None:
    """A start had warned that it makes none, although nodes then compare no names."""
    assert load_config(overrides=["ssl.endpoint.identification.algorithm="]).unheeded == []
