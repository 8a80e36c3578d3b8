"""Which keys of `controller.quorum.*` set what in this node's replica of the metadata log."""

from __future__ import annotations

import pytest

from pykafka_broker.broker.raft_settings import peer_settings, raft_settings
from pykafka_broker.config import BrokerConfig, ConfigError
from pykafka_broker.config.sources import load_config
from pykafka_broker.raft.core.settings import Settings
from pykafka_broker.raft.quorum_peers import PeerSettings
from pykafka_broker.raft.wire.common import Scope

NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092,QUORUM://127.0.0.1:9093",
    "controller.listener.names": "QUORUM",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,QUORUM:PLAINTEXT",
}


def configured(**quorum: str) -> BrokerConfig:
    """A node with these keys of its quorum; `_` stands for `.`."""
    keys = {f"controller.quorum.{name.replace('_', '.')}": value for name, value in quorum.items()}
    return BrokerConfig({**NODE, **keys})


def test_without_keys_of_the_quorum_the_defaults_of_kafka_hold() -> None:
    config = configured(bootstrap_servers="localhost:9093")
    assert raft_settings(config) == Settings(listener="QUORUM", bootstrap=(("localhost", 9093),))
    assert peer_settings(lambda: config, "cluster") == PeerSettings(1, Scope("cluster", "QUORUM"))


def test_each_key_sets_its_setting() -> None:
    config = configured(
        bootstrap_servers="one:9093, [::1]:9193",
        election_timeout_ms="1",
        election_backoff_max_ms="2",
        fetch_timeout_ms="300",
        request_timeout_ms="4",
        retry_backoff_ms="5",
        fetch_snapshot_max_bytes="6",
        fetch_max_bytes="7",
        auto_join_enable="true",
    )
    assert raft_settings(config) == Settings(
        listener="QUORUM",
        bootstrap=(("one", 9093), ("::1", 9193)),
        auto_join=True,
        election_timeout_ms=1,
        election_backoff_max_ms=2,
        fetch_timeout_ms=300,
        request_timeout_ms=4,
        retry_backoff_ms=5,
        fetch_max_wait_ms=150,
        snapshot_part_bytes=6,
    )
    assert peer_settings(lambda: config, "cluster") == PeerSettings(
        1, Scope("cluster", "QUORUM"), fetch_max_bytes=7, request_timeout_ms=4
    )


def test_the_voters_are_asked_for_the_leader_where_no_bootstrap_server_is_named() -> None:
    config = configured(voters="1@one:9093")
    assert raft_settings(config).bootstrap == (("one", 9093),)
    both = configured(voters="1@one:9093", bootstrap_servers="any:9093")
    assert raft_settings(both).bootstrap == (("any", 9093),)


def test_a_node_alone_asks_nobody() -> None:
    assert raft_settings(load_config()) == Settings()


@pytest.mark.parametrize(
    ("key", "value", "refusal"),
    [
        ("election.timeout.ms", "-1", "Value must be at least 0"),
        ("fetch.max.bytes", "0", "Value must be at least 1"),
        ("fetch.snapshot.max.bytes", "0", "Value must be at least 1"),
        ("auto.join.enable", "-1", "Expected value to be either true or false"),
        ("bootstrap.servers", "nowhere", "Failed to parse host name from nowhere"),
        ("voters", "1@0.0.0.0:9093", r"Host string \(0.0.0.0\) is not routeable"),
    ],
)
def test_a_value_that_cannot_be_is_refused_as_by_kafka(key: str, value: str, refusal: str) -> None:
    with pytest.raises(ConfigError, match=refusal):
        BrokerConfig({**NODE, f"controller.quorum.{key}": value})


def test_only_a_controller_makes_itself_a_voter() -> None:
    broker = {
        **NODE,
        "process.roles": "broker",
        "listeners": "PLAINTEXT://127.0.0.1:9092",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "controller.quorum.auto.join.enable": "true",
    }
    with pytest.raises(ConfigError) as refusal:
        BrokerConfig(broker)
    assert str(refusal.value) == (
        "controller.quorum.auto.join.enable is only supported when process.roles contains the 'controller' "
        "role."
    )
