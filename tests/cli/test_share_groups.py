"""`share-groups`: offsets, lags, members and states in kafka-share-groups.sh's form, resets and deletions."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import count

import pytest

from pykafka_broker.client.blocking import Client
from pykafka_broker.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from tests.cli.conftest import Run

#: So that no two tests share a group.
numbers = count(1)
#: The longest wait for a member to have its partitions.
PATIENCE_S = 60


class Member:
    """A member of a share group, which beats when it is told to."""

    def __init__(self, broker: str, group: str, topic: str) -> None:
        self._broker = broker
        self._group = group
        self._topic = topic
        self.epoch = 0

    def beat(self, epoch: int) -> ShareGroupHeartbeatResponse:
        request = ShareGroupHeartbeatRequest(
            group_id=self._group,
            member_id="m",
            member_epoch=epoch,
            rack_id="r",
            subscribed_topic_names=None if epoch else [self._topic],
        )
        with Client(self._broker) as client:
            answer: ShareGroupHeartbeatResponse = client.at_coordinator(
                self._group, lambda node_id: client.send(request, node_id)
            )
        assert not answer.error_code, answer
        return answer

    def join(self) -> Member:
        """Join, and wait for partitions."""
        deadline = time.monotonic() + PATIENCE_S
        answer = self.beat(0)
        while answer.assignment is None or not answer.assignment.topic_partitions:
            assert time.monotonic() < deadline, answer
            answer = self.beat(answer.member_epoch)
        self.epoch = answer.member_epoch
        return self

    def leave(self) -> None:
        self.beat(-1)


@pytest.fixture
def topic(run: Run) -> str:
    """A topic with 5 records in partition 0 and none in partition 1."""
    name = f"shared-{next(numbers)}"
    run("topics", "create", name, "--partitions", "2")
    run("produce", name, "--partition", "0", "-t", "1767323045000", "0", "1", "2")
    run("produce", name, "--partition", "0", "-t", "1767323046000", "3", "4")
    return name


@pytest.fixture
def group(run: Run, topic: str) -> str:
    """A group of the same name that starts reading partition 0 at offset 2."""
    moved = run(
        "share-groups", "reset-offsets", topic, "--topic", f"{topic}:0", "--to-offset", "2", "--execute"
    )
    assert moved.status == 0, moved
    return topic


def rows(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines() if line]


def test_offsets_are_described_with_their_lag(run: Run, group: str) -> None:
    described = run("share-groups", "describe", group)
    assert (described.status, described.err) == (0, "")
    assert rows(described.out) == [
        ["GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG"],
        [group, group, "0", "2", "3"],
    ]


def test_epochs_are_described_when_asked_for(run: Run, group: str) -> None:
    assert rows(run("share-groups", "describe", group, "--verbose").out) == [
        ["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "START-OFFSET", "LAG"],
        [group, group, "0", "0", "2", "3"],
    ]


def test_columns_are_as_wide_as_kafkas(run: Run, group: str) -> None:
    assert run("share-groups", "describe", group).out == (
        "\n"
        f"GROUP           TOPIC           PARTITION  START-OFFSET  LAG\n"
        f"{group:<15} {group:<15} 0          2             3\n"
    )


def test_the_state_names_the_coordinator(run: Run, broker: str, group: str) -> None:
    described = run("share-groups", "describe", group, "--state")
    assert described.err == f"\nShare group '{group}' has no active members.\n"
    titles, values = rows(described.out)
    assert titles == ["GROUP", "COORDINATOR", "(ID)", "STATE", "#MEMBERS"]
    assert values == [group, broker, "(1)", "Empty", "0"]
    _, values = rows(run("share-groups", "describe", group, "--state", "--verbose").out)
    assert values[3:] == ["Empty", "1", "1", "0"]


def test_members_are_described_with_what_they_read(run: Run, broker: str, topic: str) -> None:
    member = Member(broker, topic, topic).join()
    titles, values = rows(run("share-groups", "describe", topic, "--members").out)
    assert titles == ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT"]
    assert values == [topic, "m", "/127.0.0.1", values[3], "2", f"{topic}:0,1"]
    _, values = rows(run("share-groups", "describe", topic, "--members", "--verbose").out)
    assert values[5:] == [str(member.epoch), f"{topic}:0,1"]


def test_a_group_without_members_has_no_lines_for_them(run: Run, group: str) -> None:
    described = run("share-groups", "describe", group, "--members")
    assert described == (0, "", f"\nShare group '{group}' has no active members.\n")


def test_what_is_not_decided_is_a_dash(run: Run, broker: str, topic: str) -> None:
    Member(broker, topic, topic).join()
    assert rows(run("share-groups", "describe", topic).out)[1:] == [
        [topic, topic, "0", "-", "-"],
        [topic, topic, "1", "-", "-"],
    ]
    [described] = json.loads(run("share-groups", "describe", topic, "--json").out)["groups"]
    assert described["offsets"][1] == {
        "topic": topic,
        "partition": 1,
        "start_offset": None,
        "leader_epoch": None,
        "lag": None,
    }


def test_groups_are_listed_with_their_states_and_without_other_kinds(
    run: Run, broker: str, group: str, topic: str
) -> None:
    run("consume", topic, "-g", f"consumers-{topic}", "-n", "1")
    assert group in run("share-groups", "list").out.splitlines()
    listed = rows(run("share-groups", "list", "--state").out)
    assert [group, "Empty"] in listed
    assert not [line for line in listed if line[0].startswith("consumers-")]


def test_all_groups_are_listed_with_their_kinds(run: Run, group: str) -> None:
    listed = json.loads(run("groups", "list", "--json").out)["groups"]
    assert {"group": group, "state": "Empty", "type": "share", "protocol_type": "share"} in listed


def test_consumer_groups_are_described_without_share_groups(run: Run, group: str) -> None:
    run("consume", group, "-g", f"consumers-{group}", "-n", "1")
    described = json.loads(run("groups", "describe", "--json").out)["groups"]
    assert {each["group"] for each in described} >= {f"consumers-{group}"}
    assert group not in {each["group"] for each in described}
    refused = run("groups", "describe", group)
    assert (refused.status, refused.out) == (1, "")
    assert refused.err.endswith("`share-groups` has share groups.\n")


def test_a_group_that_is_not_there_is_not_found(run: Run, group: str) -> None:
    described = run("share-groups", "describe", f"{group}x")
    assert described.status == 1
    assert described.err == f"Error: Group {group}x not found. Did you mean {group!r}?\n"


@pytest.mark.parametrize(
    ("where", "offset"),
    [
        (["--to-earliest"], "0"),
        (["--to-latest"], "5"),
        (["--to-offset", "4"], "4"),
        (["--to-offset", "40"], "5"),
        (["--to-datetime", "1767323046000"], "3"),
        (["--by-duration", "PT1S"], "5"),
    ],
)
def test_a_group_starts_where_one_says(run: Run, group: str, where: list[str], offset: str) -> None:
    moved = run("share-groups", "reset-offsets", group, "--all-topics", *where, "--execute")
    assert (moved.status, moved.err) == (0, "")
    assert rows(moved.out) == [["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"], [group, group, "0", offset]]
    assert rows(run("share-groups", "describe", group).out)[1][3] == offset


def test_nothing_moves_without_execute(run: Run, group: str) -> None:
    moved = run("share-groups", "reset-offsets", group, "--topic", group, "--to-latest")
    assert [row[2:] for row in rows(moved.out)[1:]] == [["0", "5"], ["1", "0"]]
    assert moved.err == "\nNothing is changed yet: repeat with --execute.\n"
    assert rows(run("share-groups", "describe", group).out)[1:] == [[group, group, "0", "2", "3"]]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--all-topics"],
        ["--to-earliest"],
        ["--all-topics", "--to-earliest", "--to-latest"],
        ["--all-topics", "--topic", "t", "--to-earliest"],
    ],
)
def test_an_unclear_reset_is_wrong_usage(run: Run, arguments: list[str]) -> None:
    assert run("share-groups", "reset-offsets", "g", *arguments).status == 2


def test_a_group_with_members_keeps_its_offsets(run: Run, broker: str, group: str) -> None:
    member = Member(broker, group, group).join()
    for command, why in (
        (("reset-offsets", group, "--all-topics", "--to-latest"), f"Share group '{group}' is not empty."),
        (("delete-offsets", group, "--topic", group), "The group is not empty."),
        (
            ("delete", group),
            "Deletion of some share groups failed:\n"
            f"* Group '{group}' could not be deleted due to: Share group '{group}' is not EMPTY.",
        ),
    ):
        refused = run("share-groups", *command)
        assert (refused.status, refused.err) == (1, f"Error: {why}\n")
    member.leave()
    assert run("share-groups", "delete", group).status == 0


def test_a_deleted_group_is_gone(run: Run, group: str) -> None:
    deleted = run("share-groups", "delete", group, "none")
    assert deleted.status == 1
    assert deleted.out == f"Deletion of requested share groups ('{group}') was successful.\n"
    assert deleted.err == (
        "Error: Deletion of some share groups failed:\n"
        "* Group 'none' could not be deleted due to: Group 'none' is not a share group.\n"
    )
    assert group not in run("share-groups", "list").out.splitlines()


def test_a_topic_is_forgotten(run: Run, group: str) -> None:
    forgotten = run("share-groups", "delete-offsets", group, "--topic", group, "--topic", "none")
    assert forgotten.status == 1
    assert forgotten.out.splitlines() == [
        "",
        "TOPIC           STATUS",
        "none            Error: This server does not host this topic-partition.",
        f"{group:<15} Successful",
    ]
    described = run("share-groups", "describe", group)
    assert described.out == f"\nShare group '{group}' has no offset information.\n"


def test_a_person_sees_who_reads_what(
    run: Run, broker: str, topic: str, terminal: Callable[[int], None]
) -> None:
    member = Member(broker, topic, topic).join()
    terminal(160)
    shown = rows(run("share-groups", "describe", topic, "--members").out)
    assert shown[0] == [topic]
    assert shown[1] == ["state:", "Stable", "members:", "1"]
    assert shown[-1] == ["m", shown[-1][1], "/127.0.0.1", "r", str(member.epoch), "2", f"{topic}:0,1"]
    member.leave()
    run("share-groups", "reset-offsets", topic, "--topic", f"{topic}:0", "--to-offset", "2", "--execute")
    shown = rows(run("share-groups", "describe", topic).out)
    assert shown[1] == ["state:", "Empty", "members:", "0", "lag:", "3"]
    assert shown[-2:] == [[topic, "0", "0", "2", "3"], [topic, "1", "-", "-", "-"]]
