"""Quorums of controllers of Apache Kafka 4.3.1 and of ours: each follows, elects and replaces the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.testing.apache.nodes import Node, Nodes, Software
from tests.exchange.broker_by_name import SESSION, create_topic, register

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
    [{1: "ours", 2: "apache", 3: "apache"}, {1: "apache", 2: "ours", 3: "ours"}],
    ids=["two of apache", "two of ours"],
)
def test_either_kind_leads_the_other_and_knows_what_it_committed(
    voters: dict[int, Software], tmp_path: Path
) -> None:
    with Nodes(tmp_path, voters, properties=SESSION) as nodes:
        register(nodes)
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
    with Nodes(tmp_path, voters, properties={**SESSION, **SNAPSHOTS}) as nodes:
        register(nodes)
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
            nodes.comes(
                lambda pupil=pupil: begins_behind_a_snapshot(pupil), f"{pupil.software} has no snapshot"
            )
            topics_survive(nodes, names)
        # It lives on what it has from the snapshot of the other kind.
        lead(nodes, "ours")
        topics_survive(nodes, names)


def lead(nodes: Nodes, software: str) -> Node:
    """The leader, once it is of this kind.

    One of the other kind is killed where only this kind can follow. Else
    it hands over, and prefers the smallest id among those that have all of its log.
    """
    for _ in range(ROUNDS):
        leader = nodes[nodes.leader()]
        if leader.software == software:
            return leader
        if any(node.software != software for node in nodes if node is not leader):
            leader.stop()
        else:
            leader.kill()
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
