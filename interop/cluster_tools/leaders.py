"""Tools that elect leaders and move replicas."""

from __future__ import annotations

import re
from collections.abc import Mapping

from interop.cluster_tools.cluster import (
    BOTH,
    CONFIGS,
    CONTROLLER,
    SERVER,
    STAYS,
    Cluster,
    await_shown,
    brokers,
    created,
    records,
    replicas_of,
    replicated,
    shown,
    write,
)

REASSIGNMENTS = "reassign.ReassignPartitionsCommand"
#: Bytes a second that let a replica fetch once, and that do not limit it.
SLOW, FAST = "1", "100000000"
THROTTLES = {
    f"{side}.replication.throttled.{what}" for side in ("leader", "follower") for what in ("rate", "replicas")
}


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


def elections(cluster: Cluster, topic: str, *partitions: int) -> str:
    """The file that asks for elections of these partitions."""
    wanted = [{"topic": topic, "partition": index} for index in partitions]
    return cluster.file("elections.json", {"partitions": wanted})


def elect(cluster: Cluster, kind: str, *of: str, expect_failure: bool = False) -> str:
    elected = cluster.tool(
        "LeaderElectionCommand", "--election-type", kind, *of, expect_failure=expect_failure
    )
    return elected.strip()


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
