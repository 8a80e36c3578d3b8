"""Applications of Kafka Streams 4.3.1 over the streams protocol, with exactly_once_v2.

They are scaled, killed, outlive their broker, and are administered with kafka-streams-groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from pykafka_broker.testing.apache.tools import run_tool
from pykafka_broker.testing.processes import PykafkaBroker
from tests.support.counting_application import (
    APPLICATION,
    BROKER_SETTINGS,
    CHANGELOG,
    REPARTITION,
    SOURCE,
    SOURCE_PARTITIONS,
    Counted,
    Instance,
    described,
    is_settled,
)
from tests.support.waiting import until

SETTINGS = {
    **BROKER_SETTINGS,
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}
TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"


@pytest.fixture
def broker(kafka_jars: Path) -> Iterator[PykafkaBroker]:
    with PykafkaBroker(SETTINGS) as broker:
        yield broker


def topics(broker: PykafkaBroker) -> set[str]:
    return set(AdminClient({"bootstrap.servers": broker.address}).list_topics(timeout=30).topics)


@pytest.mark.timeout(600)
def test_an_application_is_scaled_and_killed_and_counts_every_record_once(
    broker: PykafkaBroker, tmp_path: Path
) -> None:
    counted = Counted(broker.address)
    counted.create_topics()
    with ExitStack() as stack:
        one = stack.enter_context(Instance(broker.address, tmp_path, "one"))
        one.runs()
        counted.write(1_000)
        until(lambda: is_settled(broker.address, "one"), "the first instance has all tasks")
        assert {REPARTITION, CHANGELOG} <= topics(broker)

        two = stack.enter_context(Instance(broker.address, tmp_path, "two"))
        counted.write(1_000)
        until(lambda: is_settled(broker.address, "one", "two"), "both instances have tasks")
        counted.check()

        counted.write(1_000)
        two.kill()
        counted.write(1_000)
        until(lambda: is_settled(broker.address, "one"), "the first instance has all tasks again")
        counted.check()

        two.start()
        counted.write(1_000)
        broker.kill()
        broker.start()
        counted.write(1_000)
        until(lambda: is_settled(broker.address, "one", "two"), "both instances have tasks again")
        counted.check()
        one.close()
        two.close()
    until(lambda: described(broker.address).group_state == "Empty", "the group is empty")


@pytest.mark.timeout(600)
def test_the_tool_for_streams_groups_lists_describes_resets_and_deletes(
    broker: PykafkaBroker, tmp_path: Path
) -> None:
    def tool(*arguments: str) -> str:
        return run_tool(TOOL, "--bootstrap-server", broker.address, *arguments)

    counted = Counted(broker.address)
    counted.create_topics()
    with Instance(broker.address, tmp_path, "one") as one:
        one.runs()
        counted.write(100)
        counted.check()
        until(lambda: is_settled(broker.address, "one"), "the instance has all tasks")

        assert tool("--list").split() == [APPLICATION]
        assert tool("--list", "--state").split() == ["GROUP", "STATE", APPLICATION, "Stable"]
        assert "Stable" in tool("--describe", "--group", APPLICATION, "--state", "--verbose")
        members = tool("--describe", "--group", APPLICATION, "--members", "--verbose")
        assert "0:[0" in members.replace(" ", "")
        offsets = tool("--describe", "--group", APPLICATION, "--offsets")
        assert SOURCE in offsets and REPARTITION in offsets
        one.close()
    until(lambda: described(broker.address).group_state == "Empty", "the group is empty")

    reset = tool(
        *("--reset-offsets", "--group", APPLICATION, "--to-earliest", "--input-topic", SOURCE),
        *("--delete-all-internal-topics", "--execute"),
    )
    assert reset.count(SOURCE) == SOURCE_PARTITIONS
    assert not {REPARTITION, CHANGELOG} & topics(broker)
    gone = tool("--delete-offsets", "--group", APPLICATION, "--input-topic", SOURCE)
    assert f"Request succeeded for deleting offsets from group {APPLICATION}." in gone
    tool("--delete", "--group", APPLICATION)
    assert tool("--list").split() == []
