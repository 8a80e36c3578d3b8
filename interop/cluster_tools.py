"""Apache Kafka's command-line tools against several nodes, of combined and of separate roles, asked through
brokers (--bootstrap-server) and through controllers (--bootstrap-controller).

Each layout is a cluster of three voters whose voters stand in the log, and of a broker that is no voter. They
are ours, Apache Kafka's, or some of each. A check is a function of a cluster; the lane runs all of them on
each layout, in this order.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer

from interop.checks import tried
from interop.clients import connect
from interop.clients.client import Record
from interop.world import MAKER
from pykafka_broker.client import producer as wire
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.producer_state import TransactionLost
from pykafka_broker.log.disk.checkpoints import decode_meta_properties
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.testing.apache.nodes import Node, Nodes, Roles, Software
from pykafka_broker.testing.apache.tools import SHORT_LIVED, command, run_tool

TOOLS = "org.apache.kafka.tools"
SERVER, CONTROLLER = "--bootstrap-server", "--bootstrap-controller"
BOTH = (SERVER, CONTROLLER)

LAYOUTS: Mapping[str, Roles] = {"combined": "broker,controller", "separate": "controller"}
#: By the value of `--broker`: the voters.
VOTERS: Mapping[str, Mapping[int, Software]] = {
    "ours": {1: "ours", 2: "ours", 3: "ours"},
    "apache": {1: "apache", 2: "apache", 3: "apache"},
    "mixed": {1: "apache", 2: "ours", 3: "ours"},
}
#: Besides the voters: a broker that stays, and those that come and go.
STAYS, GOES = 11, (12, 13)
#: Which voter's software each of these brokers has.
LIKE = {STAYS: 2, 12: 1, 13: 3}
#: The id of the controller that is added and removed.
LATE = 4
PATIENCE_S = 60.0
PROPERTIES = {
    # Leaders are elected by the tool alone.
    "auto.leader.rebalance.enable": "false",
    # A throttled replica has fetched once, and its next fetch is eleven of these later.
    "replication.quota.window.size.seconds": "60",
}
CONFIGS, REASSIGNMENTS = "kafka.admin.ConfigCommand", "reassign.ReassignPartitionsCommand"
#: Bytes a second that let a replica fetch once, and that do not limit it.
SLOW, FAST = "1", "100000000"
#: Older than any transaction may be, which is 15 minutes.
LONG_AGO_MS = 3_600_000


@dataclass(frozen=True)
class Cluster:
    """Nodes that run, and a folder for the files of tools."""

    nodes: Nodes
    folder: Path

    @property
    def brokers(self) -> list[int]:
        """The ids of the brokers that run."""
        return [node.node_id for node in self.nodes if node.is_broker and node.is_running]

    @property
    def voters(self) -> set[int]:
        """The ids of the voters, as their leader says."""
        return {voter.replica_id for voter in self.nodes.quorum().current_voters}

    def bootstrap(self, by: str) -> tuple[str, str]:
        """The option that names all nodes that run, as brokers or as controllers."""
        if by == SERVER:
            addresses = [node.address for node in self.nodes if node.is_broker and node.is_running]
        else:
            addresses = [
                node.controller_address for node in self.nodes if node.is_controller and node.is_running
            ]
        return by, ",".join(addresses)

    def tool(self, name: str, *arguments: str, by: str = SERVER, expect_failure: bool = False) -> str:
        """What a tool prints; one whose command comes first (`cluster-id`) gets it first."""
        main_class = name if name.startswith("kafka.") else f"{TOOLS}.{name}"
        first = arguments[:1] if name == "ClusterTool" else ()
        return run_tool(
            main_class,
            *first,
            *self.bootstrap(by),
            *arguments[len(first) :],
            expect_failure=expect_failure,
        )

    def file(self, name: str, content: object) -> str:
        """The path of a JSON file."""
        path = self.folder / name
        path.write_text(json.dumps(content))
        return str(path)


def topics_are_created_and_described_over_all_brokers(cluster: Cluster) -> None:
    create = ("--create", "--topic", "spread", "--partitions", "8", "--replication-factor", "1")
    cluster.tool("TopicCommand", *create)
    described = cluster.tool("TopicCommand", "--describe", "--topic", "spread")
    leaders = {int(leader) for leader in re.findall(r"Leader: (\d+)", described)}
    assert leaders == set(cluster.brokers), described
    assert cluster.tool("TopicCommand", "--describe", "--unavailable-partitions") == ""
    cluster.tool("TopicCommand", "--delete", "--topic", "spread")


def the_quorum_is_described(cluster: Cluster) -> None:
    for by in BOTH:
        leader = cluster.nodes.leader()
        status = cluster.tool("MetadataQuorumCommand", "describe", "--status", by=by)
        told = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        assert int(told["LeaderId"]) == leader, status
        assert {voter["id"] for voter in json.loads(told["CurrentVoters"])} == {1, 2, 3}, status
        assert {observer["id"] for observer in json.loads(told["CurrentObservers"])} == {STAYS}, status
        replication = cluster.tool("MetadataQuorumCommand", "describe", "--replication", by=by)
        rows = [line.split() for line in replication.splitlines()[1:] if line]
        kinds = {int(row[0]): row[-1] for row in rows}
        followers = dict.fromkeys({1, 2, 3} - {leader}, "Follower")
        assert kinds == {leader: "Leader", **followers, STAYS: "Observer"}, replication


def the_nodes_are_listed(cluster: Cluster) -> None:
    def listed(by: str) -> list[tuple[str, str]]:
        printed = cluster.tool("ClusterTool", "list-endpoints", by=by)
        rows = [line.split() for line in printed.splitlines()[1:] if line]
        return sorted((f"{row[1]}:{row[2]}", row[-1]) for row in rows)

    nodes = cluster.nodes
    controllers = [(node.controller_address, "controller") for node in nodes if node.is_controller]
    assert listed(CONTROLLER) == sorted(controllers)
    assert listed(SERVER) == sorted((node.address, "broker") for node in nodes if node.is_broker)
    ids = {cluster.tool("ClusterTool", "cluster-id", by=by) for by in BOTH}
    assert len(ids) == 1, ids


def features_are_described_lowered_and_raised(cluster: Cluster) -> None:
    feature = "transaction.version"

    def level(by: str) -> int:
        described = cluster.tool("FeatureCommand", "describe", by=by)
        found = re.search(rf"{feature}\s+Supported.*FinalizedVersionLevel: (\d)\s", described)
        assert found, described
        return int(found[1])

    for lowering, raising in (BOTH, BOTH[::-1]):
        lowered = cluster.tool("FeatureCommand", "downgrade", "--feature", f"{feature}=1", by=lowering)
        assert lowered.strip() == f"{feature} was downgraded to 1."
        assert level(raising) == 1
        raised = cluster.tool("FeatureCommand", "upgrade", "--feature", f"{feature}=2", by=raising)
        assert raised.strip() == f"{feature} was upgraded to 2."
        assert level(lowering) == 2
        refused = cluster.tool(
            "FeatureCommand", "upgrade", "--feature", f"{feature}=9", by=raising, expect_failure=True
        )
        assert f"Could not upgrade {feature} to 9." in refused, refused


def brokers_are_configured(cluster: Cluster) -> None:
    """Through both, and told by the brokers: a controller tells its own values."""
    key, command = "log.cleaner.backoff.ms", "kafka.admin.ConfigCommand"
    for by in BOTH:
        for whom in (("--entity-default",), ("--entity-name", str(STAYS))):
            of = ("--entity-type", "brokers", *whom)
            cluster.tool(command, *of, "--alter", "--add-config", f"{key}=12345", by=by)
            assert f"{key}=12345 " in cluster.tool(command, *of, "--describe"), (by, whom)
            cluster.tool(command, *of, "--alter", "--delete-config", key, by=by)
            assert f"{key}=12345 " not in cluster.tool(command, *of, "--describe"), (by, whom)
    of = ("--entity-type", "brokers", "--entity-name", str(STAYS))
    refused = ("--alter", "--add-config", "log.cleaner.threads=none")
    cluster.tool(command, *of, *refused, expect_failure=True)


class Shown(NamedTuple):
    """A partition as `kafka-topics --describe` shows it."""

    number: int
    #: None without a leader.
    leader: int | None
    replicas: list[int]
    in_sync: set[int]


def shown(cluster: Cluster, topic: str, *options: str) -> list[Shown]:
    """The partitions that the tool shows with these options."""
    printed = cluster.tool("TopicCommand", "--describe", *options, "--topic", topic)
    rows = re.findall(r"Partition: (\d+)\s+Leader: (\S+)\s+Replicas: (\S+)\s+Isr: ([\d,]*)", printed)
    return [
        Shown(
            int(index),
            None if leader == "none" else int(leader),
            [int(node_id) for node_id in replicas.split(",")],
            {int(node_id) for node_id in in_sync.split(",") if node_id},
        )
        for index, leader, replicas, in_sync in rows
    ]


def await_shown(
    cluster: Cluster, topic: str, leaders: Sequence[int | None], in_sync: set[int] | None = None
) -> None:
    """Wait until the partitions of a topic have these leaders, and each of them these replicas in sync."""

    def is_so() -> bool:
        partitions = shown(cluster, topic)
        return [partition.leader for partition in partitions] == leaders and (
            in_sync is None or all(partition.in_sync == in_sync for partition in partitions)
        )

    cluster.nodes.comes(is_so, lambda: f"not {leaders} and {in_sync}, but {shown(cluster, topic)}")


def preferred_leaders_are_elected(cluster: Cluster) -> None:
    """After a restart of the leader, and after another replica became the preferred one. This tool knows no
    --bootstrap-controller.
    """
    with replicated(cluster, "elected", 3) as (first, second, stays):
        ids = [first.node_id, second.node_id, stays.node_id]
        write(cluster, "elected")
        written = records(cluster, "elected")
        first.stop()
        await_shown(cluster, "elected", [ids[1], STAYS], {*ids[1:]})
        first.start()
        await_shown(cluster, "elected", [ids[1], STAYS], {*ids})
        elected = elect(cluster, "preferred", "--path-to-json-file", elections(cluster, "elected", 0, 1))
        assert elected.splitlines() == [
            "Successfully completed leader election (PREFERRED) for partitions elected-0",
            "Valid replica already elected for partitions elected-1",
        ]
        await_shown(cluster, "elected", [ids[0], STAYS], {*ids})
        order = plan("elected", {0: [*ids[1:], ids[0]]})
        reassign(cluster, "--execute", order)
        completed(cluster, order)
        await_shown(cluster, "elected", [ids[0], STAYS], {*ids})
        elected = elect(cluster, "preferred", "--all-topic-partitions")
        assert elected == "Successfully completed leader election (PREFERRED) for partitions elected-0"
        await_shown(cluster, "elected", [ids[1], STAYS], {*ids})
        elected = elect(cluster, "preferred", "--topic", "elected", "--partition", "0")
        assert elected == "Valid replica already elected for partitions elected-0"
        assert elect(cluster, "preferred", "--all-topic-partitions") == ""
        assert records(cluster, "elected") == written


def leaders_out_of_sync_are_elected(cluster: Cluster) -> None:
    """Once the only broker is gone that has the last records: the other replica lacks them."""
    with replicated(cluster, "unclean") as (other, stays):
        ids = {other.node_id, STAYS}
        write(cluster, "unclean")
        kept = records(cluster, "unclean")
        other.kill()
        await_shown(cluster, "unclean", [STAYS, STAYS], {STAYS})
        write(cluster, "unclean")
        assert len(records(cluster, "unclean")) == 2 * len(kept)
        stays.kill()
        other.start()
        await_shown(cluster, "unclean", [None, None])
        unavailable = shown(cluster, "unclean", "--unavailable-partitions")
        assert [partition.leader for partition in unavailable] == [None, None]
        elected = elect(cluster, "unclean", "--topic", "unclean", "--partition", "1")
        assert elected == "Successfully completed leader election (UNCLEAN) for partitions unclean-1"
        wanted = elections(cluster, "unclean", 0, 7)
        elected = elect(cluster, "unclean", "--path-to-json-file", wanted, expect_failure=True)
        assert "Successfully completed leader election (UNCLEAN) for partitions unclean-0" in elected, elected
        assert "Error completing leader election (UNCLEAN) for partition: unclean-7: " in elected, elected
        await_shown(cluster, "unclean", [other.node_id] * 2, {other.node_id})
        assert records(cluster, "unclean") == kept
        stays.start()
        await_shown(cluster, "unclean", [other.node_id] * 2, ids)
        elect(cluster, "preferred", "--topic", "unclean", "--partition", "1")
        await_shown(cluster, "unclean", [other.node_id, STAYS], ids)
        assert records(cluster, "unclean") == kept


def elections(cluster: Cluster, topic: str, *partitions: int) -> str:
    """The file that asks for elections of these partitions."""
    wanted = [{"topic": topic, "partition": index} for index in partitions]
    return cluster.file("elections.json", {"partitions": wanted})


def elect(cluster: Cluster, kind: str, *of: str, expect_failure: bool = False) -> str:
    elected = cluster.tool(
        "LeaderElectionCommand", "--election-type", kind, *of, expect_failure=expect_failure
    )
    return elected.strip()


def partitions_are_reassigned(cluster: Cluster) -> None:
    """With records, throttled: cancelled, then carried out, and back. Controllers are asked to list and to
    cancel, which is all that they are asked.
    """
    with brokers(cluster, 3) as nodes, created(cluster, "moved", nodes[:2]):
        first, second, stays = (node.node_id for node in nodes)
        write(cluster, "moved", value_bytes=60_000)
        here, written, sizes = {first, second}, records(cluster, "moved"), replicas_of(cluster, "moved")
        away = plan("moved", {0: [stays, second], 1: [stays, first]})
        for by in BOTH:
            started = reassign(cluster, "--execute", away, "--throttle", SLOW)
            assert "Successfully started partition reassignments for moved-0,moved-1" in started, started
            listed = cluster.tool(REASSIGNMENTS, "--list", by=by)
            for index, removed in ((0, first), (1, second)):
                row = rf"moved-{index}: replicas: \S+ adding: {stays}\. removing: {removed}\."
                assert re.search(row, listed), listed
            assert throttles(cluster) == THROTTLES
            verified = reassign(cluster, "--verify", away)
            assert verified.count("is still in progress.") == 2, verified
            assert "Clearing" not in verified, verified
            if by == SERVER:
                cancelled = reassign(cluster, "--cancel", away, by=CONTROLLER)
                assert "Successfully cancelled partition reassignments for: moved-0,moved-1" in cancelled, (
                    cancelled
                )
                cluster.nodes.comes(
                    lambda: [{*partition.replicas} for partition in shown(cluster, "moved")] == [here] * 2,
                    "a replica is left",
                )
        reassign(cluster, "--execute", away, "--additional", "--throttle", FAST)
        assert throttles(cluster) == THROTTLES
        verified = completed(cluster, away)
        for index in (0, 1):
            assert f"Reassignment of partition moved-{index} is completed." in verified, verified
        assert re.search(rf"Clearing broker-level throttles on brokers .*\b{stays}\b", verified), verified
        assert "Clearing topic-level throttles on topic moved" in verified, verified
        assert throttles(cluster) == set()
        none = cluster.tool(REASSIGNMENTS, "--list", by=CONTROLLER)
        assert none.strip() == "No partition reassignments found.", none
        # The replica that leads is the one that was copied.
        await_shown(cluster, "moved", [stays, stays])
        assert records(cluster, "moved") == written
        back = plan("moved", {0: [first, second], 1: [second, first]})
        reassign(cluster, "--execute", back)
        completed(cluster, back)
        await_shown(cluster, "moved", [first, second], here)
        assert records(cluster, "moved") == written
        cluster.nodes.comes(lambda: replicas_of(cluster, "moved") == sizes, "a folder is left, or differs")


THROTTLES = {
    f"{side}.replication.throttled.{what}" for side in ("leader", "follower") for what in ("rate", "replicas")
}


def throttles(cluster: Cluster) -> set[str]:
    """The throttles that the broker that stays and the topic have."""
    of = (("brokers", str(STAYS)), ("topics", "moved"))
    described = [
        cluster.tool(CONFIGS, "--describe", "--entity-type", kind, "--entity-name", name) for kind, name in of
    ]
    return set(re.findall(r"\w+\.replication\.throttled\.\w+", "".join(described)))


def plan(topic: str, replicas: Mapping[int, list[int]]) -> object:
    """A reassignment of these partitions."""
    partitions = [
        {"topic": topic, "partition": index, "replicas": ids, "log_dirs": ["any"] * len(ids)}
        for index, ids in replicas.items()
    ]
    return {"version": 1, "partitions": partitions}


def reassign(cluster: Cluster, action: str, wanted: object, *options: str, by: str = SERVER) -> str:
    file = cluster.file("reassignment.json", wanted)
    return cluster.tool(REASSIGNMENTS, action, "--reassignment-json-file", file, *options, by=by)


def completed(cluster: Cluster, wanted: object) -> str:
    """What the tool says of a reassignment that is over, which removes its throttles."""
    verified = ""

    def is_over() -> bool:
        nonlocal verified
        verified = reassign(cluster, "--verify", wanted)
        return "is still in progress." not in verified

    cluster.nodes.comes(is_over, lambda: verified)
    return verified


def come(cluster: Cluster, node_id: int = GOES[0]) -> Node:
    """A broker that does not stay."""
    nodes = cluster.nodes
    if node_id not in {node.node_id for node in nodes}:
        nodes.add(node_id, nodes[LIKE[node_id]].software, roles="broker")
    nodes[node_id].start()
    return nodes[node_id]


def leave(cluster: Cluster, node_id: int = GOES[0]) -> None:
    """Have a broker that does not stay forgotten."""
    cluster.nodes[node_id].kill()
    cluster.tool("ClusterTool", "unregister", "--id", str(node_id))


@contextlib.contextmanager
def brokers(cluster: Cluster, count: int) -> Iterator[list[Node]]:
    """So many brokers, the last of which is the one that stays. Those that are missing come, and leave."""
    there = [node_id for node_id in cluster.brokers if node_id != STAYS][: count - 1]
    coming = GOES[: count - 1 - len(there)]
    for node_id in coming:
        come(cluster, node_id)
    yield [cluster.nodes[node_id] for node_id in (*there, *coming, STAYS)]
    for node_id in coming:
        leave(cluster, node_id)


@contextlib.contextmanager
def created(cluster: Cluster, topic: str, nodes: Sequence[Node], **config: str) -> Iterator[None]:
    """A topic of two partitions on these brokers: the first leads partition 0, the last partition 1."""
    ids = [str(node.node_id) for node in nodes]
    assignment = ",".join(":".join(order) for order in (ids, ids[::-1]))
    settings = [part for item in config.items() for part in ("--config", "=".join(item).replace("_", "."))]
    cluster.tool("TopicCommand", "--create", "--topic", topic, "--replica-assignment", assignment, *settings)
    yield
    cluster.tool("TopicCommand", "--delete", "--topic", topic)


@contextlib.contextmanager
def replicated(cluster: Cluster, topic: str, count: int = 2, **config: str) -> Iterator[list[Node]]:
    """A topic, as `created` makes it, on so many brokers, which are given."""
    with brokers(cluster, count) as nodes, created(cluster, topic, nodes, **config):
        yield nodes


def write(cluster: Cluster, topic: str, transactional_id: str = "", *, value_bytes: int = 0) -> Producer:
    """A hundred records of `value_bytes` or more; the producer, in a transaction if it has an id for one."""
    settings = {"transactional.id": transactional_id} if transactional_id else {"acks": "all"}
    producer = Producer({"bootstrap.servers": cluster.bootstrap(SERVER)[1], **settings})
    if transactional_id:
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
    for number in range(100):
        producer.produce(topic, f"record {number}".ljust(value_bytes), partition=number % 2)
    assert producer.flush(PATIENCE_S) == 0
    return producer


def records(cluster: Cluster, topic: str) -> list[Record]:
    """The committed records of both partitions."""
    with closing(connect(MAKER, cluster.bootstrap(SERVER)[1])) as client:
        return client.read(topic, (0, 1), committed=True)


class Replica(NamedTuple):
    """One replica as `kafka-log-dirs` describes it."""

    broker: int
    partition: str
    size_bytes: int
    offset_lag: int


def replicas_of(cluster: Cluster, topic: str) -> list[Replica]:
    """The replicas of a topic that the log folders of all brokers have."""
    described = cluster.tool("LogDirsCommand", "--describe", "--topic-list", topic)
    told = json.loads(described.splitlines()[-1])
    assert {broker["broker"] for broker in told["brokers"]} == set(cluster.brokers), described
    return sorted(
        Replica(broker["broker"], replica["partition"], replica["size"], replica["offsetLag"])
        for broker in told["brokers"]
        for folder in broker["logDirs"]
        for replica in folder["partitions"]
    )


def replicas_are_the_same(cluster: Cluster) -> None:
    with replicated(cluster, "verified") as nodes:
        write(cluster, "verified")
        replicas = replicas_of(cluster, "verified")
        sizes = {replica.partition: replica.size_bytes for replica in replicas}
        assert replicas == sorted(
            Replica(node.node_id, partition, sizes[partition], 0)
            for node in nodes
            for partition in ("verified-0", "verified-1")
        )
        assert min(sizes.values()) > 0, sizes
        offsets = cluster.tool("GetOffsetShell", "--topic", "verified")
        assert offsets.split() == ["verified:0:50", "verified:1:50"], offsets
        lags = re.findall(
            r"max lag is (\d+) for partition \S+ at offset (\d+) among 2", verification(cluster)
        )
        assert ("0", "50") in lags, lags


def verification(cluster: Cluster) -> str:
    """What the tool that compares replicas prints in some seconds: it ends by a signal alone."""
    tool = command(
        f"{TOOLS}.ReplicaVerificationTool",
        *("--broker-list", cluster.bootstrap(SERVER)[1], "--topics-include", "verified"),
        *("--time", "-2", "--report-interval-ms", "500"),
        jvm_options=SHORT_LIVED,
    )
    try:
        done = subprocess.run(tool, capture_output=True, text=True, timeout=8, check=False)
    except subprocess.TimeoutExpired as expired:
        return (expired.stdout or b"").decode()
    raise AssertionError(f"it ended: {done.stdout}{done.stderr}")


def replicas_that_fail_are_shown(cluster: Cluster) -> None:
    """While a broker is away that has one of three replicas."""

    def by_option() -> dict[str, list[Shown]]:
        return {option: shown(cluster, "failing", f"--{option}-partitions") for option in ALL_WELL}

    with replicated(cluster, "failing", 3, min_insync_replicas="2") as (first, second, stays):
        ids = [first.node_id, second.node_id, stays.node_id]
        assert by_option() == ALL_WELL
        first.kill()
        await_shown(cluster, "failing", [ids[1], STAYS], {*ids[1:]})
        short = [Shown(0, ids[1], ids, {*ids[1:]}), Shown(1, STAYS, ids[::-1], {*ids[1:]})]
        assert by_option() == {**ALL_WELL, "under-replicated": short, "at-min-isr": short}
        raised = ("--alter", "--add-config", "min.insync.replicas=3")
        cluster.tool(CONFIGS, "--entity-type", "topics", "--entity-name", "failing", *raised)
        assert by_option() == {**ALL_WELL, "under-replicated": short, "under-min-isr": short}
        first.start()
        await_shown(cluster, "failing", [ids[1], STAYS], {*ids})
        whole = [partition._replace(in_sync={*ids}) for partition in short]
        assert by_option() == {**ALL_WELL, "at-min-isr": whole}


#: What `kafka-topics` shows of a topic all of whose replicas are in sync, of which it needs fewer.
ALL_WELL: Mapping[str, list[Shown]] = {
    option: [] for option in ("under-replicated", "at-min-isr", "under-min-isr", "unavailable")
}


def transactions_are_found_and_aborted(cluster: Cluster) -> None:
    """Whichever broker coordinates, and whichever leads."""
    with replicated(cluster, "transacted"):
        producer = write(cluster, "transacted", "of-the-tools")
        listed = cluster.tool("TransactionsCommand", "list")
        assert re.search(r"^of-the-tools\s+\d+\s+\d+\s+Ongoing", listed, re.M), listed
        described = cluster.tool("TransactionsCommand", "describe", "--transactional-id", "of-the-tools")
        assert "transacted-0,transacted-1" in described or "transacted-1,transacted-0" in described, described
        of = ("--topic", "transacted", "--partition", "1")
        active = cluster.tool("TransactionsCommand", "describe-producers", *of)
        row = active.splitlines()[-1].split()
        assert row[3] == "49" or row[2] == "49", active
        cluster.tool("TransactionsCommand", "abort", *of, "--start-offset", "0")
        active = cluster.tool("TransactionsCommand", "describe-producers", *of)
        assert active.splitlines()[-1].split()[-1] == "None", active
        hanging = cluster.tool("TransactionsCommand", "find-hanging", "--topic", "transacted")
        assert len(hanging.splitlines()) == 1, hanging
        del producer
        forgotten = ("forceTerminateTransaction", "--transactionalId", "of-the-tools")
        cluster.tool("TransactionsCommand", *forgotten)
        listed = cluster.tool("TransactionsCommand", "list")
        assert re.search(r"^of-the-tools\s+\d+\s+\d+\s+Empty", listed, re.M), listed


def hanging_transactions_are_found_and_aborted(cluster: Cluster) -> None:
    """Their coordinator does not know of the partitions, which it is not told and then not asked for."""
    partitions = [("hanging", 0), ("hanging", 1)]
    began_ms = int(time.time() * 1000) - LONG_AGO_MS
    batch = build_batch([(began_ms, None, b"hanging", ())])

    def found(*where: str) -> list[list[str]]:
        printed = cluster.tool("TransactionsCommand", "find-hanging", *where)
        return sorted(row.split() for row in printed.splitlines()[1:])

    with (
        replicated(cluster, "hanging") as nodes,
        Client(cluster.bootstrap(SERVER)[1]) as client,
    ):
        producer = wire.Producer(client, "of-no-coordinator")
        producer.initialise()
        producer.state.transaction_version = 0
        producer.state.partitions.update(partitions)

        def is_written(partition: tuple[str, int]) -> bool:
            try:
                producer.write(partition, batch)
            except TransactionLost:
                return False
            return True

        assert not any(map(is_written, partitions)), "a broker does not ask the coordinator"
        key = "transaction.partition.verification.enable"
        of = ("--entity-type", "brokers", "--entity-default", "--alter")
        cluster.tool(CONFIGS, *of, "--add-config", f"{key}=false")
        for partition in partitions:
            cluster.nodes.comes(partial(is_written, partition), f"{partition} is not written")
        cluster.tool(CONFIGS, *of, "--delete-config", key)
        write(cluster, "hanging")
        assert records(cluster, "hanging") == []
        # Producer id and epoch, no marker of a coordinator, where it starts, and when.
        of_producer = [producer.state.producer_id, producer.state.epoch, -1, 0, began_ms]
        hanging = [[name, *map(str, (index, *of_producer))] for name, index in partitions]
        for where in (("--topic", "hanging"), *(("--broker-id", str(node.node_id)) for node in nodes)):
            rows = found(*where)
            assert [row[:-1] for row in rows] == hanging, (where, rows)
        for name, index in partitions:
            begins = ("--topic", name, "--partition", str(index), "--start-offset", "0")
            cluster.tool("TransactionsCommand", "abort", *begins)
        assert found("--topic", "hanging") == []
        assert len(records(cluster, "hanging")) == 100


def stopped_brokers_are_forgotten(cluster: Cluster) -> None:
    for by in BOTH:
        goes = come(cluster)
        goes.stop()
        listed = cluster.tool("ClusterTool", "list-endpoints", "--include-fenced-brokers")
        assert re.search(rf"^{goes.node_id}\s.*\bfenced\b", listed, re.M), listed
        forgotten = cluster.tool("ClusterTool", "unregister", "--id", str(goes.node_id), by=by)
        assert f"Broker {goes.node_id} is no longer registered." in forgotten, forgotten
        listed = cluster.tool("ClusterTool", "list-endpoints", "--include-fenced-brokers")
        assert not re.search(rf"^{goes.node_id}\s", listed, re.M), listed
        again = cluster.tool(
            "ClusterTool", "unregister", "--id", str(goes.node_id), by=by, expect_failure=True
        )
        assert f"Broker ID {goes.node_id} is not currently registered" in again, again


def a_running_broker_is_forgotten_until_it_starts_again(cluster: Cluster) -> None:
    goes = come(cluster)
    node_id = goes.node_id
    forgotten = cluster.tool("ClusterTool", "unregister", "--id", str(node_id))
    assert f"Broker {node_id} is no longer registered." in forgotten, forgotten
    listed = cluster.tool("ClusterTool", "list-endpoints", "--include-fenced-brokers")
    assert not re.search(rf"^{node_id}\s", listed, re.M), listed
    goes.kill()
    goes.start()
    listed = cluster.tool("ClusterTool", "list-endpoints")
    assert re.search(rf"^{node_id}\s", listed, re.M), listed
    leave(cluster)


def controllers_are_added_and_removed(cluster: Cluster) -> None:
    nodes = cluster.nodes
    late = nodes.add(LATE, nodes[1].software, roles=nodes[1].roles)
    late.start()
    for by in BOTH:
        nodes.quorum(lambda quorum: LATE in {observer.replica_id for observer in quorum.observers})
        added = cluster.tool(
            "MetadataQuorumCommand",
            *("--command-config", str(late.properties_file), "add-controller"),
            by=by,
        )
        assert f"Added controller {LATE} with directory id" in added, added
        assert cluster.voters == {1, 2, 3, LATE}
        meta = decode_meta_properties((late.data_dir / "meta.properties").read_bytes())
        assert meta.directory_id is not None
        removed = cluster.tool(
            "MetadataQuorumCommand",
            *("remove-controller", "--controller-id", str(LATE)),
            *("--controller-directory-id", uuid_text(meta.directory_id)),
            by=by,
        )
        assert re.search(rf"Removed\s+KRaft controller {LATE} ", removed), removed
        assert cluster.voters == {1, 2, 3}
    late.kill()
    if late.is_broker:
        cluster.tool("ClusterTool", "unregister", "--id", str(LATE))


#: The lane, in its order.
CHECKS: tuple[Callable[[Cluster], None], ...] = (
    topics_are_created_and_described_over_all_brokers,
    the_quorum_is_described,
    the_nodes_are_listed,
    features_are_described_lowered_and_raised,
    brokers_are_configured,
    preferred_leaders_are_elected,
    leaders_out_of_sync_are_elected,
    partitions_are_reassigned,
    replicas_are_the_same,
    replicas_that_fail_are_shown,
    transactions_are_found_and_aborted,
    hanging_transactions_are_found_and_aborted,
    stopped_brokers_are_forgotten,
    a_running_broker_is_forgotten_until_it_starts_again,
    controllers_are_added_and_removed,
)


def title_of(check: Callable[[Cluster], None], layout: str) -> str:
    return f"{check.__name__.replace('_', ' ')} ({layout})"


def titles() -> list[str]:
    """Those of all checks on all layouts."""
    return [title_of(check, layout) for layout in LAYOUTS for check in CHECKS]


def run(voters: Mapping[int, Software], only: str, report: Callable[[str], None]) -> list[str]:
    """Run the checks whose title holds `only` on each layout; what failed."""
    failures: list[str] = []
    for layout, roles in LAYOUTS.items():
        wanted = [check for check in CHECKS if only in title_of(check, layout)]
        if not wanted:
            continue
        with tempfile.TemporaryDirectory(prefix="cluster-tools-") as folder:
            nodes = Nodes(Path(folder), voters, dynamic=True, roles=roles, properties=PROPERTIES)
            nodes.add(STAYS, voters[LIKE[STAYS]], roles="broker")
            with nodes:
                nodes.leader()
                for check in wanted:
                    checked = partial(check, Cluster(nodes, Path(folder)))
                    failures += tried(title_of(check, layout), checked, report)
    return failures
