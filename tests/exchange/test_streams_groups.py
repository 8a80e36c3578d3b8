"""Streams groups go from Apache Kafka 4.3.1 to our broker and back while their applications run: members keep
their epochs and tasks, and every record is counted once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pykafka_broker.client.blocking import Client
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
)
from pykafka_broker.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from tests.apis.streaming import beating, internal, owning, reading
from tests.exchange.contents import TIMEOUT_S
from tests.exchange.node import Node, Software
from tests.support.counting_application import BROKER_SETTINGS, Counted, Instance, is_settled
from tests.support.waiting import until

NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
STORE = reading("words", state_changelog_topics=[internal("store", cleanup_policy="compact")])


@pytest.fixture
def node(kafka_jars: Path, tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path, {**BROKER_SETTINGS, "group.streams.assignment.interval.ms": "0"})
    yield node
    node.kill()


class Members:
    """Members of streams groups, as the test plays them."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def ask(self, request: Any) -> Any:
        """The answer, asked again while the coordinator is coming."""
        until_s = time.monotonic() + TIMEOUT_S
        with Client(self.node.address) as client:
            while True:
                answer = client.send(request)
                error = answer.error_code if hasattr(answer, "error_code") else answer.groups[0].error_code
                if error not in NOT_YET:
                    return answer
                assert time.monotonic() < until_s, answer
                time.sleep(0.05)

    def beat(self, *args: Any, **said: Any) -> StreamsGroupHeartbeatResponse:
        answer: StreamsGroupHeartbeatResponse = self.ask(beating(*args, **said))
        return answer

    def described(self, group: str) -> DescribedGroup:
        request = StreamsGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
        found: DescribedGroup = self.ask(request).groups[0]
        return found

    def create_topics(self) -> None:
        topics = [
            CreatableTopic(name=name, num_partitions=4, replication_factor=1, assignments=[], configs=[])
            for name in ("words", "store")
        ]
        with Client(self.node.address) as client:
            assert {topic.error_code for topic in client.send(CreateTopicsRequest(topics=topics)).topics} == {
                0
            }
            request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
            until(lambda: not client.send(request).coordinators[0].error_code, "there is a coordinator")


@pytest.mark.timeout(600)
def test_members_keep_their_epochs_and_tasks(node: Node) -> None:
    members = Members(node)
    with node.running("apache"):
        members.create_topics()
        until(lambda: not members.beat("probe", group="probe", topology=STORE).status, "topics are known")
        members.beat("m", topology=STORE, rack_id="r")
        members.beat("n", topology=STORE)
        moving = members.beat("m", 2, **owning(0, 1, 2, 3))
        assert moving.active_tasks is not None
        members.beat("e", group="ended", topology=STORE)
        members.beat("e", -1, group="ended")
        written = {group: members.described(group) for group in ("g", "ended")}
        assert (written["g"].group_state, written["ended"].group_state) == ("Reconciling", "Empty")

    node.run("ours")
    # A topology is shown as declared until the next heartbeat finds out what its topics look like.
    for group in ("g", "ended"):
        assert _comparable(members.described(group)) == _comparable(written[group])
    assert members.beat("m", 2, **owning(0, 1)).member_epoch == 3
    assert members.beat("n", 3, **owning()).member_epoch == 3
    members.beat("e", group="ended", topology=STORE)
    members.beat("o", topology=STORE)
    written = {group: members.described(group) for group in ("g", "ended")}
    assert {member.member_id for member in written["g"].members} == {"m", "n", "o"}
    node.kill()

    with node.running("apache"):
        for group in ("g", "ended"):
            assert _comparable(members.described(group)) == _comparable(written[group])
        epoch = next(m.member_epoch for m in written["g"].members if m.member_id == "m")
        assert not members.beat("m", epoch, **owning(0, 1)).error_code
        assert not node.complaints()


def _comparable(group: DescribedGroup) -> DescribedGroup:
    """Without the sizes of topics that are not found out yet, its members in the order of their ids."""
    group.members.sort(key=lambda member: member.member_id)
    assert group.topology is not None
    for part in group.topology.subtopologies or ():
        for topic in (*part.state_changelog_topics, *part.repartition_source_topics):
            topic.partitions = 0
    return group


@pytest.mark.timeout(900)
def test_an_application_counts_on_through_exchanges(node: Node, tmp_path: Path) -> None:
    counted = Counted(node.address)
    exchanges: tuple[tuple[Software, bool], ...] = (("ours", False), ("apache", True), ("ours", True))
    with ExitStack() as stack:
        node.run("apache")
        counted.create_topics()
        names = ("one", "two")
        instances = [stack.enter_context(Instance(node.address, tmp_path, name)) for name in names]
        counted.write(500)
        until(lambda: is_settled(node.address, *names), "both instances have tasks")
        for software, is_killed in exchanges:
            (node.kill if is_killed else node.stop)()
            node.run(software)
            counted.write(500)
            until(lambda: is_settled(node.address, *names), "both instances have tasks again")
            counted.check()
        instances[1].kill()
        counted.write(500)
        until(lambda: is_settled(node.address, "one"), "the first instance has all tasks")
        counted.check()
        node.stop()
