"""Topics with replicas on brokers of Apache Kafka 4.3.1 and of ours, below controllers of either kind.

Leaders of either kind are killed; in the end all replicas have the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from pykafka_broker.testing.apache.nodes import Nodes, Software
from tests.exchange.replicated_topics import PROPERTIES, ReplicatedTopic

FIRST, SECOND, THIRD = 11, 12, 13
BROKERS = (FIRST, SECOND, THIRD)


def with_brokers(folder: Path, controllers: Software, brokers: Mapping[int, Software]) -> Nodes:
    nodes = Nodes(folder, {1: controllers}, dynamic=True, properties=PROPERTIES)
    for node_id, software in brokers.items():
        nodes.add(node_id, software, roles="broker")
    return nodes


@pytest.mark.usefixtures("kafka_jars")
@pytest.mark.parametrize(
    ("controllers", "brokers"),
    [
        pytest.param(
            "ours",
            {FIRST: "apache", SECOND: "apache", THIRD: "apache"},
            id="apache under ours",
        ),
        pytest.param(
            "apache",
            {FIRST: "ours", SECOND: "apache", THIRD: "apache"},
            id="one of ours under apache",
        ),
        pytest.param("ours", {FIRST: "ours", SECOND: "apache", THIRD: "ours"}, id="both under ours"),
    ],
)
def test_replicas_follow_and_lead_each_other_whoever_is_killed(
    controllers: Software, brokers: Mapping[int, Software], tmp_path: Path
) -> None:
    with with_brokers(tmp_path, controllers, brokers) as nodes:
        # One that each of the first two leads.
        topics = [
            ReplicatedTopic(nodes, "one", BROKERS).create(),
            ReplicatedTopic(nodes, "two", (SECOND, THIRD, FIRST)).create(),
        ]
        for killed in (FIRST, SECOND):
            for topic in topics:
                topic.write(100)
                topic.write(100, **{"compression.type": "lz4"})
                topic.write_transactions(f"of-{topic.name}", 2)
            nodes[killed].kill()
            for topic in topics:
                topic.is_led_by(*(broker for broker in BROKERS if broker != killed))
                topic.write(100)
            nodes[killed].start()
            for topic in topics:
                topic.in_sync()
        for topic in topics:
            topic.is_read_as_written()
        for broker in BROKERS:
            nodes[broker].stop()
        for topic in topics:
            topic.has_the_same_bytes_everywhere()


@pytest.mark.usefixtures("kafka_jars")
@pytest.mark.parametrize("controllers", ["apache", "ours"])
def test_replicas_of_apache_follow_ours_and_come_back(controllers: Software, tmp_path: Path) -> None:
    brokers: dict[int, Software] = {FIRST: "ours", SECOND: "apache", THIRD: "apache"}
    with with_brokers(tmp_path, controllers, brokers) as nodes:
        topic = ReplicatedTopic(nodes, "one", BROKERS).create()
        topic.is_led_by(FIRST)
        topic.write(100)
        topic.write(100, **{"compression.type": "zstd"})
        nodes[SECOND].kill()
        topic.write(100)
        nodes[SECOND].start()
        topic.in_sync()
        topic.write(100)
        topic.is_read_as_written()
        for broker in BROKERS:
            nodes[broker].stop()
        topic.has_the_same_bytes_everywhere()
