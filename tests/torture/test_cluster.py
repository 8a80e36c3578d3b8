"""Three nodes, processes of their own, under load, and faults at random from one seed.

Idempotent producers write with acks=all, a transactional one commits and aborts, groups of both kinds read.
Meanwhile nodes are killed, frozen, slowed down, restarted one after the other, lose their disk or its space,
and two of three are down at once. In the end no acknowledged record is lost, none is there twice, and all
stand in their order; each transaction is whole or not there; each group has read every record.

`make torture ROUNDS=N` has N/10 faults; TORTURE_SEED gives others.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from pykafka_broker.log.disk.checkpoints import decode_meta_properties
from pykafka_broker.testing.apache.nodes import Node, Nodes
from tests.torture.clients import PATIENCE_S, QUIET, TOPIC, Load, create_ledger, read_at_the_end
from tests.torture.files import Plan
from tests.torture.group_readers import GroupReaders
from tests.torture.harness import PARTITIONS, TOPIC_CONFIG, tell
from tests.torture.history import anomalies
from tests.torture.transfers import Transfers, create_transfers, read_transfers, transfer_anomalies

ROUNDS = max(1, int(os.environ.get("TORTURE_ROUNDS", "0")) // 10)
SEED = int(os.environ.get("TORTURE_SEED", "1"))
NODES = (1, 2, 3)
RECORDS_A_ROUND = 300
PROPERTIES = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
    "controller.quorum.auto.join.enable": "true",
    # Silence is found out early, so that a round is short.
    "replica.lag.time.max.ms": "3000",
}


class TorturedNode(Node):
    """A node whose disk is full while the file `full` is there."""

    @property
    def full(self) -> Path:
        return self.folder / "full"

    def command(self) -> list[str]:
        plan = json.dumps(Plan(space_bytes=20_000, space_file=str(self.full)).to_dict())
        start = ["start", "--config", str(self.properties_file)]
        return [sys.executable, "-m", "tests.torture.launcher", plan, *start]

    @property
    def has_died(self) -> bool:
        return self.process is not None and self.process.poll() is not None


def directory_of(node: Node) -> bytes | None:
    """The id of a node's directory."""
    return decode_meta_properties((node.data_dir / "meta.properties").read_bytes()).directory_id


class TorturedCluster:
    """Three combined nodes, and what is done to them."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.dice = dice
        self.nodes = Nodes(
            folder,
            dict.fromkeys(NODES, "ours"),
            dynamic=True,
            roles="broker,controller",
            properties=PROPERTIES,
            node=TorturedNode,
        )
        self.addresses = ",".join(node.address for node in self.nodes)
        self.history: list[str] = []

    @property
    def faults(self) -> dict[str, Callable[[Load], None]]:
        return {
            "kill the leader": lambda load: self.kill(load, self.leader()),
            "kill a follower": lambda load: self.kill(load, self.follower()),
            "kill the controller": lambda load: self.kill(load, self.nodes.leader()),
            "freeze the leader": lambda load: self.freeze(load, self.leader()),
            "freeze a follower": lambda load: self.freeze(load, self.follower()),
            "freeze the controller": lambda load: self.freeze(load, self.nodes.leader()),
            "restart all in turn": self.restart_in_turn,
            "two of three down": self.two_down,
            "empty a disk": self.empty_disk,
            "fill a disk": self.fill_disk,
            "slow a node down": self.slow_down,
        }

    # -- who is who ------------------------------------------------------------------------------------------

    def leader(self) -> int:
        leader: int = self._ledger()[0].leader
        return leader if leader in NODES else self.dice.choice(NODES)

    def follower(self) -> int:
        return self.dice.choice([node_id for node_id in NODES if node_id != self.leader()])

    def node(self, node_id: int) -> TorturedNode:
        node = self.nodes[node_id]
        assert isinstance(node, TorturedNode)
        return node

    def _ledger(self):
        admin = AdminClient({"bootstrap.servers": self.addresses, **QUIET})
        return admin.list_topics(TOPIC, timeout=PATIENCE_S).topics[TOPIC].partitions

    def heal(self) -> None:
        """Return when all nodes serve, all vote, and all replicas are in sync."""
        for node_id in NODES:
            node = self.node(node_id)
            node.full.unlink(missing_ok=True)
            if node.has_died:
                node.process = None
            if not node.is_running:
                node.start()

        def is_whole() -> bool:
            found = self._ledger()
            return len(found) == PARTITIONS and all(len(p.isrs) == len(NODES) for p in found.values())

        self.nodes.comes(is_whole, "the replicas do not come back into sync")
        # One whose disk was emptied votes under the id of its new directory, and not under the old one.
        directories = {(node_id, directory_of(self.nodes[node_id])) for node_id in NODES}
        self.nodes.quorum(
            lambda found: (
                {(voter.replica_id, voter.replica_directory_id) for voter in found.current_voters}
                == directories
            )
        )

    # -- faults ----------------------------------------------------------------------------------------------

    def kill(self, load: Load, node_id: int) -> None:
        self.nodes[node_id].kill()
        load.wait_for(RECORDS_A_ROUND)

    def freeze(self, load: Load, node_id: int) -> None:
        """Longer than its session, or shorter."""
        node = self.nodes[node_id]
        assert node.process is not None
        node.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(self.dice.choice((0.2, 1.0, 4.0)))
        finally:
            node.process.send_signal(signal.SIGCONT)
        load.wait_for(RECORDS_A_ROUND)

    def restart_in_turn(self, load: Load) -> None:
        for node in self.nodes:
            node.restart()
            self.heal()
        load.wait_for(RECORDS_A_ROUND)

    def two_down(self, load: Load) -> None:
        """Nothing is acknowledged then, and everything goes on afterwards."""
        for node_id in self.dice.sample(NODES, 2):
            self.nodes[node_id].kill()
        time.sleep(self.dice.uniform(0.2, 2.0))
        self.heal()
        load.wait_for(RECORDS_A_ROUND)

    def empty_disk(self, load: Load) -> None:
        """Its replicas begin anew, and get their records from their leaders."""
        node = self.node(self.dice.choice(NODES))
        node.kill()
        load.wait_for(RECORDS_A_ROUND)
        node.lose_disk()
        node.start()
        load.wait_for(RECORDS_A_ROUND)

    def fill_disk(self, load: Load) -> None:
        node = self.node(self.dice.choice(NODES))
        node.full.touch()
        try:
            load.wait_for(RECORDS_A_ROUND)
            time.sleep(1)
        finally:
            node.full.unlink()
        load.wait_for(RECORDS_A_ROUND)

    def slow_down(self, load: Load) -> None:
        """It runs for a tenth of the time."""
        process = self.nodes[self.dice.choice(NODES)].process
        assert process is not None
        for _ in range(20):
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.09)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.01)
        load.wait_for(RECORDS_A_ROUND)


@pytest.mark.skipif("TORTURE_ROUNDS" not in os.environ, reason="make torture runs it")
@pytest.mark.timeout(600 + 120 * ROUNDS)
def test_faults_of_nodes_cost_nothing_that_was_acknowledged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = random.Random(SEED)
    cluster = TorturedCluster(tmp_path, dice)
    done: Counter[str] = Counter()
    begun = time.monotonic()

    def say(what: str) -> None:
        """Into the output that pytest shows of a failure."""
        print(f"{time.monotonic() - begun:.1f} s: {what}")

    with cluster.nodes:
        create_ledger(cluster.addresses, PARTITIONS, 3, **TOPIC_CONFIG)
        create_transfers(cluster.addresses, 3)
        cluster.heal()
        readers = GroupReaders(cluster.addresses)
        with readers:
            with (
                Load(cluster.addresses, PARTITIONS, in_flight=1) as load,
                Transfers(cluster.addresses, SEED) as transfers,
            ):
                left: list[str] = []
                for _ in range(ROUNDS):
                    left = left or dice.sample(list(cluster.faults), len(cluster.faults))
                    name = left.pop()
                    say(name)
                    load.wait_for(RECORDS_A_ROUND)
                    cluster.faults[name](load)
                    cluster.heal()
                    done[name] += 1
                load.wait_for(RECORDS_A_ROUND)
            missed = readers.missed([place for place, _ in load.history.acknowledged], 60)
        read_at_the_end(cluster.addresses, load.history)
        found = read_transfers(cluster.addresses)
    outcomes = Counter(transfers.outcomes.values())
    tell(capsys, f"{dict(done)}, {load.acknowledged} acknowledged, transactions: {dict(outcomes)}")
    assert anomalies(load.history) == {}
    assert transfer_anomalies(transfers.outcomes, found) == {}
    assert missed == {}
    assert outcomes["committed"] > 0


def test_whole_transactions_are_right() -> None:
    found = {0: [1, 3], 1: [1, 3]}
    assert transfer_anomalies({1: "committed", 2: "aborted", 3: "unknown", 4: "unknown"}, found) == {}


def test_each_wrong_outcome_of_a_transaction_is_named() -> None:
    outcomes = {1: "committed", 2: "aborted", 3: "committed", 4: "committed"}
    found = {0: [2, 3, 3, 4, 9], 1: [2, 3]}
    assert transfer_anomalies(outcomes, found) == {  # type: ignore[arg-type]
        "lost": [1],
        "not aborted": [2],
        "twice": [3],
        "half": [4],
        "phantom": [9],
    }
