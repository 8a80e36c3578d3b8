"""A cluster of Apache Kafka becomes ours node by node, under load, and Apache Kafka's again.

Each node keeps its folder and its server.properties; one of them at a time stops in good order and starts as
the other kind, once all replicas are in sync. Idempotent producers write with acks=all, a transactional one
commits and aborts, and groups of both kinds read and commit, from the first node to the last.

Nodes are controllers and brokers in one; or each is one of the two, and a broker and a controller are killed
on both ways, instead of stopped in good order. A secured cluster also refuses a stranger everything at each
node: nodes show each other certificates, clients log in with SCRAM, and ACLs count.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pytest

from pykafka_broker.testing.apache.nodes import Nodes, Software
from tests.torture.clients import PATIENCE_S, QUIET, TOPIC, Load, create_ledger, read_at_the_end
from tests.torture.group_readers import GroupReaders
from tests.torture.harness import PARTITIONS, TOPIC_CONFIG, tell
from tests.torture.history import anomalies
from tests.torture.security import Security
from tests.torture.stranger import Stranger, wrong_answers
from tests.torture.transfers import Transfers, create_transfers, read_transfers, transfer_anomalies
from tests.torture.users import ANYBODY, Users

NODES = (1, 2, 3)
#: Where they are not the same nodes.
BROKERS = (11, 12, 13)
THERE_AND_BACK: tuple[Software, ...] = ("ours", "apache")
RECORDS_BETWEEN = 300
PROPERTIES = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
}


def await_in_sync(nodes: Nodes, users: Users) -> None:
    """Return when each running node knows all replicas of the ledger in sync, and all nodes vote."""

    def is_whole() -> bool:
        for node in nodes:
            if not node.is_broker:
                continue
            admin = users.admin("clerk", {"bootstrap.servers": node.address, **QUIET})
            found = admin.list_topics(TOPIC, timeout=PATIENCE_S).topics[TOPIC].partitions
            if any(len(partition.isrs) < len(NODES) for partition in found.values()):
                return False
        return True

    nodes.comes(is_whole, "the replicas do not come into sync")
    voters = sum(node.is_controller for node in nodes)
    nodes.quorum(
        lambda found: (
            len(found.current_voters) == voters
            and all(voter.log_end_offset >= found.high_watermark > 0 for voter in found.current_voters)
        )
    )


def change(
    nodes: Nodes,
    node_id: int,
    software: Software,
    load: Load,
    users: Users = ANYBODY,
    *,
    killed: bool = False,
) -> float:
    """Replace one node under load; the seconds that it was away."""
    await_in_sync(nodes, users)
    load.wait_for(RECORDS_BETWEEN)
    begun = time.monotonic()
    if killed:
        nodes[node_id].kill()
    else:
        nodes[node_id].stop()
    nodes[node_id].software = software
    nodes[node_id].start()
    return time.monotonic() - begun


def changes_nothing(
    nodes: Nodes,
    capsys: pytest.CaptureFixture[str],
    users: Users = ANYBODY,
    killed: Collection[int] = (),
) -> None:
    """Run clients while all nodes are replaced, there and back, and check what they have written and read."""
    addresses = ",".join(node.address for node in nodes if node.is_broker)
    create_ledger(addresses, PARTITIONS, 3, users, **TOPIC_CONFIG)
    create_transfers(addresses, 3, users)
    await_in_sync(nodes, users)
    with GroupReaders(addresses, users) as readers:
        with (
            Load(addresses, PARTITIONS, in_flight=1, users=users) as load,
            Transfers(addresses, 1, users) as transfers,
        ):
            away = [
                change(nodes, node.node_id, software, load, users, killed=node.node_id in killed)
                for software in THERE_AND_BACK
                for node in nodes
            ]
            await_in_sync(nodes, users)
            load.wait_for(RECORDS_BETWEEN)
        missed = readers.missed([place for place, _ in load.history.acknowledged], PATIENCE_S)
    forgotten = readers.forgotten()
    read_at_the_end(addresses, load.history, users=users)
    found = read_transfers(addresses, users=users)
    outcomes = Counter(transfers.outcomes.values())
    seconds = ", ".join(f"{each:.1f}" for each in away)
    tell(capsys, f"away for {seconds} s, {load.acknowledged} acknowledged, transactions: {dict(outcomes)}")
    assert anomalies(load.history) == {}
    assert transfer_anomalies(transfers.outcomes, found) == {}
    assert missed == {}
    assert forgotten == {}
    assert outcomes["committed"] > 0


def combined(folder: Path) -> Nodes:
    """Three nodes of Apache Kafka, brokers and controllers in one."""
    return Nodes(
        folder,
        dict.fromkeys(NODES, "apache"),
        dynamic=True,
        roles="broker,controller",
        properties=PROPERTIES,
    )


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("kafka_jars")
def test_a_cluster_changes_its_software_node_by_node_and_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with combined(tmp_path) as nodes:
        changes_nothing(nodes, capsys)


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("kafka_jars")
def test_a_secured_cluster_does_so_too_and_a_stranger_gets_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes, security = combined(tmp_path), Security(tmp_path, NODES)
    for node in nodes:
        security.secure(node)
    addresses = {node.node_id: node.address for node in nodes}
    with nodes:
        security.grant(nodes)
        with Stranger(security, addresses) as stranger:
            changes_nothing(nodes, capsys, security.users)
    assert wrong_answers(NODES, stranger.answers) == {}


@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("kafka_jars")
def test_separate_controllers_and_brokers_change_their_software_and_back_and_one_of_each_is_killed_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = Nodes(tmp_path, dict.fromkeys(NODES, "apache"), dynamic=True, properties=PROPERTIES)
    with nodes:
        for broker_id in BROKERS:
            nodes.add(broker_id, "apache", roles="broker")
        nodes.start(*BROKERS)
        changes_nothing(nodes, capsys, killed={NODES[1], BROKERS[1]})
