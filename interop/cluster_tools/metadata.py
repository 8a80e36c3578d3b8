"""Tools that show and change what the controllers know: topics, nodes, features, configurations."""

from __future__ import annotations

import json
import re

from interop.cluster_tools.cluster import BOTH, CONFIGS, CONTROLLER, SERVER, STAYS, Cluster, come, leave
from pykafka_broker.log.disk.checkpoints import decode_meta_properties
from pykafka_broker.protocol.fields import uuid_text

#: The id of the controller that is added and removed.
LATE = 4


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
    key = "log.cleaner.backoff.ms"
    for by in BOTH:
        for whom in (("--entity-default",), ("--entity-name", str(STAYS))):
            of = ("--entity-type", "brokers", *whom)
            cluster.tool(CONFIGS, *of, "--alter", "--add-config", f"{key}=12345", by=by)
            assert f"{key}=12345 " in cluster.tool(CONFIGS, *of, "--describe"), (by, whom)
            cluster.tool(CONFIGS, *of, "--alter", "--delete-config", key, by=by)
            assert f"{key}=12345 " not in cluster.tool(CONFIGS, *of, "--describe"), (by, whom)
    of = ("--entity-type", "brokers", "--entity-name", str(STAYS))
    refused = ("--alter", "--add-config", "log.cleaner.threads=none")
    cluster.tool(CONFIGS, *of, *refused, expect_failure=True)


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
