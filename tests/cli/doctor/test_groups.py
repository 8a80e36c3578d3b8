"""Groups, judged from two looks at each."""

from __future__ import annotations

import subprocess

import pytest

from pykafka_broker.cli.doctor.groups import Look, judge, judge_missing, may_be_stuck
from pykafka_broker.cli.group_state import Coordinator, Group, Member
from pykafka_broker.doctor.findings import Finding, Level, ok
from pykafka_broker.doctor.topics import Offsets
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.protocol.topic_partition import TopicPartition as Assigned
from pykafka_broker.system.wording import argument

FIRST, SECOND = ("orders", 0), ("orders", 1)
OFFSETS = {FIRST: Offsets(0, 100, 100), SECOND: Offsets(0, 100, 100)}


def member(name: str, *partitions: PartitionKey) -> Member:
    assignment = tuple(Assigned(*partition) for partition in partitions)
    return Member(f"{name}-id", f"/{name}-host", name, assignment)


READER = member("reader", FIRST)


def look(*members: Member, state: str = "Stable", committed: dict[PartitionKey, int] | None = None) -> Look:
    return Look(Group("billing", state, "range", Coordinator(1, "h", 9092), members), committed or {})


def judged(before: Look, after: Look, offsets: dict[PartitionKey, Offsets] = OFFSETS) -> Finding:
    (finding,) = judge(before, after, offsets, 6.0, offsets)
    return finding


def test_a_group_that_moves_is_fine_however_far_behind() -> None:
    finding = judged(look(READER, committed={FIRST: 10}), look(READER, committed={FIRST: 20}))
    text = "Group 'billing' is Stable: 1 member, 80 offsets behind, and committed 10 offsets in 6 s."
    assert finding == ok("groups", "billing", text)


def test_a_group_at_the_end_need_not_move() -> None:
    finished = look(READER, committed={FIRST: 100})
    assert judged(finished, finished).level is Level.OK
    assert not may_be_stuck(finished, OFFSETS)


def test_a_group_that_stays_where_it_is_though_records_wait_is_stuck() -> None:
    stuck = look(READER, committed={FIRST: 10})
    assert may_be_stuck(stuck, OFFSETS)
    finding = judged(stuck, stuck)
    assert finding.level is Level.PROBLEM
    assert finding.message == (
        "Group 'billing' has not moved in orders-0 for 6 s, though 90 offsets wait there (reader at "
        "/reader-host)."
    )


def test_a_member_that_moves_elsewhere_may_be_slow() -> None:
    reader = member("reader", FIRST, SECOND)
    before, after = (look(reader, committed={FIRST: 10, SECOND: offset}) for offset in (20, 30))
    finding = judged(before, after)
    assert finding.level is Level.WARNING
    assert finding.message.endswith("In other partitions these members have moved meanwhile.")


def test_a_group_that_has_nothing_is_not_said_to_be_at_the_end() -> None:
    finding = judged(look(READER), look(state="Empty"))
    assert finding.message.startswith("Group 'billing' has neither members nor committed offsets: ")


def test_records_without_members_to_read_them_are_a_warning() -> None:
    left = look(state="Empty", committed={FIRST: 10, SECOND: 100})
    assert not may_be_stuck(left, OFFSETS)
    finding = judged(left, left)
    assert (finding.level, finding.subject) == (Level.WARNING, "billing")
    assert "has no members: 90 offsets wait in 1 partition" in finding.message


def test_a_group_without_members_at_the_end_has_done_its_work() -> None:
    done = look(state="Empty", committed={FIRST: 100})
    assert judged(done, done).level is Level.OK


def test_a_rebalance_that_does_not_end_is_a_problem() -> None:
    waiting = look(READER, member("other"), state="PreparingRebalance", committed={FIRST: 10})
    assert may_be_stuck(waiting, OFFSETS)
    finding = judged(waiting, waiting)
    assert finding.level is Level.PROBLEM
    assert (
        "was PreparingRebalance at two looks, 6 s apart: its members are to join again. It has 2 members"
        in finding.message
    )
    assert "max.poll.interval.ms, for another one at most for session.timeout.ms." in finding.remedy
    assert finding.remedy.endswith("\n  pykafka-broker explain group billing")
    assert "come and go" not in finding.message
    others = look(member("another"), state="PreparingRebalance", committed={FIRST: 10})
    assert judged(waiting, others).message.endswith(
        "Meanwhile other at /other-host, reader at /reader-host left; another at /another-host joined: "
        "clients come and go."
    )


def test_a_rebalance_that_ends_is_none() -> None:
    before = look(READER, state="CompletingRebalance", committed={FIRST: 10})
    assert judged(before, look(READER, committed={FIRST: 20})).level is Level.OK


@pytest.mark.parametrize(
    ("was", "now", "level"),
    [
        ("Stable", "PreparingRebalance", Level.PROBLEM),
        ("Assigning", "Reconciling", Level.PROBLEM),
        ("PreparingRebalance", "Stable", Level.WARNING),
        ("Stable", "Empty", Level.PROBLEM),
    ],
)
def test_a_group_whose_members_go_between_two_looks_is_not_fine(was: str, now: str, level: Level) -> None:
    """Before, a client that failed again and again was seen only if both looks met the same rebalance."""
    before = look(READER, member("other"), state=was, committed={FIRST: 10})
    stays = () if now == "Empty" else (member("other"),)
    finding = judged(before, look(*stays, state=now, committed={FIRST: 20}))
    assert finding.level is level
    left = "other at /other-host, reader at /reader-host" if now == "Empty" else "reader at /reader-host"
    assert f"Meanwhile {left} left: clients come and go." in finding.message
    assert "groups delete" not in finding.remedy


def test_offsets_that_were_removed_before_they_were_read_are_named() -> None:
    behind = look(READER, committed={FIRST: 10})
    finding = judged(behind, behind, {FIRST: Offsets(50, 100, 100)})
    assert finding.level is Level.PROBLEM
    assert (
        "whose first record is now 50: 40 offsets were removed before the group read them" in finding.message
    )
    assert "reset-offsets billing --topic orders:0 --to-earliest --execute" in finding.remedy


def test_an_offset_behind_the_end_comes_from_another_topic_of_that_name() -> None:
    ahead = look(READER, committed={FIRST: 500})
    finding = judged(ahead, ahead)
    assert "has committed offset 500 of orders-0, which ends at 100" in finding.message


def test_an_offset_of_a_partition_that_is_gone_is_a_warning() -> None:
    gone = look(READER, committed={("deleted", 0): 5, FIRST: 100})
    assert judged(gone, gone).level is Level.WARNING


def test_a_reader_of_committed_records_waits_for_the_end_of_a_transaction() -> None:
    held_up = look(READER, committed={FIRST: 40})
    finding = judged(held_up, held_up, {FIRST: Offsets(0, 100, 40)})
    assert finding.level is Level.WARNING
    assert "has read all committed records of orders-0" in finding.message


def test_a_partition_that_no_member_reads_is_a_warning() -> None:
    left_out = look(READER, committed={FIRST: 100, SECOND: 7})
    finding = judged(left_out, left_out)
    assert finding.level is Level.WARNING
    assert "of which none reads orders-1" in finding.message


def test_members_without_a_partition_are_more_than_can_read() -> None:
    crowded = look(READER, member("idle"), committed={FIRST: 100})
    finding = judged(crowded, crowded)
    assert finding.level is Level.WARNING
    assert finding.message == "Group 'billing' has 2 members for 1 partition: 1 member has nothing to read."


def test_a_missing_group_is_compared_with_those_that_exist() -> None:
    assert judge_missing("biling", ["billing"]).message.endswith(" Did you mean 'billing'?")


def test_a_group_that_never_committed_cannot_be_told_from_one_that_does_not_read() -> None:
    silent = look(READER)
    assert may_be_stuck(silent, OFFSETS)
    finding = judged(silent, silent)
    assert finding.level is Level.WARNING
    assert finding.message == (
        "Group 'billing' has never committed an offset in orders-0, nor in these 6 s, though there are "
        "100 offsets (reader at /reader-host). How far it has read cannot be told, and after a restart it "
        "begins where auto.offset.reset says."
    )


def test_a_first_commit_between_two_looks_is_enough() -> None:
    assert judged(look(READER), look(READER, committed={FIRST: 100})).level is Level.OK


def test_a_partition_without_records_needs_no_commit() -> None:
    silent = look(READER)
    assert judged(silent, silent, {FIRST: Offsets(7, 7, 7)}).level is Level.OK


def of_streams(seen: Look) -> Look:
    return seen._replace(is_of_streams=True)


def test_an_application_that_has_not_committed_for_a_moment_is_looked_at_for_longer() -> None:
    stuck = of_streams(look(READER, committed={FIRST: 10}))
    finding = judged(stuck, stuck)
    assert finding.level is Level.WARNING
    assert "has not moved in orders-0 for 6 s" in finding.message
    assert finding.remedy.endswith("pykafka-broker doctor --group billing --watch 35")
    (finding,) = judge(stuck, stuck, OFFSETS, 35.0, OFFSETS)
    assert finding.level is Level.PROBLEM


def test_members_of_an_application_may_have_standby_tasks_alone() -> None:
    replicated = of_streams(look(READER, member("standby"), committed={FIRST: 100}))
    assert judged(replicated, replicated).level is Level.OK


def test_an_application_whose_topics_are_missing_reads_nothing() -> None:
    waiting = of_streams(look(member("reader"), state="NotReady"))
    assert not may_be_stuck(waiting, OFFSETS)
    finding = judged(waiting, waiting)
    assert finding.level is Level.PROBLEM
    assert "is NotReady: the topics of its Kafka Streams application are missing" in finding.message


def test_names_that_others_chose_are_shown_and_quoted_as_they_are() -> None:
    left = look(state="Empty", committed={FIRST: 10})
    wicked = left._replace(group=left.group._replace(group="x; rm *\x1b[31m\n'"))
    finding = judged(wicked, wicked)
    assert 'Group "x; rm *\\x1b[31m\\n\'" has no members' in finding.message
    assert finding.remedy.endswith("\n  pykafka-broker groups delete $'x; rm *\\U0000001b[31m\\U0000000a\\''")
    hostile = member("reader", FIRST)._replace(client_id="a\x1b[2J")
    stuck = look(hostile, committed={FIRST: 10})
    assert judged(stuck, stuck).message.isprintable()


@pytest.mark.parametrize("name", ["billing", "x; echo no #", "it's", "tab\there", "\\ 'and' \x1b", "über 东"])
def test_bash_reads_a_quoted_name_as_it_is(name: str) -> None:
    quoted = argument(name)
    assert quoted.isprintable()
    said = subprocess.run(
        ["bash", "-c", f"printf %s {quoted}"], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert said.stdout.decode() == name
