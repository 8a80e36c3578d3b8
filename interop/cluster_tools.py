"""Apache Kafka's command-line tools against several nodes, of combined and of separate roles, asked through
brokers (--bootstrap-server) and through controllers (--bootstrap-controller).

Each layout is a cluster of three voters whose voters stand in the log, and of a broker that is no voter. A
check is a function of a cluster; the lane runs all of them on each layout, in this order.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from confluent_kafka import Producer

from interop.checks import tried
from pykafka_broker.log.disk.checkpoints import decode_meta_properties
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.testing.apache.nodes import Node, Nodes, Roles, Software
from pykafka_broker.testing.apache.tools import SHORT_LIVED, command, run_tool

TOOLS = "org.apache.kafka.tools"
SERVER, CONTROLLER = "--bootstrap-server", "--bootstrap-controller"
BOTH = (SERVER, CONTROLLER)

LAYOUTS: Mapping[str, Roles] = {"combined": "broker,controller", "separate": "controller"}
#: Besides the voters: a broker that stays, and one that comes and goes.
STAYS, GOES = 11, 12
#: The id of the controller that is added and removed.
LATE = 4
PATIENCE_S = 60.0


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


def leaders_are_elected(cluster: Cluster) -> None:
    """This tool knows no --bootstrap-controller."""
    assignment = f"{STAYS},{cluster.brokers[0]}"
    cluster.tool("TopicCommand", "--create", "--topic", "elected", "--replica-assignment", assignment)
    of = ("--topic", "elected", "--partition", "1")
    elected = cluster.tool("LeaderElectionCommand", "--election-type", "preferred", *of)
    assert elected.strip() == "Valid replica already elected for partitions elected-1", elected
    wanted = cluster.file(
        "elections.json", {"partitions": [{"topic": "elected", "partition": p} for p in (0, 7)]}
    )
    refused = cluster.tool(
        "LeaderElectionCommand",
        *("--election-type", "unclean", "--path-to-json-file", wanted),
        expect_failure=True,
    )
    assert "Error completing leader election (UNCLEAN) for partition: elected-7: " in refused, refused
    everything = ("--election-type", "preferred", "--all-topic-partitions")
    assert cluster.tool("LeaderElectionCommand", *everything).strip() == ""
    cluster.tool("TopicCommand", "--delete", "--topic", "elected")


def partitions_are_reassigned(cluster: Cluster) -> None:
    """A move may be over before it is listed, or cancelled. Controllers are asked only for these two."""
    first = cluster.brokers[0] if cluster.brokers[0] != STAYS else come(cluster).node_id
    cluster.tool("TopicCommand", "--create", "--topic", "moved", "--replica-assignment", str(STAYS))
    for by, replica in ((SERVER, first), (CONTROLLER, STAYS)):
        partition = {"topic": "moved", "partition": 0, "replicas": [replica], "log_dirs": ["any"]}
        plan = {"version": 1, "partitions": [partition]}
        executed = reassign(cluster, "--execute", plan)
        assert "Successfully started partition reassignment for moved-0" in executed, executed
        moving = cluster.tool("reassign.ReassignPartitionsCommand", "--list", by=by)
        assert "No partition reassignments found." in moving or "moved-0: replicas: " in moving, moving
        verified = reassign(cluster, "--verify", plan)
        assert re.search("Reassignment of partition moved-0 is (completed|still in progress).", verified), (
            verified
        )
        cancelled = reassign(cluster, "--cancel", plan, by=by)
        assert "moved-0" in cancelled or "None of the specified" in cancelled, cancelled
        none = cluster.tool("reassign.ReassignPartitionsCommand", "--list", by=by)
        assert none.strip() == "No partition reassignments found.", none
    cluster.tool("TopicCommand", "--delete", "--topic", "moved")
    if first == GOES:
        leave(cluster)


def reassign(cluster: Cluster, action: str, plan: object, *, by: str = SERVER) -> str:
    file = cluster.file("reassignment.json", plan)
    return cluster.tool("reassign.ReassignPartitionsCommand", action, "--reassignment-json-file", file, by=by)


def come(cluster: Cluster) -> Node:
    """A broker that does not stay."""
    try:
        node = cluster.nodes[GOES]
    except KeyError:
        node = cluster.nodes.add(GOES, next(iter(cluster.nodes)).software, roles="broker")
    node.start()
    return node


def leave(cluster: Cluster) -> None:
    """Have the broker that does not stay forgotten."""
    cluster.nodes[GOES].kill()
    cluster.tool("ClusterTool", "unregister", "--id", str(GOES))


@contextlib.contextmanager
def replicated(cluster: Cluster, topic: str, **config: str) -> Iterator[Node]:
    """A topic of two partitions on the broker that stays and on another one, which is given."""
    first = cluster.brokers[0]
    other = cluster.nodes[first] if first != STAYS else come(cluster)
    create = ("--create", "--topic", topic, "--replica-assignment", f"{other.node_id}:{STAYS}," * 2)
    settings = [part for item in config.items() for part in ("--config", "=".join(item).replace("_", "."))]
    cluster.tool("TopicCommand", *(part.rstrip(",") for part in create), *settings)
    yield other
    cluster.tool("TopicCommand", "--delete", "--topic", topic)
    if other.node_id == GOES:
        leave(cluster)


def write(cluster: Cluster, topic: str, transactional_id: str = "") -> Producer:
    """A hundred records; the producer, in its transaction if it has an id for that."""
    settings = {"transactional.id": transactional_id} if transactional_id else {"acks": "all"}
    producer = Producer({"bootstrap.servers": cluster.bootstrap(SERVER)[1], **settings})
    if transactional_id:
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
    for number in range(100):
        producer.produce(topic, f"record {number}", partition=number % 2)
    assert producer.flush(PATIENCE_S) == 0
    return producer


def replicas_are_the_same(cluster: Cluster) -> None:
    with replicated(cluster, "verified") as other:
        write(cluster, "verified")
        described = cluster.tool("LogDirsCommand", "--describe", "--topic-list", "verified")
        told = json.loads(described.splitlines()[-1])
        assert {broker["broker"] for broker in told["brokers"]} == set(cluster.brokers)
        sizes = {
            (broker["broker"], replica["partition"]): (replica["size"] > 0, replica["offsetLag"])
            for broker in told["brokers"]
            for folder in broker["logDirs"]
            for replica in folder["partitions"]
        }
        pairs = [(node_id, f"verified-{p}") for node_id in (other.node_id, STAYS) for p in (0, 1)]
        assert sizes == dict.fromkeys(pairs, (True, 0)), described
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
    """While a broker is away that has one of two replicas."""

    def shown(*options: str) -> list[tuple[str, ...]]:
        printed = cluster.tool("TopicCommand", "--describe", *options, "--topic", "failing")
        return re.findall(r"Partition: (\d)\s+Leader: (\S+)\s+Replicas: (\S+)\s+Isr: (\S*)", printed)

    with replicated(cluster, "failing", min_insync_replicas="2") as other:
        for option in ("--under-replicated-partitions", "--under-min-isr-partitions"):
            assert shown(option) == [], option
        both = f"{other.node_id},{STAYS}"
        assert [row[:3] for row in shown("--at-min-isr-partitions")] == [
            (str(index), str(other.node_id), both) for index in (0, 1)
        ]
        other.kill()
        left = [(str(index), str(STAYS), both, str(STAYS)) for index in (0, 1)]
        cluster.nodes.comes(lambda: shown() == left, lambda: f"not {left}, but {shown()}")
        for option in ("--under-replicated-partitions", "--under-min-isr-partitions"):
            assert shown(option) == left, option
        for option in ("--at-min-isr-partitions", "--unavailable-partitions"):
            assert shown(option) == [], option
        other.start()
        cluster.nodes.comes(lambda: not shown("--under-replicated-partitions"), "a replica stays behind")


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


def stopped_brokers_are_forgotten(cluster: Cluster) -> None:
    for by in BOTH:
        come(cluster).stop()
        listed = cluster.tool("ClusterTool", "list-endpoints", "--include-fenced-brokers")
        assert re.search(rf"^{GOES}\s.*\bfenced\b", listed, re.M), listed
        forgotten = cluster.tool("ClusterTool", "unregister", "--id", str(GOES), by=by)
        assert f"Broker {GOES} is no longer registered." in forgotten, forgotten
        listed = cluster.tool("ClusterTool", "list-endpoints", "--include-fenced-brokers")
        assert not re.search(rf"^{GOES}\s", listed, re.M), listed
        again = cluster.tool("ClusterTool", "unregister", "--id", str(GOES), by=by, expect_failure=True)
        assert f"Broker ID {GOES} is not currently registered" in again, again


def a_running_broker_is_forgotten_until_it_starts_again(cluster: Cluster) -> None:
    goes = come(cluster)
    forgotten = cluster.tool("ClusterTool", "unregister", "--id", str(GOES))
    assert f"Broker {GOES} is no longer registered." in forgotten, forgotten
    listed = cluster.tool("ClusterTool", "list-endpoints", "--include-fenced-brokers")
    assert not re.search(rf"^{GOES}\s", listed, re.M), listed
    goes.kill()
    goes.start()
    listed = cluster.tool("ClusterTool", "list-endpoints")
    assert re.search(rf"^{GOES}\s", listed, re.M), listed
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
    leaders_are_elected,
    partitions_are_reassigned,
    replicas_are_the_same,
    replicas_that_fail_are_shown,
    transactions_are_found_and_aborted,
    stopped_brokers_are_forgotten,
    a_running_broker_is_forgotten_until_it_starts_again,
    controllers_are_added_and_removed,
)


def run(software: Software, report: Callable[[str], None]) -> list[str]:
    """Run the checks on each layout; what failed."""
    failures: list[str] = []
    for layout, roles in LAYOUTS.items():
        with tempfile.TemporaryDirectory(prefix="cluster-tools-") as folder:
            nodes = Nodes(Path(folder), dict.fromkeys((1, 2, 3), software), dynamic=True, roles=roles)
            nodes.add(STAYS, software, roles="broker")
            with nodes:
                nodes.leader()
                for check in CHECKS:
                    title = f"{check.__name__.replace('_', ' ')} ({layout})"
                    failures += tried(title, partial(check, Cluster(nodes, Path(folder))), report)
    return failures
