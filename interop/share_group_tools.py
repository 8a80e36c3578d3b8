"""Apache Kafka's tools for share groups, as they are, against the broker."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial

from interop.checks import tried
from interop.live_members import Life, beat, member
from interop.scenarios.data import NOON_MS
from interop.tools import filled, tool
from interop.world import World
from pykafka_broker.client.blocking import Client
from pykafka_broker.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

SHARE_GROUPS = "consumer.group.ShareGroupCommand"


def a_share_group_is_listed_described_reset_and_deleted(world: World) -> None:
    topic, group = filled(world, 5), world.name("shares")
    reset = tool(
        world,
        SHARE_GROUPS,
        *("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute"),
    )
    assert re.search(rf"{group}\s+{topic}\s+0\s+0\b", reset), reset
    assert group in tool(world, SHARE_GROUPS, "--list").split()
    described = tool(world, SHARE_GROUPS, "--describe", "--group", group)
    assert re.search(rf"{group}\s+{topic}\s+0\s+0\s+5\b", described), described
    dry = tool(
        world,
        SHARE_GROUPS,
        *("--reset-offsets", "--group", group, "--all-topics", "--to-latest", "--dry-run"),
    )
    assert re.search(rf"{group}\s+{topic}\s+0\s+5\b", dry), dry
    tool(
        world,
        SHARE_GROUPS,
        *("--reset-offsets", "--group", group, "--all-topics", "--execute"),
        *("--to-datetime", datetime.fromtimestamp(NOON_MS / 1000 + 2, UTC).strftime("%Y-%m-%dT%H:%M:%S.000")),
    )
    verbose = tool(world, SHARE_GROUPS, "--describe", "--group", group, "--offsets", "--verbose")
    assert re.search(rf"{group}\s+{topic}\s+0\s+0\s+2\s+3\b", verbose), verbose
    deleted = tool(world, SHARE_GROUPS, "--delete", "--group", group)
    assert f"Deletion of requested share groups ('{group}') was successful." in deleted, deleted
    assert group not in tool(world, SHARE_GROUPS, "--list").split()


def topics_of_a_share_group_are_forgotten(world: World) -> None:
    kept, gone, group = filled(world, 2), filled(world, 2), world.name("forgets")
    tool(
        world,
        SHARE_GROUPS,
        *("--reset-offsets", "--group", group, "--to-latest", "--execute"),
        *("--topic", kept, "--topic", gone),
    )
    printed = tool(world, SHARE_GROUPS, "--delete-offsets", "--group", group, "--topic", gone)
    assert re.search(rf"{gone}\s+Successful", printed), printed
    described = tool(world, SHARE_GROUPS, "--describe", "--group", group)
    assert kept in described and gone not in described, described


def a_share_group_that_lives_is_shown_and_keeps_its_offsets(world: World) -> None:
    topic, group = filled(world, 3), world.name("lives")
    with member_of(world, group, topic):
        state = tool(world, SHARE_GROUPS, "--describe", "--group", group, "--state")
        assert re.search(rf"{group}\s+\S+\s+\(\d+\)\s+Stable\s+1\b", state), state
        members = tool(world, SHARE_GROUPS, "--describe", "--group", group, "--members", "--verbose")
        assert re.search(rf"{group}\s+m\s+/127\.0\.0\.1\s+\S+\s+1\s+\d+\s+{topic}:0\b", members), members
        assert re.search(rf"{group}\s+Stable", tool(world, SHARE_GROUPS, "--list", "--state", "stable"))
        listed = tool(world, "GroupsCommand", "--list", "--share")
        assert re.search(rf"{group}\s+Share\s+share", listed), listed
        reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
        refused = tool(world, SHARE_GROUPS, *reset, expect_failure=True)
        assert f"Share group '{group}' is not empty." in refused, refused
        kept = tool(world, SHARE_GROUPS, "--delete-offsets", "--group", group, "--topic", topic)
        assert "The group is not empty." in kept, kept
        there = tool(world, SHARE_GROUPS, "--delete", "--group", group)
        assert f"Share group '{group}' is not EMPTY." in there, there


def the_console_share_consumer_releases_rejects_and_accepts(world: World) -> None:
    topic, group = filled(world, 2), world.name("console")
    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
    tool(world, SHARE_GROUPS, *reset)

    def consumed(*how: str) -> list[str]:
        printed = tool(
            world,
            "consumer.ConsoleShareConsumer",
            *("--group", group, "--topic", topic, "--timeout-ms", "10000", *how),
            *("--formatter-property", "print.delivery=true"),
        )
        return [line for line in printed.splitlines() if line.startswith("Delivery:")]

    assert consumed("--release", "--max-messages", "2") == ["Delivery:1\t0", "Delivery:1\t1"]
    assert consumed("--reject", "--max-messages", "1")[0] == "Delivery:2\t0"
    left = consumed()
    assert all(line.endswith("\t1") for line in left), left
    assert not consumed()
    described = tool(world, SHARE_GROUPS, "--describe", "--group", group)
    assert re.search(rf"{group}\s+{topic}\s+0\s+\d\s+0\b", described), described


def the_verifiable_and_the_performance_share_consumer_run(world: World) -> None:
    topic, group = filled(world, 50), world.name("verifiable")
    printed = tool(
        world,
        "VerifiableShareConsumer",
        *("--topic", topic, "--group-id", group, "--max-messages", "50"),
        *("--acknowledgement-mode", "sync", "--offset-reset-strategy", "earliest"),
    )
    events = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    acknowledged = sum(event["count"] for event in events if event["name"] == "offsets_acknowledged")
    assert acknowledged == 50, printed
    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
    tool(world, SHARE_GROUPS, *reset)
    arguments = ("--topic", topic, "--group", group, "--num-records", "50", "--timeout", "30000")
    performed = tool(world, "ShareConsumerPerformance", *arguments, "--hide-header")
    assert re.search(r", 50, ", performed), performed


CHECKS: tuple[Callable[[World], None], ...] = (
    a_share_group_is_listed_described_reset_and_deleted,
    topics_of_a_share_group_are_forgotten,
    a_share_group_that_lives_is_shown_and_keeps_its_offsets,
    the_console_share_consumer_releases_rejects_and_accepts,
    the_verifiable_and_the_performance_share_consumer_run,
)


def member_of(world: World, group: str, topic: str) -> AbstractContextManager[None]:
    """A member of a share group that has its partitions, and beats as long as a check takes."""

    def live(client: Client, life: Life) -> None:
        answer = send(client, 0)
        while life.goes_on():
            if answer.assignment is not None and answer.assignment.topic_partitions:
                life.has_assignment.set()
            answer = send(client, answer.member_epoch)
        send(client, -1)

    def send(client: Client, epoch: int) -> ShareGroupHeartbeatResponse:
        topics = None if epoch else [topic]
        request = ShareGroupHeartbeatRequest(
            group_id=group, member_id="m", member_epoch=epoch, subscribed_topic_names=topics
        )
        answer: ShareGroupHeartbeatResponse = beat(client, group, request)
        return answer

    return member(world, live)


def run(world: World, report: Callable[[str], None]) -> list[str]:
    """All checks: their failures."""
    failures: list[str] = []
    for check in CHECKS:
        failures += tried(f"{check.__name__.replace('_', ' ')}", partial(check, world), report)
    return failures
