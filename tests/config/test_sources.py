"""Where the static configuration comes from, and which source wins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pykafka_broker
from pykafka_broker.config import ConfigError
from pykafka_broker.config.sources import DEFAULT_DATA_DIR, STANDALONE, load_config, read_environment

#: What Testcontainers' Java module sets for a `KafkaContainer`, with the host's port filled in.
TESTCONTAINERS = {
    "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
    "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9092,BROKER://0.0.0.0:9093,CONTROLLER://0.0.0.0:9094",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:32771,BROKER://5f3e:9093",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_NODE_ID": "1",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "9223372036854775807",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_HEAP_OPTS": "-Xmx512m",
}

#: What compose files for the Bitnami image set.
BITNAMI = {
    "ALLOW_PLAINTEXT_LISTENER": "yes",
    "BITNAMI_DEBUG": "yes",
    "KAFKA_ENABLE_KRAFT": "yes",
    "KAFKA_KRAFT_CLUSTER_ID": "LelM2dIFQkiUFvXCEcqRWA",
    "KAFKA_BROKER_ID": "1",
    "KAFKA_CFG_NODE_ID": "1",
    "KAFKA_CFG_PROCESS_ROLES": "broker,controller",
    "KAFKA_CFG_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CFG_LISTENERS": "CLIENT://:9092,EXTERNAL://:9094,CONTROLLER://:9093",
    "KAFKA_CFG_ADVERTISED_LISTENERS": "CLIENT://kafka:9092,EXTERNAL://localhost:9094",
    "KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,CLIENT:PLAINTEXT,EXTERNAL:PLAINTEXT",
    "KAFKA_CFG_INTER_BROKER_LISTENER_NAME": "CLIENT",
    "KAFKA_CFG_CONTROLLER_QUORUM_VOTERS": "1@kafka:9093",
    "KAFKA_CFG_AUTO_CREATE_TOPICS_ENABLE": "false",
    "KAFKA_CFG_MAX_REQUEST_SIZE": "1048576",
    "KAFKA_INITIAL_CONTROLLERS": "1@kafka:9093:3Db5QLSqSZieL3rJBUUegA",
    "KAFKA_HEAP_OPTS": "-Xmx1024m -Xms1024m",
}

FILE = """
# A node as Apache Kafka 4.3 would accept it.
process.roles = broker,controller
node.id: 7
controller.listener.names CONTROLLER
controller.quorum.bootstrap.servers=localhost\\:9093
listeners=PLAINTEXT://:9092,\\
          CONTROLLER://:9093
log.dirs=/data/kafka
num.partitions=3
broker.rack=caf\\u00e9
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "server.properties"
    path.write_text(FILE)
    return str(path)


def test_without_any_source_a_node_serves_itself_on_the_loopback_interface() -> None:
    config = load_config()
    assert [str(e) for e in config.listeners] == ["PLAINTEXT://127.0.0.1:9092"]
    assert config.node_id == 1
    assert config.process_roles == {"broker", "controller"}
    assert config.standalone
    assert config.log_dirs == (DEFAULT_DATA_DIR,)
    assert config["offsets.topic.replication.factor"] == 1
    assert config["transaction.state.log.min.isr"] == 1
    assert config["group.initial.rebalance.delay.ms"] == 0
    assert config.assumed == STANDALONE.keys()
    assert config.cluster_id is None


def test_a_group_waits_for_more_members_as_in_apache_kafka_where_a_file_is_given(file: str) -> None:
    config = load_config(file=file)
    assert config["group.initial.rebalance.delay.ms"] == 3000
    assert config.assumed == frozenset()


@pytest.mark.parametrize("value", ["0", "3000"])
def test_what_is_configured_is_not_assumed(value: str) -> None:
    for config in (
        load_config(overrides=[f"group.initial.rebalance.delay.ms={value}"]),
        load_config(environ={"KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": value}),
    ):
        assert config["group.initial.rebalance.delay.ms"] == int(value)
        assert config.assumed == STANDALONE.keys() - {"group.initial.rebalance.delay.ms"}


def test_a_properties_file_is_read_as_java_reads_it(file: str) -> None:
    config = load_config(file=file)
    assert config.node_id == 7
    assert [str(e) for e in config.listeners] == ["PLAINTEXT://:9092", "CONTROLLER://:9093"]
    assert config["broker.rack"] == "café"
    assert config.log_dirs == ("/data/kafka",)
    assert not config.standalone


def test_a_properties_file_is_complete_and_what_it_lacks_is_not_made_up(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("node.id=1\n")
    with pytest.raises(ConfigError, match=r'Missing required configuration "process\.roles"'):
        load_config(file=str(path))


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is not a properties file"):
        load_config(file=str(path))


def test_overrides_beat_the_environment_and_the_environment_beats_the_file(file: str) -> None:
    environ = {"KAFKA_NUM_PARTITIONS": "5", "KAFKA_MESSAGE_MAX_BYTES": "1000"}
    config = load_config(file=file, environ=environ, overrides=["num.partitions=6", "num.partitions=7"])
    assert config["num.partitions"] == 7
    assert config.values["message.max.bytes"] == 1000
    assert config.node_id == 7


def test_the_environment_of_a_testcontainers_container_is_understood() -> None:
    config = load_config(environ=TESTCONTAINERS)
    assert config.cluster_id == "4L6g3nShT-eMCtK--X86sw"
    assert [e.name for e in config.broker_listeners] == ["PLAINTEXT", "BROKER"]
    assert [e.name for e in config.controller_listeners] == ["CONTROLLER"]
    assert [(e.name, e.host, e.port) for e in config.advertised_listeners] == [
        ("PLAINTEXT", "localhost", 32771),
        ("BROKER", "5f3e", 9093),
    ]
    assert config.inter_broker_listener_name == "BROKER"
    assert config["group.initial.rebalance.delay.ms"] == 0
    assert config.unknown == []


def test_the_environment_of_a_bitnami_container_is_understood() -> None:
    config = load_config(environ=BITNAMI)
    assert config.cluster_id == "LelM2dIFQkiUFvXCEcqRWA"
    assert config.node_id == 1
    assert [(e.name, e.port) for e in config.listeners] == [
        ("CLIENT", 9092),
        ("EXTERNAL", 9094),
        ("CONTROLLER", 9093),
    ]
    assert [(e.name, e.host, e.port) for e in config.advertised_listeners] == [
        ("CLIENT", "kafka", 9092),
        ("EXTERNAL", "localhost", 9094),
    ]
    assert config.inter_broker_listener_name == "CLIENT"
    assert config["auto.create.topics.enable"] is False
    assert config.unknown == []


def test_what_bitnami_secures_is_not_passed_over_in_silence() -> None:
    environ = {**BITNAMI, "KAFKA_CLIENT_USERS": "me", "KAFKA_CLIENT_PASSWORDS": "secret"}
    assert load_config(environ=environ).unknown == ["client.passwords", "client.users"]


@pytest.mark.parametrize("given", ["CLUSTER_ID", "KAFKA_CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID"])
def test_the_cluster_is_named_by_the_variables_of_either_image(given: str) -> None:
    config = load_config(environ={given: "LelM2dIFQkiUFvXCEcqRWA"})
    assert (config.cluster_id, config.unknown) == ("LelM2dIFQkiUFvXCEcqRWA", [])


def test_the_environment_names_the_first_controllers_of_a_new_quorum() -> None:
    assert load_config(environ=BITNAMI).initial_controllers == "1@kafka:9093:3Db5QLSqSZieL3rJBUUegA"
    assert load_config(environ={}).initial_controllers is None


def test_underscores_of_a_variable_stand_for_dots_underscores_and_dashes() -> None:
    environ = {"KAFKA_A_B": "dot", "KAFKA_A__B": "underscore", "KAFKA_A___B": "dash", "PATH": "/bin"}
    assert read_environment(environ) == {"a.b": "dot", "a_b": "underscore", "a-b": "dash"}


def test_variables_of_the_other_well_known_image_are_an_alias(caplog: pytest.LogCaptureFixture) -> None:
    environ = {"KAFKA_CFG_NODE_ID": "2", "KAFKA_CFG_NUM_PARTITIONS": "4", "KAFKA_NUM_PARTITIONS": "5"}
    assert read_environment(environ) == {"node.id": "2", "num.partitions": "5"}
    assert caplog.messages == [
        "KAFKA_NUM_PARTITIONS counts, and the other value of num.partitions from KAFKA_CFG_ does not"
    ]


def test_the_same_value_under_both_names_is_no_conflict(caplog: pytest.LogCaptureFixture) -> None:
    environ = {"KAFKA_CFG_NUM_PARTITIONS": "4", "KAFKA_NUM_PARTITIONS": "4"}
    assert read_environment(environ) == {"num.partitions": "4"}
    assert caplog.messages == []


def test_variables_for_the_launcher_are_not_keys() -> None:
    environ = {
        "KAFKA_OPTS": "-D",
        "KAFKA_JMX_OPTS": "-D",
        "KAFKA_LOG4J_LOGGERS": "a=INFO",
        "KAFKA_VERSION": "4",
    }
    assert read_environment(environ) == {}


def test_a_jaas_file_is_not_read_and_a_warning_says_where_logins_go(caplog: pytest.LogCaptureFixture) -> None:
    assert read_environment({"KAFKA_OPTS": "-Djava.security.auth.login.config=/etc/kafka/jaas.conf"}) == {}
    assert "KAFKA_OPTS names a JAAS file, which is not read" in caplog.text


def test_listeners_follow_from_advertised_ones_as_in_the_container_image() -> None:
    config = load_config(environ={"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka.example:9092"})
    assert [str(e) for e in config.listeners] == ["PLAINTEXT://0.0.0.0:9092"]


def test_a_host_may_be_advertised_alone() -> None:
    environ = {"KAFKA_ADVERTISED_HOST_NAME": "kafka.example", "KAFKA_LISTENERS": "PLAINTEXT://:19092"}
    config = load_config(environ=environ)
    assert [str(e) for e in config.listeners] == ["PLAINTEXT://:19092"]
    assert [str(e) for e in config.advertised_listeners] == ["PLAINTEXT://kafka.example:19092"]
    assert config.unknown == []


def test_an_overridden_address_is_advertised_beside_listen(file: str) -> None:
    advertised = "advertised.listeners=PLAINTEXT://kafka.example:9092"
    config = load_config(file=file, listen="127.0.0.1:0", overrides=[advertised])
    assert [str(e) for e in config.advertised_listeners] == ["PLAINTEXT://kafka.example:9092"]


def test_listen_moves_the_clients_listener_and_keeps_the_controllers(file: str) -> None:
    config = load_config(file=file, listen="127.0.0.1:0")
    assert [str(e) for e in config.listeners] == ["PLAINTEXT://127.0.0.1:0", "CONTROLLER://:9093"]


def test_listening_everywhere_advertises_no_meta_address() -> None:
    config = load_config(listen="0.0.0.0:9092")
    assert config.advertised_listeners[0].host == ""


@pytest.mark.parametrize("address", ["localhost", "9092", "host:port", ":"])
def test_an_address_without_host_and_port_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="write HOST:PORT"):
        load_config(listen=address)


def test_the_data_dir_replaces_what_the_file_says(file: str) -> None:
    assert load_config(file=file, data_dir="/elsewhere").log_dirs == ("/elsewhere",)


@pytest.mark.parametrize("entry", ["num.partitions", "=3", ""])
def test_an_override_without_key_and_value_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match="write key=value"):
        load_config(overrides=[entry])


def test_what_is_behind_the_key_of_a_malformed_override_is_not_shown() -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(overrides=["ssl.keystore.password hunter2"])
    assert str(refused.value) == "'ssl.keystore.password …' is not an override: write key=value"


def test_a_given_cluster_id_beats_the_environment() -> None:
    assert load_config(environ={"CLUSTER_ID": "a"}, cluster_id="b").cluster_id == "b"


def test_an_old_broker_id_names_the_node() -> None:
    config = load_config(overrides=["broker.id=3"])
    assert config.node_id == 3


def test_without_a_file_the_properties_parser_is_not_imported() -> None:
    script = (
        "import sys; from pykafka_broker.config.sources import load_config; "
        "load_config(overrides=['num.partitions=2'], environ={'KAFKA_NODE_ID': '3'}); "
        "sys.exit('javaproperties' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_paths_are_taken_as_they_are(file: str, tmp_path: Path) -> None:
    config = load_config(file=Path(file), data_dir=tmp_path / "data")
    assert config.log_dirs == (str(tmp_path / "data"),)
    assert config["num.partitions"] == 3


def test_overrides_may_be_a_mapping_with_values_as_python_has_them(tmp_path: Path) -> None:
    config = load_config(
        overrides={
            "num.partitions": 3,
            "auto.create.topics.enable": False,
            "log.cleaner.min.cleanable.ratio": 0.25,
            "broker.rack": "a",
            "log.dirs": tmp_path,
        }
    )
    assert config["num.partitions"] == 3
    assert config["auto.create.topics.enable"] is False
    assert config.values["log.cleaner.min.cleanable.ratio"] == 0.25
    assert config["broker.rack"] == "a"
    assert config.log_dirs == (str(tmp_path),)


def test_overrides_may_be_one_text() -> None:
    assert load_config(overrides="num.partitions=3")["num.partitions"] == 3


def test_a_malformed_value_in_a_mapping_is_refused_as_anywhere_else() -> None:
    reason = "^Invalid value x for configuration num.partitions: Not a number of type INT$"
    with pytest.raises(ConfigError, match=reason):
        load_config(overrides={"num.partitions": "x"})


@pytest.mark.parametrize("value", [None, ["a", "b"]])
def test_a_value_that_no_properties_file_could_hold_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError) as refusal:
        load_config(overrides={"broker.rack": value})
    assert str(refusal.value) == (
        f"{value!r} is not a value of broker.rack: give a text, a number, True, False or a path"
    )


def test_a_misspelt_argument_is_refused_under_the_name_that_was_called() -> None:
    misspelt: dict[str, Any] = {"dataa_dir": "data"}
    with pytest.raises(TypeError, match=r"^load_config\(\) got an unexpected keyword argument 'dataa_dir'"):
        pykafka_broker.load_config(**misspelt)


def test_variables_with_nothing_behind_the_prefix_name_no_key() -> None:
    environ = {"KAFKA_": "x", "KAFKA_CFG_": "y", "KAFKA_LOG_RETENTION_HRS": "1"}
    assert read_environment(environ) == {"log.retention.hrs": "1"}
