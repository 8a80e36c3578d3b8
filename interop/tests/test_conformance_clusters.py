"""How conversations are spread over the nodes of a cluster, and how they are judged there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest

from interop.conformance import acl_matrix, clusters
from interop.conformance.accepted import ONE_NODE
from interop.conformance.acl_requests import names_with, prefix_at_home
from interop.conformance.clusters import (
    NODES,
    Cluster,
    by_clusters,
    homes_at,
    identity_with,
    is_of_one_node,
    replicas_of,
    run_with_a_kill,
    seen_of_several,
)
from interop.conformance.compare import Difference
from interop.conformance.conversation import Case, cases
from interop.conformance.normalise import Names, Tree, tree_of
from interop.conformance.play import Result, Verdict
from interop.conformance.shares import NO_PARTITION, PARTITIONS_ASKED, ShareGroup, share_group_at_home
from interop.conformance.talk import Home, Side, Subject, Talk, Topic
from pykafka_broker.client.core.connection import CLIENT
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.java_hash import string_hash_abs
from pykafka_broker.protocol.messages.describe_quorum import (
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
)

HOMES = homes_at([f"127.0.0.1:{9092 + partition}" for partition in range(NODES)])


def a_case() -> Case:
    return cases()[0]


def test_each_node_leads_one_of_three_partitions_and_follows_the_others() -> None:
    assert replicas_of("__consumer_offsets") == [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
    assert [replicas[0] for replicas in replicas_of("__share_group_state")] == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_a_name_belongs_to_the_partition_of_the_home_of_its_conversation() -> None:
    names = [home.named("group-0badcafe-v9") for home in HOMES]

    assert [string_hash_abs(name) % NODES for name in names] == [0, 1, 2]
    assert "group-0badcafe-v9" in names


@pytest.mark.parametrize("home", HOMES)
def test_a_share_group_has_a_name_whose_share_partitions_are_at_home(home: Home) -> None:
    names = Names({})
    talk = cast("Talk", SimpleNamespace(home=home, names=names, name=lambda label: f"{label}-0badcafe-v1"))
    topic = Topic("topic", b"\x2a" * 16)

    group = ShareGroup(talk, topic, partitions=0)

    keys = [
        *map(group.key, (NO_PARTITION, *range(PARTITIONS_ASKED))),
        f"{group.id}:{uuid_text(group.unknown_topic_id)}:0",
    ]
    assert all(map(home.coordinates_share, keys))
    assert home.coordinates(group.id)
    assert names.text(f"Group {group.id} is empty") == "Group group-0badcafe-v1 is empty"


def test_conversations_are_spread_over_all_nodes_and_with_one_node_have_no_home() -> None:
    cluster = Side("ours", HOMES[0].address, {}, frozenset(), homes=HOMES)
    alone = Side("ours", HOMES[0].address, {}, frozenset())
    subjects = [Subject("metadata", "metadata/a_conversation", version) for version in range(14)]

    assert {cluster.home_of(subject) for subject in subjects} == set(HOMES)
    assert {alone.home_of(subject) for subject in subjects} == {None}
    assert cluster.nodes == {1, 2, 3}


def test_what_apache_kafka_does_otherwise_with_several_nodes_must_be_the_same_with_ours() -> None:
    otherwise = Result(a_case(), Verdict.BROKEN, problem="with Apache Kafka: 1 Metadata v0: no error")
    other_value = Difference("1 Metadata v0.topics.0.error_code", "3", "0")
    differs = Result(a_case(), Verdict.BROKEN, (other_value,), problem=otherwise.problem)
    empty = Result(a_case(), Verdict.BROKEN, problem="nothing is compared in it")

    assert [seen_of_several(result).verdict for result in (otherwise, differs, empty)] == [
        Verdict.EQUAL,
        Verdict.DIFFERENT,
        Verdict.BROKEN,
    ]


def test_conversations_whose_settings_ask_for_a_login_are_held_with_clusters_and_with_no_others() -> None:
    held = [settings for settings, _ in by_clusters(cases())]
    of_one_node = [
        dict(case.conversation.settings)
        for case in cases()
        if is_of_one_node(case) and not any(entry.concerns(case) for entry in ONE_NODE)
    ]

    assert held[0] == {}
    assert acl_matrix.SETTINGS in held
    assert all("sasl.enabled.mechanisms" in settings for settings in held[1:])
    assert not any("sasl.enabled.mechanisms" in settings for settings in of_one_node)


def test_the_run_asks_nodes_as_they_ask_each_other() -> None:
    held = [identity_with(settings) for settings, _ in by_clusters(cases())]
    logins = [each.security.login for each in held[1:] if each.security]

    assert held[0] == CLIENT
    assert {repr(login) for login in logins} == {"Login(PLAIN, 'bob')", "Login(PLAIN, 'root')"}
    assert len(logins) == len(held) - 1


@pytest.mark.parametrize("home", HOMES)
def test_what_the_acls_of_a_matrix_are_about_is_coordinated_at_home(home: Home) -> None:
    talk = cast("Talk", SimpleNamespace(home=home, name=lambda label: f"{label}-0badcafe-v1"))

    prefix = prefix_at_home(talk)

    assert prefix.endswith("-acls-0badcafe-v1")
    assert all(map(home.coordinates, names_with(prefix)))


def test_with_one_node_the_names_of_an_acl_matrix_are_those_of_the_conversation() -> None:
    talk = cast("Talk", SimpleNamespace(home=None, name=lambda label: f"{label}-0badcafe-v1"))

    assert prefix_at_home(talk) == "acls-0badcafe-v1"
    assert share_group_at_home(talk, "group", (b"\x2a" * 16, 0)) == "group"


@dataclass
class Idle:
    """A cluster on which nothing happens; what happens to it is written down."""

    name: str
    events: list[str]
    side: Side = field(default_factory=lambda: Side("idle", HOMES[0].address, {}, frozenset(), homes=HOMES))

    def sweep(self) -> list[str]:
        return []

    def kill(self) -> None:
        self.events.append("killed")

    def start_again(self) -> None:
        self.events.append("started again")


def test_what_differs_is_held_again_before_the_conversations_after_which_apache_kafka_does_not_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    last = next(case for case in cases() if case.conversation.last)
    # None of these is held while a node is killed.
    alone = next(case for case in cases() if case.conversation.alone and not case.conversation.last)
    events: list[str] = []
    reported: list[Result] = []

    def run(part: Sequence[Case], *_: object, **__: object) -> list[Result]:
        events.extend(str(case) for case in part)
        return [Result(case, Verdict.DIFFERENT) for case in part]

    monkeypatch.setattr(clusters, "run", run)
    apache, ours = (cast("Cluster", Idle(name, events)) for name in ("apache", "ours"))
    found = run_with_a_kill([last, alone, alone, alone], apache, ours, reported.append, lambda line: None)

    assert events[-3:] == [str(alone), str(alone), str(last)]
    assert events.count("started again") == 2
    assert reported[-1] == found[-1] == Result(last, Verdict.DIFFERENT)


def test_the_active_controller_may_be_another_node_on_each_side_but_must_be_named() -> None:
    def told_by(active: int, named: int) -> Tree:
        partition = DescribeQuorumResponsePartitionData(
            partition_index=0,
            error_code=0,
            leader_id=named,
            leader_epoch=1,
            high_watermark=1,
            current_voters=[],
            observers=[],
        )
        topic = DescribeQuorumResponseTopicData(topic_name="__cluster_metadata", partitions=[partition])
        answer = DescribeQuorumResponse(error_code=0, topics=[topic])
        names = Names({}, active_controller=lambda: active)
        return tree_of(answer, 2, names, is_of_the_quorum=True)

    assert told_by(active=3, named=3) == told_by(active=1, named=1)
    assert told_by(active=3, named=2) != told_by(active=1, named=1)
