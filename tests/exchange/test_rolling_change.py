"""A cluster of Apache Kafka becomes ours node by node, under load, and Apache Kafka's again.

Each node keeps its folder and its server.properties; one of them at a time stops in good order and starts as
the other kind, once all replicas are in sync. Idempotent producers write with acks=all, a transactional one
commits and aborts, and groups of both kinds read, from the first node to the last.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from pykafka_broker.testing.apache.nodes import Nodes, Software
from tests.torture.clients import PATIENCE_S, QUIET, TOPIC, Load, create_ledger, read_at_the_end
from tests.torture.group_readers import GroupReaders
from tests.torture.harness import PARTITIONS, TOPIC_CONFIG, tell
from tests.torture.history import anomalies
from tests.torture.transfers import Transfers, create_transfers, read_transfers, transfer_anomalies

NODES = (1, 2, 3)
RECORDS_BETWEEN = 300
PROPERTIES = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
}


def await_in_sync(nodes: Nodes) -> None:
    """Return when each running node knows all replicas of the ledger in sync, and all nodes vote."""

    def is_whole() -> bool:
        for node in nodes:
            admin = AdminClient({"bootstrap.servers": node.address, **QUIET})
            found = admin.list_topics(TOPIC, timeout=PATIENCE_S).topics[TOPIC].partitions
            if any(len(partition.isrs) < len(NODES) for partition in found.values()):
                return False
        return True

    nodes.comes(is_whole, "the replicas do not come into sync")
    nodes.quorum(
        lambda found: all(voter.log_end_offset >= found.high_watermark > 0 for voter in found.current_voters)
    )


def change(nodes: Nodes, node_id: int, software: Software, load: Load) -> float:
    """Replace one node under load; the seconds that it was away."""
    await_in_sync(nodes)
    load.wait_for(RECORDS_BETWEEN)
    begun = time.monotonic()
    nodes[node_id].stop()
    nodes[node_id].software = software
    nodes[node_id].start()
    return time.monotonic() - begun


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_cluster_changes_its_software_node_by_node_and_back(
    kafka_jars: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = Nodes(
        tmp_path,
        dict.fromkeys(NODES, "apache"),
        dynamic=True,
        roles="broker,controller",
        properties=PROPERTIES,
    )
    with nodes:
        addresses = ",".join(node.address for node in nodes)
        create_ledger(addresses, PARTITIONS, 3, **TOPIC_CONFIG)
        create_transfers(addresses, 3)
        await_in_sync(nodes)
        with GroupReaders(addresses) as readers:
            with Load(addresses, PARTITIONS, in_flight=1) as load, Transfers(addresses, 1) as transfers:
                away = [change(nodes, node_id, "ours", load) for node_id in NODES]
                await_in_sync(nodes)
                load.wait_for(RECORDS_BETWEEN)
                away += [change(nodes, node_id, "apache", load) for node_id in NODES]
                await_in_sync(nodes)
                load.wait_for(RECORDS_BETWEEN)
            missed = readers.missed([place for place, _ in load.history.acknowledged], PATIENCE_S)
        read_at_the_end(addresses, load.history)
        found = read_transfers(addresses)
    outcomes = Counter(transfers.outcomes.values())
    seconds = ", ".join(f"{each:.1f}" for each in away)
    tell(capsys, f"away for {seconds} s, {load.acknowledged} acknowledged, transactions: {dict(outcomes)}")
    assert anomalies(load.history) == {}
    assert transfer_anomalies(transfers.outcomes, found) == {}
    assert missed == {}
    assert outcomes["committed"] > 0
