"""Quorums of controllers of Apache Kafka 4.3.1 and of ours: each follows, elects and replaces the other."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import partial
from pathlib import Path

import pytest

from pykafka_broker.log.disk.checkpoints import decode_meta_properties
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.testing.apache.nodes import Node, Nodes, Software
from pykafka_broker.testing.apache.tools import run_tool
from tests.exchange.broker_by_name import SESSION, create_topic, registered

ROUNDS = 10
SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "2000"}


def logs(node: Node) -> bytes:
    """The metadata log as the node has it on disk."""
    return b"".join(path.read_bytes() for path in sorted(node.metadata_folder.glob("*.log")))


def topics_survive(nodes: Nodes, names: list[str]) -> None:
    assert {create_topic(nodes, name) for name in names} <= {ErrorCode.TOPIC_ALREADY_EXISTS}


@pytest.mark.usefixtures("kafka_jars")
@pytest.mark.parametrize(
    "voters",
    [
        pytest.param({1: "ours", 2: "apache", 3: "apache"}, id="two of apache"),
        pytest.param({1: "apache", 2: "ours", 3: "ours"}, id="two of ours"),
    ],
)
def test_either_kind_leads_the_other_and_knows_what_it_committed(
    voters: dict[int, Software], tmp_path: Path
) -> None:
    with Nodes(tmp_path, voters, properties=SESSION) as nodes, registered(nodes):
        names: list[str] = []
        for software in ("ours", "apache", "ours"):
            lead(nodes, software)
            topics_survive(nodes, names)
            names.append(f"topic-{len(names)}")
            assert create_topic(nodes, names[-1]) is ErrorCode.NONE
        end = nodes.quorum().high_watermark
        nodes.quorum(lambda quorum: min(v.log_end_offset for v in quorum.current_voters) >= end)
        for node in nodes:
            node.stop()
        first, *others = sorted((logs(node) for node in nodes), key=len)
        assert first
        assert [log[: len(first)] == first for log in others] == [True, True]


@pytest.mark.usefixtures("kafka_jars")
def test_a_snapshot_of_either_kind_brings_the_other_back_from_an_empty_disk(tmp_path: Path) -> None:
    voters: dict[int, Software] = {1: "apache", 2: "ours", 3: "ours"}
    with Nodes(tmp_path, voters, properties={**SESSION, **SNAPSHOTS}) as nodes, registered(nodes):
        names: list[str] = []
        for software, pupil in (("ours", nodes[1]), ("apache", nodes[2])):
            leader = lead(nodes, software)
            before = newest_snapshot(leader)
            while newest_snapshot(leader) == before:
                names.append(f"topic-{len(names)}")
                assert create_topic(nodes, names[-1]) is ErrorCode.NONE
            pupil.kill()
            pupil.lose_disk()
            pupil.start()
            nodes.comes(partial(begins_behind_a_snapshot, pupil), f"{pupil.software} has no snapshot")
            topics_survive(nodes, names)
        # It lives on what it has from the snapshot of the other kind.
        lead(nodes, "ours")
        topics_survive(nodes, names)


def lead(nodes: Nodes, software: str, among: Collection[int] = ()) -> Node:
    """The leader, once it is of this kind.

    The voters are those `among` the nodes, or all. One of the other kind is killed where only this kind can
    follow. Else it hands over, and prefers the smallest id among those that have all of its log.
    """
    for _ in range(ROUNDS):
        leader = nodes[nodes.leader()]
        if leader.software == software:
            return leader
        others = [node for node in nodes if node is not leader and (not among or node.node_id in among)]
        if any(node.software != software for node in others):
            leader.stop()
        else:
            leader.kill()
        if len(others) > 1:
            nodes.leader()
        leader.start()
    raise AssertionError(f"{software} never leads")


def newest_snapshot(node: Node) -> int:
    """The offset at which the newest snapshot of the node ends."""
    return max(
        (int(path.stem.split("-")[0]) for path in node.metadata_folder.glob("*.checkpoint")), default=0
    )


def begins_behind_a_snapshot(node: Node) -> bool:
    """Whether a fetched snapshot stands for the beginning of the node's log."""
    starts = [int(path.stem) for path in node.metadata_folder.glob("*.log")]
    return bool(starts) and 0 < min(starts) <= newest_snapshot(node)


JOINS = {"controller.quorum.auto.join.enable": "true"}


@pytest.mark.usefixtures("kafka_jars")
def test_voters_of_either_kind_are_added_removed_and_join_by_themselves(tmp_path: Path) -> None:
    # An auto-join waits for the third of these time-outs.
    quick = {"controller.quorum.fetch.timeout.ms": "1000"}
    with Nodes(tmp_path, {1: "ours"}, dynamic=True, properties=quick) as nodes:
        nodes.add(2, "apache", properties=JOINS).start()
        have_voters(nodes, {1, 2})
        nodes.add(3, "ours").start()
        add_voter(nodes, 3)
        have_voters(nodes, {1, 2, 3})
        # The leader takes itself out; its disk is lost; it joins again with a new one, below the other kind.
        assert nodes.leader() == 1
        old = directory_id_of(nodes[1])
        remove_voter(nodes, 1)
        have_voters(nodes, {2, 3})
        nodes[1].kill()
        nodes[1].lose_disk()
        lead(nodes, "apache", among={2, 3})
        nodes[1].properties |= JOINS
        nodes[1].start()
        have_voters(nodes, {1, 2, 3})
        assert directory_id_of(nodes[1]) != old
        # The same with one of the other kind, by hand, below our leader. It is killed first, as it would join
        # again by itself.
        lead(nodes, "ours", among={1, 2, 3})
        nodes[2].kill()
        remove_voter(nodes, 2)
        have_voters(nodes, {1, 3})
        nodes[2].lose_disk()
        del nodes[2].properties["controller.quorum.auto.join.enable"]
        nodes[2].start()
        add_voter(nodes, 2)
        have_voters(nodes, {1, 2, 3})


def have_voters(nodes: Nodes, node_ids: set[int]) -> None:
    nodes.quorum(lambda quorum: {voter.replica_id for voter in quorum.current_voters} == node_ids)


def directory_id_of(node: Node) -> str:
    meta = decode_meta_properties((node.data_dir / "meta.properties").read_bytes())
    assert meta.directory_id is not None
    return uuid_text(meta.directory_id)


def add_voter(nodes: Nodes, node_id: int) -> None:
    """Have Kafka's tool add a controller that follows already."""
    nodes.quorum(lambda quorum: node_id in {observer.replica_id for observer in quorum.observers})
    printed = quorum_tool(
        nodes, "--command-config", str(nodes[node_id].properties_file), end=("add-controller",)
    )
    assert f"Added controller {node_id} with directory id" in printed, printed


def remove_voter(nodes: Nodes, node_id: int) -> None:
    """Have Kafka's tool remove a controller."""
    wanted = ("--controller-id", str(node_id), "--controller-directory-id", directory_id_of(nodes[node_id]))
    printed = quorum_tool(nodes, end=("remove-controller", *wanted))
    assert re.search(rf"Removed\s+KRaft controller {node_id} ", printed), printed


def quorum_tool(nodes: Nodes, *options: str, end: tuple[str, ...]) -> str:
    leader = nodes[nodes.leader()].controller_address
    return run_tool(
        "org.apache.kafka.tools.MetadataQuorumCommand", *options, "--bootstrap-controller", leader, *end
    )
