"""Apache Kafka's tool for streams groups, as it is, against the broker."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from interop.checks import tried
from interop.live_members import Life, beat, member
from interop.tools import filled, tool
from interop.world import World
from pykafka_broker.client.blocking import Client
from pykafka_broker.protocol.messages import streams_group_heartbeat as beating
from pykafka_broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykafka_broker.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse

STREAMS_GROUPS = "streams.StreamsGroupCommand"


def a_streams_group_that_lives_is_shown_and_kept(world: World) -> None:
    topic, group = filled(world, 3), world.name("streams")
    with member_of(world, group, topic):
        listed = tool(world, STREAMS_GROUPS, "--list", "--state", "stable")
        assert re.search(rf"{group}\s+Stable", listed), listed
        of_all_kinds = tool(world, "GroupsCommand", "--list", "--streams")
        assert re.search(rf"{group}\s+Streams\s+streams", of_all_kinds), of_all_kinds
        state = tool(world, STREAMS_GROUPS, "--describe", "--group", group, "--state", "--verbose")
        assert re.search(rf"{group}\s+\S+\s+\(\d+\)\s+Stable\s+2\s+2\s+1\b", state), state
        members = tool(world, STREAMS_GROUPS, "--describe", "--group", group, "--members")
        assert re.search(rf"{group}\s+m\s+p\s+pykafka-broker\s+ACTIVE: 0:\[0\];", members), members
        offsets = tool(world, STREAMS_GROUPS, "--describe", "--group", group, "--offsets")
        assert re.search(rf"{group}\s+{topic}\s+0\s+2\b", offsets), offsets
        reset = ("--reset-offsets", "--group", group, "--input-topic", topic, "--to-earliest", "--execute")
        refused = tool(world, STREAMS_GROUPS, *reset)
        assert f"if the group '{group}' is inactive, but the current state is Stable." in refused, refused
        kept = tool(world, STREAMS_GROUPS, "--delete", "--group", group)
        assert f"Streams group '{group}' is not EMPTY." in kept, kept


def an_empty_streams_group_is_reset_and_deleted(world: World) -> None:
    topic, group = filled(world, 5), world.name("streams")
    with member_of(world, group, topic):
        pass
    reset = ("--reset-offsets", "--group", group, "--input-topic", topic, "--to-latest")
    for how in ("--dry-run", "--execute"):
        printed = tool(world, STREAMS_GROUPS, *reset, how)
        assert re.search(rf"{group}\s+{topic}\s+0\s+5\b", printed), printed
    forgotten = tool(world, STREAMS_GROUPS, "--delete-offsets", "--group", group, "--input-topic", topic)
    assert re.search(rf"{topic}\s+0\s+Successful", forgotten), forgotten
    deleted = tool(world, STREAMS_GROUPS, "--delete", "--group", group)
    assert f"Deletion of requested streams groups ('{group}') was successful." in deleted, deleted
    assert group not in tool(world, STREAMS_GROUPS, "--list").split()


CHECKS: tuple[Callable[[World], None], ...] = (
    a_streams_group_that_lives_is_shown_and_kept,
    an_empty_streams_group_is_reset_and_deleted,
)


def member_of(world: World, group: str, topic: str) -> AbstractContextManager[None]:
    """A member of a streams group that commits the first record of this topic, and beats as long as a check
    takes.
    """

    def live(client: Client, life: Life) -> None:
        tasks: list[beating.TaskIds] = []
        answer = send(client, 0, tasks)
        while life.goes_on():
            if answer.active_tasks is not None:
                tasks = [
                    beating.TaskIds(subtopology_id=each.subtopology_id, partitions=each.partitions)
                    for each in answer.active_tasks
                ]
            if tasks and not life.has_assignment.is_set():
                commit(client, answer.member_epoch)
                life.has_assignment.set()
            answer = send(client, answer.member_epoch, tasks)
        send(client, -1, tasks)

    def commit(client: Client, epoch: int) -> None:
        place = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=epoch,
            member_id="m",
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[place])],
        )
        # The last version that names its topics.
        answer = client.at_coordinator(group, lambda node_id: client.send(request, node_id, 9))
        assert not answer.topics[0].partitions[0].error_code, answer

    def send(client: Client, epoch: int, tasks: list[beating.TaskIds]) -> StreamsGroupHeartbeatResponse:
        part = beating.Subtopology(
            subtopology_id="0",
            source_topics=[topic],
            source_topic_regex=[],
            state_changelog_topics=[],
            repartition_sink_topics=[],
            repartition_source_topics=[],
            copartition_groups=[],
        )
        request = beating.StreamsGroupHeartbeatRequest(
            group_id=group, member_id="m", member_epoch=epoch, endpoint_information_epoch=0
        )
        if epoch == 0:
            request.rebalance_timeout_ms = 60_000
            request.topology = beating.Topology(epoch=0, subtopologies=[part])
            request.process_id = "p"
        if epoch >= 0:
            request.active_tasks = tasks
            request.standby_tasks = []
            request.warmup_tasks = []
        answer: StreamsGroupHeartbeatResponse = beat(client, group, request)
        return answer

    return member(world, live)


def run(world: World, report: Callable[[str], None]) -> list[str]:
    """All checks: their failures."""
    failures: list[str] = []
    for check in CHECKS:
        failures += tried(f"{check.__name__.replace('_', ' ')}", partial(check, world), report)
    return failures
