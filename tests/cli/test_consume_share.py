"""`consume --share`: reading as a member of a share group."""

from __future__ import annotations

from itertools import count

import pytest

from tests.cli.conftest import Run

numbers = count()
#: So long nothing comes before a read ends: it includes the time in which the group comes about.
IDLE = ("--idle", "3")


@pytest.fixture
def topic(run: Run) -> str:
    """A topic with four records, and a group of the same name that begins at its start."""
    name = f"parcels-{next(numbers)}"
    run("topics", "create", name, "-p", "1")
    run("configs", "alter", "--group", name, "--set", "share.auto.offset.reset=earliest")
    run("produce", name, stdin=b"a\nb\nc\nd\n")
    return name


def test_each_record_is_delivered_until_it_is_accepted(run: Run, topic: str) -> None:
    two = run("consume", topic, "--share", topic, "-n", "2")
    assert (two.status, two.out, two.err) == (0, "a\nb\n", "Processed a total of 2 messages\n")
    released = run("consume", topic, "--share", topic, "--release", "-n", "2")
    assert released.out == "c\nd\n"
    assert run("consume", topic, "--share", topic, *IDLE).out == "c\nd\n"
    assert run("consume", topic, "--share", topic, *IDLE).out == ""


def test_a_record_that_is_rejected_is_not_delivered_again(run: Run, topic: str) -> None:
    assert run("consume", topic, "--share", topic, "--reject", "-n", "4").out == "a\nb\nc\nd\n"
    assert run("consume", topic, "--share", topic, *IDLE).out == ""


def test_a_record_is_released_as_often_as_the_group_allows(run: Run, topic: str) -> None:
    run("configs", "alter", "--group", topic, "--set", "share.delivery.count.limit=3")
    released = run("consume", topic, "--share", topic, "--release", *IDLE)
    assert sorted(released.out.split()) == sorted("abcd" * 3)


def test_parts_of_a_record_are_shown_as_without_a_group(run: Run, topic: str) -> None:
    shown = run("consume", topic, "--share", topic, "-n", "1", "--print", "partition,offset,value")
    assert shown.out == "Partition:0\tOffset:0\ta\n"


@pytest.mark.parametrize(
    "options, told",
    [
        (("--reject",), "--reject and --release need --share."),
        (("--share", "g", "--reject", "--release"), "A record is either rejected or released."),
        (("--share", "g", "--from", "end"), "--from does not go along with --share"),
        (("--share", "g", "-p", "0"), "--partition does not go along with --share"),
        (("--share", "g", "--read-committed"), "--read-committed does not go along with --share"),
    ],
)
def test_what_a_share_group_decides_for_itself_cannot_be_asked_for(
    run: Run, options: tuple[str, ...], told: str
) -> None:
    refused = run("consume", "orders", *options)
    assert refused.status == 2
    assert told in refused.err
