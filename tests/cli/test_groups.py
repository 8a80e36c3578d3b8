"""`groups`: offsets, lags, members and states in kafka-consumer-groups.sh's form; resetting and deleting."""

from __future__ import annotations

import gc
import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import pytest
from kafka import KafkaConsumer

from pykafka_broker.cli.offsets import parse_duration_ms, parse_time_ms
from pykafka_broker.client.blocking import Client
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.apis.streaming import beating, reading, tasks
from tests.cli.conftest import Run

#: So that no two tests share a group.
numbers = count(1)

PLACES = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
GROUP_RESOURCE = 32
NO_MEMBERS = "\nConsumer group '{}' has no active members.\n"


@pytest.fixture
def read_group(run: Run) -> str:
    """A group that has read 2 of 5 records of the topic of the same name."""
    name = f"read-group-{next(numbers)}"
    run("topics", "create", name)
    run("produce", name, "-t", "1767323045000", "0", "1", "2")
    run("produce", name, "-t", "1767323046000", "3", "4")
    run("consume", name, "-g", name, "-n", "2")
    return name


@contextmanager
def member_of(group: str, topic: str, broker: str) -> Iterator[KafkaConsumer]:
    """A member of a group that has its partitions."""
    member = KafkaConsumer(
        bootstrap_servers=broker, group_id=group, client_id="reader", enable_auto_commit=False
    )
    try:
        # kafka-python 3.0.12 may join before it knows the topic's partitions, and then keeps having none.
        assert member.partitions_for_topic(topic) == {0}
        member.subscribe([topic])
        while not member.assignment():
            member.poll(timeout_ms=100, max_records=1)
        yield member
    finally:
        member.close()
        # kafka-python 3.0.12 forgets the socket of a connection that it is just opening: collected here, it
        # disturbs no other test.
        with warnings.catch_warnings(action="ignore", category=ResourceWarning):
            gc.collect()


@pytest.fixture
def consumer(broker: str, read_group: str) -> Iterator[KafkaConsumer]:
    """A member of the group."""
    with member_of(read_group, read_group, broker) as member:
        yield member


def rows(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines() if line]


def test_offsets_are_described_with_their_lag(run: Run, read_group: str) -> None:
    result = run("groups", "describe", read_group)
    assert result.err == NO_MEMBERS.format(read_group)
    assert rows(result.out) == [
        [*PLACES, "CONSUMER-ID", "HOST", "CLIENT-ID"],
        [read_group, read_group, "0", "2", "5", "3", "-", "-", "-"],
    ]


def test_columns_are_as_wide_as_kafkas(run: Run) -> None:
    run("topics", "create", "t")
    run("produce", "t", "x")
    run("consume", "t", "-g", "g", "-u", "end")
    assert run("groups", "describe", "g").out == (
        "\n"
        "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             "
        "CONSUMER-ID     HOST            CLIENT-ID\n"
        "g               t               0          1               1               0               "
        "-               -               -\n"
    )


def test_the_state_names_the_coordinator(run: Run, broker: str, read_group: str) -> None:
    head, row = rows(run("groups", "describe", read_group, "--state").out)
    assert head == ["GROUP", "COORDINATOR", "(ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    assert row == [read_group, broker, "(1)", "-", "Empty", "0"]


def test_members_are_described_with_what_they_read(
    run: Run, read_group: str, consumer: KafkaConsumer
) -> None:
    head, row = rows(run("groups", "describe", read_group, "--members").out)
    assert head == ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    assert row[0] == read_group
    assert row[2:] == ["/127.0.0.1", "reader", "1"]
    _, owned = rows(run("groups", "describe", read_group).out)
    assert owned[7:] == ["/127.0.0.1", "reader"]


def test_groups_are_listed_with_their_states(run: Run, read_group: str) -> None:
    assert read_group in run("groups", "list").out.splitlines()
    assert [read_group, "Empty"] in rows(run("groups", "list", "--state").out)


def test_all_groups_are_described_if_none_is_named(run: Run, read_group: str) -> None:
    assert [read_group, read_group, "0", "2", "5", "3", "-", "-", "-"] in rows(run("groups", "describe").out)


def test_a_group_that_is_not_there_is_not_found(run: Run) -> None:
    result = run("groups", "describe", "unknown")
    assert (result.status, result.err) == (1, "Error: Group unknown not found.\n")


@pytest.mark.parametrize(
    ("where", "offset"),
    [
        (["--to-earliest"], "0"),
        (["--to-latest"], "5"),
        (["--to-current"], "2"),
        (["--to-offset", "1"], "1"),
        (["--to-offset", "99"], "5"),
        (["--shift-by", "2"], "4"),
        (["--shift-by", "-9"], "0"),
        (["--to-datetime", "2026-01-02T03:04:06+00:00"], "3"),
        (["--to-datetime", "2100-01-01T00:00:00"], "5"),
        (["--by-duration", "PT5M"], "5"),
    ],
    ids=lambda value: "".join(value) if isinstance(value, list) else value,
)
def test_offsets_move_where_one_says(run: Run, read_group: str, where: list[str], offset: str) -> None:
    shown = run("groups", "reset-offsets", read_group, "--topic", read_group, *where)
    assert rows(shown.out)[1] == [read_group, read_group, "0", offset]


def test_nothing_moves_without_execute(run: Run, read_group: str) -> None:
    result = run("groups", "reset-offsets", read_group, "--all-topics", "--to-earliest")
    assert "Nothing is changed yet" in result.err
    assert rows(run("groups", "describe", read_group).out)[1][3] == "2"
    run("groups", "reset-offsets", read_group, "--all-topics", "--to-earliest", "--execute")
    assert rows(run("groups", "describe", read_group).out)[1][3] == "0"


def test_a_group_with_members_is_not_moved(run: Run, read_group: str, consumer: KafkaConsumer) -> None:
    result = run("groups", "reset-offsets", read_group, "--all-topics", "--to-latest", "--execute")
    assert result.status == 1
    assert "can only be reset if the group" in result.err


@pytest.mark.parametrize(
    "arguments",
    [["--all-topics"], ["--to-latest"], ["--all-topics", "--to-latest", "--to-earliest"]],
    ids=["no target", "no topics", "two targets"],
)
def test_an_unclear_reset_is_wrong_usage(run: Run, arguments: list[str]) -> None:
    assert run("groups", "reset-offsets", "g", *arguments).status == 2


def test_partitions_of_a_topic_can_be_chosen(run: Run) -> None:
    run("topics", "create", "several", "-p", "3")
    result = run("groups", "reset-offsets", "g2", "--topic", "several:0,2", "--to-latest")
    assert [row[2] for row in rows(result.out)[1:]] == ["0", "2"]
    result = run("groups", "reset-offsets", "g2", "--topic", "several:5", "--to-latest")
    assert result.err == "Error: Topic 'several' has no partition 5.\n"


def test_a_deleted_group_is_gone(run: Run, read_group: str) -> None:
    deleted = run("groups", "delete", read_group)
    assert deleted.out == f"Deletion of requested consumer groups ('{read_group}') was successful.\n"
    assert read_group not in run("groups", "list").out.splitlines()
    again = run("groups", "delete", read_group)
    assert again.status == 1
    assert f"* Group '{read_group}' could not be deleted due to:" in again.err


def test_a_group_of_an_application_is_shown_with_what_its_tasks_read(run: Run, broker: str) -> None:
    name = f"application-{next(numbers)}"
    run("topics", "create", f"{name}-wide", "-p", "3")
    run("topics", "create", f"{name}-narrow", "-p", "2")
    group = AlterConfigsResource(
        resource_type=GROUP_RESOURCE,
        resource_name=name,
        configs=[
            AlterableConfig(name="streams.initial.rebalance.delay.ms", config_operation=0, value="0"),
        ],
    )
    joining = beating("m", group=name, topology=reading(f"{name}-wide", f"{name}-narrow"))
    with Client(broker) as client:
        client.send(IncrementalAlterConfigsRequest(resources=[group], validate_only=False))
        joined = client.at_coordinator(name, lambda node_id: client.send(joining, node_id))
        assert joined.active_tasks == tasks(0, 1, 2)

    listed = json.loads(run("groups", "list", "--json").out)["groups"]
    [mine] = [each for each in listed if each["group"] == name]
    assert (mine["type"], mine["state"], mine["protocol_type"]) == ("streams", "Stable", "streams")
    assert [row[1:3] for row in rows(run("groups", "describe", name).out)[1:]] == [
        [f"{name}-narrow", "0"],
        [f"{name}-narrow", "1"],
        *([f"{name}-wide", str(partition)] for partition in range(3)),
    ]
    assert rows(run("groups", "describe", name, "--state").out)[1][-2:] == ["Stable", "1"]
    assert [name, "Stable"] in rows(run("groups", "list", "--state").out)
    refused = run("groups", "reset-offsets", name, "--topic", f"{name}-wide", "--to-latest", "--execute")
    assert "can only be reset if the group" in refused.err
    assert "could not be deleted" in run("groups", "delete", name).err


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("PT0.5S", 500), ("PT15M", 900_000), ("P1DT2H", 93_600_000), ("p2d", 172_800_000)],
)
def test_durations_are_read_as_iso_8601(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["P", "PT", "1D", "P1H", ""])
def test_other_durations_are_wrong_usage(text: str) -> None:
    with pytest.raises(Exception, match="is no duration"):
        parse_duration_ms(text)


def test_times_are_milliseconds_or_iso_8601() -> None:
    assert parse_time_ms("1767323045000") == 1767323045000
    assert parse_time_ms("2026-01-02T03:04:05+00:00") == 1767323045000
    with pytest.raises(Exception, match="is no time"):
        parse_time_ms("yesterday")


@pytest.mark.parametrize(("partitions", "wrong"), [("x", "x"), ("0,x", "x"), ("", ""), ("0,-1", "-1")])
def test_partitions_that_are_no_numbers_are_refused(run: Run, partitions: str, wrong: str) -> None:
    result = run("groups", "reset-offsets", "g", "--topic", f"t:{partitions}", "--to-earliest", "--execute")
    assert (result.status, result.out) == (2, "")
    assert result.err.endswith(f"Invalid value for --topic: {wrong!r} is no partition of 't'\n")


def test_a_duration_that_no_time_can_be_is_wrong_usage(run: Run, read_group: str) -> None:
    reset = ("groups", "reset-offsets", read_group, "--all-topics", "--by-duration")
    result = run(*reset, "P99999999999999D")
    assert result.status == 2
    assert "is longer than" in result.err
    # Longer ago than 1970: everything.
    assert rows(run(*reset, "P99999999999D").out)[-1][-1] == "0"


def test_a_person_sees_who_has_what(
    run: Run, read_group: str, consumer: KafkaConsumer, terminal: Callable[[int], None]
) -> None:
    def shown(*options: str) -> list[list[str]]:
        result = run("groups", "describe", read_group, *options)
        assert (result.status, result.err) == (0, "")
        return [line.split() for line in result.out.splitlines()]

    terminal(80)
    title, details, _, row, note = shown()
    assert title == [read_group]
    assert details == ["state:", "Stable", "members:", "1", "lag:", "3"]
    assert row[:5] == [read_group, "0", "2", "5", "3"]
    assert re.fullmatch(r"reader.*….{6,}", row[5])
    assert "HOST;" in note
    terminal(160)
    *_, members = shown("--members")
    assert members[1:] == ["reader", "/127.0.0.1", "1", f"{read_group}:0"]
    assert re.fullmatch(r"reader-[0-9a-f-]{36}", members[0])
    assert shown("--state")[1][:4] == ["state:", "Stable", "members:", "1"]
    listed = [line.split() for line in run("groups", "list").out.splitlines()]
    assert [read_group, "Stable", "classic", "consumer"] in listed


def test_a_lag_that_is_not_known_is_no_lag_of_0(
    run: Run, broker: str, terminal: Callable[[int], None]
) -> None:
    run("topics", "create", "uncommitted")
    with member_of("uncommitted", "uncommitted", broker):
        terminal(160)
        _, details, _, row = run("groups", "describe", "uncommitted").out.splitlines()
        assert details.split() == ["state:", "Stable", "members:", "1", "lag:", "-"]
        assert row.split()[:4] == ["uncommitted", "0", "0", "-"]
