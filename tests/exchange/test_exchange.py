"""A data folder goes from Apache Kafka 4.3.1 to our broker and back, and the other way round.

Both directions, after stops in order and after kill -9; the folder and the `server.properties` are the same,
byte for byte. Clients see the same topics, ids, configs, records, offsets, timestamps, leader epochs and
committed offsets, an idempotent producer goes on as if nothing had been, and neither broker has more to
complain of than on a folder of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_broker.client.blocking import Client
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.exchange.contents import TIMEOUT_S, Contents, contents
from tests.exchange.filling import (
    TOPICS,
    TRANSACTIONS,
    Continued,
    add_credentials,
    create_topics,
    fill,
    has_credentials,
    transact,
    transactional_producer,
)
from tests.exchange.node import Node, Software


@pytest.fixture
def node(kafka_jars: Path, tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path)
    yield node
    node.kill()


def assert_same(found: Contents, expected: Contents) -> None:
    """Topic by topic, for a readable difference."""
    assert found._replace(topics={}) == expected._replace(topics={})
    assert found.topics.keys() == expected.topics.keys()
    for name, topic in expected.topics.items():
        assert found.topics[name] == topic, name


def metadata_snapshots(data_dir: Path) -> set[str]:
    """Without the one that only names the first voter."""
    names = {path.name for path in (data_dir / "__cluster_metadata-0").glob("*.checkpoint")}
    return names - {"00000000000000000000-0000000000.checkpoint"}


def opened_without_recovery(node: Node) -> bool:
    """Whether the broker took the folder for one that was closed in order."""
    said = "\n".join(node.log_lines())
    if node.software == "ours":
        return "since clean shutdown file was found" in said and "Recovering" not in said
    return (
        "Skipping recovery of" in said
        and "No recovery checkpoint" not in said
        and "no clean shutdown" not in said
    )


@pytest.mark.timeout(900)
def test_a_folder_of_apache_kafka_opens_here_with_everything_in_it_and_goes_back(node: Node) -> None:
    with node.running("apache"):
        create_topics(node.address, *TOPICS, TRANSACTIONS)
        fill(node.address)
        transact(node.address)
        add_credentials(node.address)
        producer = Continued(node.address)
        producer.produce()
        written = contents(node.address)

    snapshots = metadata_snapshots(node.data_dir)
    assert snapshots, "the metadata is to be read from a snapshot too"

    with node.running("ours"):
        assert opened_without_recovery(node)
        assert_same(contents(node.address), written)
        assert has_credentials(node.address)
        producer.produce()
        fill(node.address)
        transact(node.address)
        create_topics(node.address, *(f"later-{number}" for number in range(25)))
        written = contents(node.address)
    assert node.complaints() == []
    assert metadata_snapshots(node.data_dir) - snapshots

    node.run("apache")
    assert opened_without_recovery(node)
    assert_same(contents(node.address), written)
    assert has_credentials(node.address), "kept through our snapshots"
    producer.produce()
    fill(node.address)
    written = contents(node.address)
    node.kill()
    assert node.complaints() == []

    node.run("ours")
    assert_same(contents(node.address), written)
    producer.produce()
    written = contents(node.address)
    node.kill()

    with node.running("apache"):
        assert_same(contents(node.address), written)
        producer.produce()
        records = contents(node.address).topics[Continued.TOPIC].partitions[0].records
    assert sorted(producer.acknowledged) == producer.acknowledged
    assert [o for o, _ in producer.acknowledged] == [r.offset for r in records]
    assert [v for _, v in producer.acknowledged] == [r.value for r in records]


@pytest.mark.acknowledged
@pytest.mark.gate("the way back to Apache Kafka is open")
@pytest.mark.timeout(900)
def test_a_folder_of_ours_opens_in_apache_kafka_with_everything_in_it_and_comes_back(node: Node) -> None:
    with node.running("ours"):
        create_topics(node.address, *TOPICS, TRANSACTIONS)
        fill(node.address)
        transact(node.address)
        producer = Continued(node.address)
        producer.produce()
        written = contents(node.address)
    assert node.complaints() == []

    with node.running("apache"):
        assert opened_without_recovery(node)
        assert_same(contents(node.address), written)
        producer.produce()
        fill(node.address)
        transact(node.address)
        written = contents(node.address)
    assert node.complaints() == []

    with node.running("ours"):
        assert opened_without_recovery(node)
        assert_same(contents(node.address), written)
        producer.produce()
    assert node.complaints() == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("formatted_by", "release"),
    [("apache", None), ("ours", None), ("apache", "3.9")],
)
def test_a_quorum_that_stands_in_the_configuration_is_exchanged_too(
    node: Node, formatted_by: Software, release: str | None
) -> None:
    node.use_static_voters(release)
    other: Software = "ours" if formatted_by == "apache" else "apache"
    with node.running(formatted_by):
        create_topics(node.address, Continued.TOPIC)
        producer = Continued(node.address)
        producer.produce()
        written = contents(node.address)
    election = (node.data_dir / "__cluster_metadata-0" / "quorum-state").read_text()
    for software in (other, formatted_by):
        with node.running(software):
            assert opened_without_recovery(node)
            assert_same(contents(node.address), written)
            producer.produce()
            written = contents(node.address)
        assert node.complaints() == []
        now = (node.data_dir / "__cluster_metadata-0" / "quorum-state").read_text()
        assert json.loads(now) == {**json.loads(election), "leaderEpoch": json.loads(now)["leaderEpoch"]}


#: The levels that a cluster of an older release can be brought to, in two steps.
RAISED = {"metadata.version": 30, "group.version": 1, "transaction.version": 2}
ELR = {"eligible.leader.replicas.version": 1}


def raise_levels(address: str, levels: dict[str, int]) -> None:
    updates = [FeatureUpdateKey(feature=name, max_version_level=level) for name, level in levels.items()]
    with Client(address) as client:
        answer = client.send(UpdateFeaturesRequest(feature_updates=updates))
    assert (answer.error_code, answer.error_message) == (0, None)


def finalized(address: str) -> dict[str, int]:
    with Client(address) as client:
        answer = client.send(ApiVersionsRequest(client_software_name="test", client_software_version="1"))
    return {feature.name: feature.max_version_level for feature in answer.finalized_features}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("release", ["3.3", "3.6", "3.9"])
def test_the_levels_of_an_older_cluster_are_raised_here_and_hold_in_apache_kafka(
    node: Node, release: str
) -> None:
    node.use_static_voters(release)
    with node.running("apache"):
        create_topics(node.address, Continued.TOPIC)
        producer = Continued(node.address)
        producer.produce()
    with node.running("ours"):
        raise_levels(node.address, RAISED)
        create_topics(node.address, "new")
        raise_levels(node.address, ELR)
        create_topics(node.address, "newer")
        producer.produce()
        written = contents(node.address)
    assert node.complaints() == []
    softwares: tuple[Software, ...] = ("ours", "apache")
    for software in softwares:
        with node.running(software):
            assert finalized(node.address) == {**RAISED, **ELR}
            assert_same(contents(node.address), written)
            producer.produce()
            written = contents(node.address)
        assert node.complaints() == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("begun_by", "kills"),
    [
        pytest.param("apache", False, id="apache-stopped"),
        pytest.param("ours", True, id="ours-killed"),
        pytest.param("apache", True, id="apache-killed"),
        pytest.param("ours", False, id="ours-stopped"),
    ],
)
def test_a_transaction_that_one_broker_begins_is_ended_by_the_other(
    node: Node, begun_by: Software, kills: bool
) -> None:
    other: Software = "ours" if begun_by == "apache" else "apache"
    node.run(begun_by)
    create_topics(node.address, TRANSACTIONS)
    teller = transactional_producer(node.address, "teller")
    for number, software in enumerate((other, begun_by, other)):
        teller.begin_transaction()
        teller.produce(TRANSACTIONS, b"%d" % number)
        assert teller.flush(TIMEOUT_S) == 0
        node.kill() if kills else node.stop()
        node.run(software)
        if number == 1:
            teller.abort_transaction(TIMEOUT_S)
        else:
            teller.commit_transaction(TIMEOUT_S)

    records = contents(node.address).topics[TRANSACTIONS].partitions[0].records
    assert [record.value for record in records] == [b"0", b"2"]
    node.kill()
