"""Our tables and rules, compared with what Apache Kafka 4.3.1 itself says.

The files in `apache/` were written down from a running Apache Kafka 4.3.1 and its own configuration classes:

* `keys.json`: every key's definition;
* `described.json`: a broker's properties, and its DescribeConfigs answers before and after dynamic changes;
  of the second scene only the entries that differ from the first. Entries stand in the order of the answer;
* `startup.json`: broker configurations, each with the reason why it is refused, or null;
* `changes.json`: dynamic changes of single keys, each with error code and message.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pykafka_broker.config import BrokerConfig, ConfigError, DynamicConfig
from pykafka_broker.config.broker import BROKER_KEYS
from pykafka_broker.config.client_metrics import CLIENT_METRICS_KEYS
from pykafka_broker.config.describe import (
    ConfigEntry,
    describe_broker,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from pykafka_broker.config.group import GROUP_KEYS
from pykafka_broker.config.keys import REQUIRED, Key, render
from pykafka_broker.config.resources import BROKER_RESOURCE
from pykafka_broker.config.rules import TableRules, validate_broker_configs
from pykafka_broker.config.topic import TOPIC_KEYS
from pykafka_broker.protocol.errors import KafkaError

TABLES = {
    "broker": BROKER_KEYS,
    "topic": TOPIC_KEYS,
    "group": GROUP_KEYS,
    "client_metrics": CLIENT_METRICS_KEYS,
}

NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
}


def apache(file: str) -> Any:
    return json.loads((Path(__file__).parent / "apache" / file).read_text())


def definition(table: str, key: Key) -> dict[str, Any]:
    """A row of ours in the form of `keys.json`."""
    return {
        "table": table,
        "name": key.name,
        "type": key.type.name,
        "default": None if key.default is REQUIRED else render(key.default, key.type),
        "required": key.default is REQUIRED,
        "valid": None if key.validator is None else str(key.validator),
        "importance": key.importance,
        "scope": key.scope if table == "broker" and key.scope != "read-only" else None,
        "internal": key.internal,
    }


@pytest.mark.parametrize("table", TABLES)
def test_every_key_is_defined_as_in_apache_kafka(table: str) -> None:
    theirs = {row["name"]: row for row in apache("keys.json") if row["table"] == table}
    ours = {key.name: definition(table, key) for key in TABLES[table]}
    assert ours == theirs


@pytest.mark.parametrize("case", apache("startup.json"), ids=lambda case: str(case["refusal"])[:60])
def test_a_configuration_is_refused_for_the_reason_apache_kafka_gives(case: dict[str, Any]) -> None:
    if case["refusal"] is None:
        BrokerConfig(case["properties"])
        return
    with pytest.raises(ConfigError) as refused:
        BrokerConfig(case["properties"])
    assert str(refused.value) == case["refusal"]


@pytest.mark.parametrize(
    "case", apache("changes.json"), ids=lambda case: f"{case['resource_type']}-{case['key']}={case['value']}"
)
def test_a_dynamic_change_is_answered_as_apache_kafka_answers_it(case: dict[str, Any]) -> None:
    configs = DynamicConfig(BrokerConfig(NODE))
    change = {case["key"]: case["value"]}
    code, message = 0, None
    try:
        if case["resource_type"] == BROKER_RESOURCE:
            validate_broker_configs(case["resource"], change, configs)
        TableRules(configs).validate(case["resource_type"], case["resource"], change, {})
    except KafkaError as error:
        code, message = int(error.code), error.message
    assert (code, message) == (case["error_code"], case["message"])


def scenes() -> list[tuple[DynamicConfig, dict[str, dict[str, str]], dict[tuple[str, str, str], Any]]]:
    """Configurations, the overrides of other resources, and all entries Apache Kafka describes them with."""
    file = apache("described.json")
    result = []
    entries: dict[tuple[str, str, str], Any] = {}
    for scene in file["scenes"]:
        configs = DynamicConfig(BrokerConfig(file["properties"]))
        overrides = scene["overrides"]
        configs.update(overrides.get("4 ", {}), overrides.get("4 1", {}))
        described = {(kind, name, row[0]): row for kind, name, rows in scene["described"] for row in rows}
        entries = {**entries, **described}
        result.append((configs, overrides, entries))
    return result


def as_json(entry: ConfigEntry) -> list[Any]:
    """An entry of ours in the form of `described.json`."""
    synonyms = [[s.name, s.value, int(s.source)] for s in entry.synonyms]
    return [
        entry.name,
        entry.value,
        entry.read_only,
        int(entry.source),
        entry.is_sensitive,
        synonyms,
        int(entry.type),
    ]


def described(
    configs: DynamicConfig, overrides: dict[str, dict[str, str]]
) -> dict[tuple[str, str], list[ConfigEntry]]:
    """Every resource of a scene as we describe it."""
    return {
        ("4", "1"): describe_broker(configs, "1"),
        ("4", ""): describe_broker(configs, ""),
        ("2", "f-cfg"): describe_topic(configs, overrides.get("2 f-cfg", {})),
        ("32", "g"): describe_group(configs, overrides.get("32 g", {})),
        ("16", "m"): describe_client_metrics(overrides.get("16 m", {})),
    }


@pytest.mark.parametrize("scene", [0, 1], ids=["as started", "after dynamic changes"])
def test_every_resource_is_described_as_by_apache_kafka(scene: int) -> None:
    configs, overrides, theirs = scenes()[scene]
    ours = described(configs, overrides)
    flat = {(*resource, e.name): as_json(e) for resource, entries in ours.items() for e in entries}
    assert flat == theirs


@pytest.mark.parametrize("scene", [0, 1], ids=["as started", "after dynamic changes"])
def test_the_entries_come_in_the_order_of_apache_kafkas_hash_maps(scene: int) -> None:
    configs, overrides, _ = scenes()[scene]
    ours = described(configs, overrides)
    for kind, name, rows in apache("described.json")["scenes"][scene]["described"]:
        theirs = [row[0] for row in rows]
        assert [entry.name for entry in ours[kind, name] if entry.name in theirs] == theirs


def test_every_key_is_documented_in_a_sentence() -> None:
    for keys in TABLES.values():
        for key in keys:
            assert key.documentation.endswith("."), key.name
            assert len(key.documentation) > 10, key.name
