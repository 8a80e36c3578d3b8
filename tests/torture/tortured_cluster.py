"""Three combined nodes under load, to which something happens again and again; in the end all is counted.

Idempotent producers write with acks=all, a transactional one commits and aborts, groups of both kinds read,
and so do a query of Spark and an application of Kafka Streams. In the end no acknowledged record is lost,
none is there twice, and all stand in their order; each transaction is whole or not there; each group and the
query have read every record, and the application has copied each of them once. Each node is restarted once
more, and the coordinators still know what they had acknowledged to groups. Then the nodes are killed, and all
replicas of a partition are the same.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import PartitionMetadata

from pykafka_broker.log.disk.checkpoints import decode_meta_properties
from pykafka_broker.testing.apache.nodes import Node, Nodes
from tests.torture import replicas
from tests.torture.clients import PATIENCE_S, QUIET, TOPIC, Load, create_ledger, read_at_the_end
from tests.torture.files import Plan
from tests.torture.group_readers import GroupReaders
from tests.torture.harness import PARTITIONS, TOPIC_CONFIG, tell
from tests.torture.history import anomalies
from tests.torture.network import Network
from tests.torture.security import Security
from tests.torture.spark_query import SparkQuery
from tests.torture.streams_application import StreamsApplication
from tests.torture.transfers import BALANCES, Transfers, create_transfers, read_transfers, transfer_anomalies
from tests.torture.users import ANYBODY, Users

#: `make torture ROUNDS=N` has N/10 faults, each kind at least once; TORTURE_SEED gives another order.
ROUNDS = int(os.environ.get("TORTURE_ROUNDS", "100")) // 10
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
    "log.cleaner.backoff.ms": "1000",
    **replicas.PROPERTIES,
}

#: Of tests that run a tortured cluster.
MARKS = [
    pytest.mark.slow,
    pytest.mark.timeout(600 + 120 * max(ROUNDS, 15)),
    # PySpark leaves the sockets and pipes of its JVM to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

Fault = Callable[[Load], None]


class TorturedNode(Node):
    """A node whose disk is full while the file `full` is there."""

    #: What goes before its command, so that it runs elsewhere than here.
    inside: Sequence[str] = ()
    #: The bug that is planted into its process (`mutants.py`).
    mutant = ""

    @property
    def full(self) -> Path:
        return self.folder / "full"

    def command(self) -> list[str]:
        plan = json.dumps(Plan(space_bytes=20_000, space_file=str(self.full), mutant=self.mutant).to_dict())
        start = ["start", "--config", str(self.properties_file)]
        return [*self.inside, sys.executable, "-m", "tests.torture.launcher", plan, *start]

    @property
    def has_died(self) -> bool:
        return self.process is not None and self.process.poll() is not None


def directory_of(node: Node) -> bytes | None:
    """The id of a node's directory."""
    return decode_meta_properties((node.data_dir / "meta.properties").read_bytes()).directory_id


class TorturedCluster:
    """Three combined nodes, and who of them is who."""

    node_class: type[TorturedNode] = TorturedNode

    def __init__(
        self,
        folder: Path,
        dice: random.Random,
        network: Network | None = None,
        security: Security | None = None,
    ) -> None:
        """With a network, each node is on a host of it; with security, it asks who comes."""
        self.folder = folder
        self.security = security
        self.users: Users = security.users if security else ANYBODY
        self.dice = dice
        self.nodes = Nodes(
            folder,
            dict.fromkeys(NODES, "ours"),
            dynamic=True,
            roles="broker,controller",
            properties=PROPERTIES,
            node=self.node_class,
            hosts={node_id: network.address(node_id) for node_id in NODES} if network else None,
        )
        if network:
            for node_id in NODES:
                self.node(node_id).inside = network.inside(node_id)
        if security:
            for node in self.nodes:
                security.secure(node)
        self.addresses = ",".join(node.address for node in self.nodes)
        #: What is told in the end beside the faults.
        self.notes: Counter[str] = Counter()

    def node(self, node_id: int) -> TorturedNode:
        node = self.nodes[node_id]
        assert isinstance(node, TorturedNode)
        return node

    @property
    def pids(self) -> dict[int, int]:
        """The processes of the nodes that run."""
        return {node.node_id: node.pid for node in self.nodes if node.is_running}

    def leader(self) -> int:
        leader = self._ledger()[0].leader
        return leader if leader in NODES else self.dice.choice(NODES)

    def follower(self) -> int:
        return self.dice.choice([node_id for node_id in NODES if node_id != self.leader()])

    def _ledger(self) -> dict[int, PartitionMetadata]:
        admin = self.users.admin("clerk", {"bootstrap.servers": self.addresses, **QUIET})
        return admin.list_topics(TOPIC, timeout=PATIENCE_S).topics[TOPIC].partitions

    def heal(self) -> None:
        """Return when all nodes serve, all vote, and all replicas are in sync."""
        for node_id in NODES:
            self.node(node_id).full.unlink(missing_ok=True)

        def is_whole() -> bool:
            # One that could not write its metadata may take its time to end.
            self._start_the_dead()
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

    def restart_all(self) -> None:
        """Restart one node after the other: each coordinator moves, and loads its partitions."""
        for node in self.nodes:
            node.restart()
            self.heal()

    def _start_the_dead(self) -> None:
        for node_id in NODES:
            node = self.node(node_id)
            if node.has_died:
                node.process = None
            if not node.is_running:
                node.start()


def share_of(faults: Mapping[str, Fault], number: int) -> Mapping[str, Fault]:
    """The faults of one of two clusters, number 0 or 1: all, or half of them where there are few rounds."""
    if len(faults) <= 2 * ROUNDS:
        return faults
    return dict(list(faults.items())[number::2])


def torture(
    cluster: TorturedCluster,
    faults: Mapping[str, Fault],
    capsys: pytest.CaptureFixture[str],
    *,
    first: str | None = None,
) -> dict[str, object]:
    """Have so many faults happen as asked for, each as often as the others and at least once, and count what
    is there then.

    One of them may come `first`. What is wrong in the end is returned.
    """
    done: Counter[str] = Counter()
    users = cluster.users
    begun = time.monotonic()

    def say(what: str) -> None:
        """Into the output that pytest shows of a failure."""
        print(f"{time.monotonic() - begun:.1f} s: {what}")

    with cluster.nodes:
        if cluster.security:
            cluster.security.grant(cluster.nodes)
        create_ledger(cluster.addresses, PARTITIONS, 3, users, **TOPIC_CONFIG)
        create_transfers(cluster.addresses, 3, users)
        cluster.heal()
        readers = GroupReaders(cluster.addresses, users)
        with ExitStack() as stack:
            stack.enter_context(readers)
            query = stack.enter_context(SparkQuery(cluster.addresses, cluster.folder, users))
            # Both protocols of its groups are tortured.
            protocol = "classic" if cluster.security else "streams"
            application = StreamsApplication(cluster.addresses, cluster.folder, 3, users, protocol)
            streams = stack.enter_context(application)
            with (
                Load(cluster.addresses, PARTITIONS, in_flight=1, users=users) as load,
                Transfers(cluster.addresses, SEED, users) as transfers,
            ):
                left = cluster.dice.sample(list(faults), len(faults))
                if first:
                    left.remove(first)
                    left.append(first)
                for _ in range(max(ROUNDS, len(faults))):
                    left = left or cluster.dice.sample(list(faults), len(faults))
                    name = left.pop()
                    say(name)
                    load.wait_for(RECORDS_A_ROUND)
                    faults[name](load)
                    cluster.heal()
                    done[name] += 1
                load.wait_for(RECORDS_A_ROUND)
            read_at_the_end(cluster.addresses, load.history, users=users)
            acknowledged = load.history.acknowledged_places
            missed = readers.missed(acknowledged, 60)
            missed_by_spark = query.wrong(acknowledged, 60)
            miscopied = streams.wrong(load.history.acknowledged_values, 120)
        cluster.restart_all()
        forgotten = readers.forgotten()
        found = read_transfers(cluster.addresses, users=users)
        differing = replicas.replica_differences(cluster.nodes, compacted=[BALANCES])
    outcomes = Counter(transfers.outcomes.values())
    tell(
        capsys,
        f"{dict(done + cluster.notes)}, {load.acknowledged} acknowledged, transactions: {dict(outcomes)}, "
        f"fatal errors of their producers: {dict(transfers.fatal)}",
    )
    wrong = {
        "records": anomalies(load.history),
        "transactions": transfer_anomalies(transfers.outcomes, found),
        "not read by groups": missed,
        "forgotten by their coordinators": forgotten,
        "not read by Spark as it should": missed_by_spark,
        "not copied by Streams as it should": miscopied,
        "replicas": differing,
        "committed transactions": {} if outcomes["committed"] else "none",
    }
    wrong = {name: details for name, details in wrong.items() if details}
    for name, details in wrong.items():
        print(f"{name}: {details}")  # in full, where pytest shortens what it compares
    return wrong
