"""StreamsGroupDescribe (89): streams groups, their topology, their members and tasks."""

from __future__ import annotations

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import streams_group_describe as m
from pykafka_broker.protocol.messages import streams_group_heartbeat as said
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka_broker.protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from pykafka_broker.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import coordinated, only_member
from tests.apis.conftest import OVERRIDES
from tests.apis.streaming import AT_ONCE, beat, internal, owning, reading
from tests.apis.test_denials import DESCRIBE, GROUP, TOPIC, under

GROUP_OPERATIONS = 3400
NOT_ASKED = -(2**31)


@pytest.fixture
def home() -> Home:
    return Home({**OVERRIDES, **AT_ONCE})


async def described(user: User, *groups: str, operations: bool = False) -> list[m.DescribedGroup]:
    request = StreamsGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=operations)
    found: list[m.DescribedGroup] = (await user.send(request, 0)).groups
    return found


def refused(group_id: str, error: ErrorCode, message: str | None = None) -> m.DescribedGroup:
    return m.DescribedGroup(
        error_code=int(error),
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        topology=None,
        members=[],
        authorized_operations=NOT_ASKED,
    )


def tasks(*partitions: int) -> m.Assignment:
    active = [m.TaskIds(subtopology_id="0", partitions=list(partitions))] if partitions else []
    return m.Assignment(active_tasks=active, standby_tasks=[], warmup_tasks=[])


async def test_a_group_is_shown_with_what_its_members_have_and_are_to_have(user: User) -> None:
    await user.create_topic("t", partitions=2)
    await user.create_topic("store", partitions=2)
    await coordinated(user)
    store = internal("store", cleanup_policy="compact", retention_ms="-1", min_insync_replicas="1")
    await beat(
        user,
        topology=reading("t", state_changelog_topics=[store]),
        rack_id="r",
        user_endpoint=said.Endpoint(host="here", port=8_080),
        client_tags=[said.KeyValue(key="zone", value="a"), said.KeyValue(key="rack", value="b")],
    )
    await beat(user, "n", topology=reading("t", state_changelog_topics=[store]))
    await beat(user, "m", 2, **owning(0, 1))

    configs = [("min.insync.replicas", "1"), ("retention.ms", "-1"), ("cleanup.policy", "compact")]
    [group] = await described(user, "g", operations=True)
    assert sorted((each.key, each.value) for each in _shown(group).topic_configs) == sorted(configs)
    _shown(group).topic_configs = []
    assert group == m.DescribedGroup(
        error_code=0,
        group_id="g",
        group_state="Reconciling",
        group_epoch=3,
        assignment_epoch=3,
        topology=m.Topology(
            epoch=0,
            subtopologies=[
                m.Subtopology(
                    subtopology_id="0",
                    source_topics=["t"],
                    repartition_sink_topics=[],
                    state_changelog_topics=[
                        m.TopicInfo(name="store", partitions=2, replication_factor=0, topic_configs=[])
                    ],
                    repartition_source_topics=[],
                )
            ],
        ),
        members=[
            m.Member(
                member_id="m",
                member_epoch=2,
                rack_id="r",
                client_id="test-client",
                client_host="/127.0.0.1",
                topology_epoch=0,
                process_id="p-m",
                user_endpoint=m.Endpoint(host="here", port=8_080),
                client_tags=[m.KeyValue(key="rack", value="b"), m.KeyValue(key="zone", value="a")],
                task_offsets=[],
                task_end_offsets=[],
                assignment=tasks(0),
                target_assignment=tasks(0),
                is_classic=False,
            ),
            m.Member(
                member_id="n",
                member_epoch=3,
                client_id="test-client",
                client_host="/127.0.0.1",
                topology_epoch=0,
                process_id="p-n",
                client_tags=[],
                task_offsets=[],
                task_end_offsets=[],
                assignment=tasks(),
                target_assignment=tasks(1),
                is_classic=False,
            ),
        ],
        authorized_operations=GROUP_OPERATIONS,
    )


def _shown(group: m.DescribedGroup) -> m.TopicInfo:
    assert group.topology is not None
    assert group.topology.subtopologies is not None
    return group.topology.subtopologies[0].state_changelog_topics[0]


async def test_groups_of_another_kind_are_not_found_here_and_the_other_way_round(user: User) -> None:
    await user.create_topic("t")
    await only_member(user, "classic")
    await beat(user)

    assert await described(user, "classic", "unknown", "") == [
        refused("classic", ErrorCode.GROUP_ID_NOT_FOUND, "Group classic is not a streams group."),
        refused("unknown", ErrorCode.GROUP_ID_NOT_FOUND, "Group unknown not found."),
        refused("", ErrorCode.INVALID_GROUP_ID),
    ]
    [group] = (await user.send(DescribeGroupsRequest(groups=["g"]), 6)).groups
    assert (group.error_code, group.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group g is not a classic group.",
    )


async def test_groups_are_listed_by_type(user: User) -> None:
    await user.create_topic("t")
    await only_member(user, "classic")
    await beat(user)

    answer = await user.send(ListGroupsRequest(states_filter=[], types_filter=["streams"]), 5)

    streams = ListedGroup(group_id="g", protocol_type="streams", group_state="Stable", group_type="streams")
    assert answer.groups == [streams]


async def test_it_is_not_served_where_its_protocol_is_switched_off(home: Home) -> None:
    home.overrides["group.coordinator.rebalance.protocols"] = "classic,consumer"
    async with home.running() as user:
        assert await described(user, "g", "h") == [
            refused(group_id, ErrorCode.UNSUPPORTED_VERSION) for group_id in ("g", "h")
        ]


async def test_without_the_offsets_topic_there_is_no_coordinator(user: User) -> None:
    assert await described(user, "g") == [refused("g", ErrorCode.NOT_COORDINATOR)]


async def test_a_group_is_described_to_those_who_may_describe_it_and_its_topics(
    home: Home, user: User
) -> None:
    await user.create_topic("t")
    await coordinated(user)
    await beat(user)
    await beat(user, group="h")

    client, authorizer = await under(home, (DESCRIBE, GROUP, "h"))
    first, second = await described(client, "g", "h")
    assert first == refused("h", ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert (second.group_id, second.error_code) == ("g", 0)
    assert authorizer.attempts == [(DESCRIBE, GROUP, "h")]
    client, _ = await under(home, (DESCRIBE, TOPIC, "t"))
    assert await described(client, "g") == [
        refused(
            "g",
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "The described group uses topics that the client is not authorized to describe.",
        )
    ]
