"""JoinGroup: who becomes a member, who waits for whom, and how a generation begins."""

from __future__ import annotations

import pytest

from pykafka_broker.coordinator.groups.core.classic.records import new_group_record
from pykafka_broker.coordinator.groups.core.classic.state import Phase, Protocol
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import JoinedMember, JoinResult
from pykafka_broker.coordinator.groups.core.records import replay
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.groups import RANGE, START_MS, GroupWorld, subscription


def test_a_new_dynamic_member_is_given_its_id_and_told_to_come_back() -> None:
    world = GroupWorld()

    asked = world.join(version=4)

    assert world.answers[asked] == JoinResult(ErrorCode.MEMBER_ID_REQUIRED, "client-1")
    assert world.group().pending_members == {"client-1"}
    assert world.timers == {("session", "g", "client-1"): START_MS + 10_000}
    assert world.log == [new_group_record("g", START_MS)]


def test_before_version_4_a_new_member_needs_no_second_request() -> None:
    world = GroupWorld()

    asked = world.join(version=3)

    assert asked not in world.answers
    assert list(world.group().members) == ["client-1"]


def test_the_first_generation_begins_after_the_initial_delay_and_its_leader_sees_the_members() -> None:
    world = GroupWorld()
    member = world.new_member_id()
    token = world.join(member_id=member)

    world.advance(2_999)
    assert token not in world.answers
    world.advance(1)

    assert world.answers[token] == JoinResult(
        ErrorCode.NONE,
        member,
        generation=1,
        protocol_type="consumer",
        protocol_name="range",
        leader_id=member,
        members=(JoinedMember(member, None, subscription("t")),),
    )


def test_the_initial_delay_is_extended_while_members_keep_coming_up_to_the_rebalance_timeout() -> None:
    world = GroupWorld()
    first = world.join(version=3, rebalance_timeout_ms=7_000)
    world.advance(2_000)
    world.join(version=3, rebalance_timeout_ms=7_000)
    world.advance(3_000)
    world.join(version=3, rebalance_timeout_ms=7_000)

    world.advance(1_999)
    assert first not in world.answers
    world.advance(1)

    assert world.joined(first).generation == 1
    assert world.now_ms == START_MS + 7_000
    assert len(world.joined(first).members) == 3


def test_without_an_initial_delay_the_generation_begins_with_the_next_timer() -> None:
    world = GroupWorld(GroupCoordinatorConfig(group_initial_rebalance_delay_ms=0))
    token = world.join(version=3)

    world.advance(0)

    assert world.joined(token).generation == 1


def test_only_the_leader_receives_the_members() -> None:
    world = GroupWorld()
    tokens = [world.join(version=3) for _ in range(3)]

    world.advance(6_000)

    answers = [world.joined(token) for token in tokens]
    assert [len(answer.members) for answer in answers] == [3, 0, 0]
    assert {answer.leader_id for answer in answers} == {"client-1"}


def test_an_unused_member_id_is_withdrawn_after_the_session_timeout() -> None:
    world = GroupWorld()
    member = world.new_member_id()

    world.advance(10_000)

    assert world.group().pending_members == frozenset()
    assert world.answers[world.join(member_id=member)] == JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, member)


def test_a_pending_member_is_waited_for_in_a_rebalance() -> None:
    world = GroupWorld()
    (member,) = world.stable_group()
    world.new_member_id(session_timeout_ms=6_000)

    rejoined = world.join(member_id=member)
    assert rejoined not in world.answers
    world.advance(6_000)

    assert world.joined(rejoined).generation == 2


def test_a_known_id_in_a_missing_group_is_unknown_and_creates_nothing() -> None:
    world = GroupWorld()

    assert world.answers[world.join(member_id="m")] == JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, "m")
    assert (world.log, len(world.state.groups)) == ([], 0)


@pytest.mark.parametrize("timeout_ms", [5_999, 1_800_001])
def test_the_session_timeout_must_lie_within_the_brokers_bounds(timeout_ms: int) -> None:
    world = GroupWorld()

    refused = world.join(session_timeout_ms=timeout_ms)

    assert world.answers[refused] == JoinResult(ErrorCode.INVALID_SESSION_TIMEOUT, "")
    assert world.log == []


@pytest.mark.parametrize(
    "offer",
    [
        {"protocol_type": ""},
        {"protocols": ()},
    ],
)
def test_the_first_member_must_bring_a_protocol_type_and_a_protocol(offer: dict[str, object]) -> None:
    world = GroupWorld()

    refused = world.join(**offer)  # type: ignore[arg-type]

    assert world.joined(refused).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    "offer",
    [
        {"protocol_type": "connect"},
        {"protocols": (Protocol("sticky", b""),)},
    ],
)
def test_later_members_must_share_the_type_and_a_protocol(offer: dict[str, object]) -> None:
    world = GroupWorld()
    world.stable_group()

    refused = world.join(**offer)  # type: ignore[arg-type]

    assert world.joined(refused).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.group().phase is Phase.STABLE


def test_an_empty_group_takes_the_protocol_type_of_the_next_member() -> None:
    world = GroupWorld()
    (member,) = world.stable_group()
    world.leave(member)

    world.stable_group(protocol_type="connect", protocols=(Protocol("v1", b""),))

    assert world.group().protocol_type == "connect"


def test_members_vote_for_the_protocol_among_those_all_support() -> None:
    world = GroupWorld()
    a, b, c = (Protocol(name, name.encode()) for name in "abc")
    tokens = [world.join(version=3, protocols=offer) for offer in [(a, b, c), (c, b), (b, c), (b, a, c)]]

    world.advance(6_000)

    # a is not common; the first member prefers b then, two others as well, one prefers c.
    assert {world.joined(token).protocol_name for token in tokens} == {"b"}
    assert world.joined(tokens[0]).members[0].metadata == b"b"


@pytest.mark.parametrize(
    ("first", "second", "chosen"),
    [
        ("range", "sticky", "sticky"),
        ("sticky", "range", "sticky"),
        ("range", "cooperative-sticky", "range"),
        ("cooperative-sticky", "range", "range"),
    ],
)
def test_a_tie_between_two_protocols_is_broken_as_a_java_hash_table_would(
    first: str, second: str, chosen: str
) -> None:
    world = GroupWorld()
    here, there = Protocol(first, subscription("t")), Protocol(second, subscription("t"))
    token = world.join(version=3, protocols=(here, there))
    world.join(version=3, protocols=(there, here))

    world.advance(6_000)

    assert world.joined(token).protocol_name == chosen


def test_a_group_changes_its_protocol_when_the_last_member_that_needs_the_old_one_leaves() -> None:
    world = GroupWorld()
    old, new = Protocol("old", b"o"), Protocol("new", b"n")
    first = world.join(version=3, protocols=(old,))
    second = world.join(version=3, protocols=(new, old))
    world.advance(6_000)
    assert world.joined(second).protocol_name == "old"

    world.leave(world.joined(first).member_id)
    again = world.join(member_id=world.joined(second).member_id, protocols=(new, old))

    assert world.joined(again).protocol_name == "new"


def test_a_full_group_accepts_no_new_member_but_lets_its_own_rejoin() -> None:
    world = GroupWorld(GroupCoordinatorConfig(group_max_size=2))
    leader, _ = world.stable_group(2)

    refused = world.join(version=3)
    rejoined = world.join(member_id=leader)

    assert world.answers[refused] == JoinResult(ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert rejoined not in world.answers
    assert world.group().phase is Phase.PREPARING_REBALANCE


def test_after_the_limit_was_lowered_the_last_to_rejoin_are_turned_away() -> None:
    world = GroupWorld()
    members = world.stable_group(3)
    world.config = world.config._replace(group_max_size=2)

    world = world.reload()
    assert world.group().phase is Phase.PREPARING_REBALANCE
    tokens = [world.join(member_id=member) for member in members]

    assert [world.joined(token).error for token in tokens] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
    ]
    assert members[2] not in world.group().members


def test_a_follower_that_lost_its_answer_gets_the_generation_as_it_is() -> None:
    world = GroupWorld()
    leader, follower = world.stable_group(2)

    again = world.join(member_id=follower)

    assert world.answers[again] == JoinResult(ErrorCode.NONE, follower, 1, "consumer", "range", leader)
    assert world.group().phase is Phase.STABLE


def test_a_leader_that_joins_again_starts_a_rebalance() -> None:
    world = GroupWorld()
    leader, follower = world.stable_group(2)

    again = world.join(member_id=leader)
    assert again not in world.answers
    assert world.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    world.join(member_id=follower)

    assert world.joined(again).generation == 2


def test_a_follower_with_a_new_subscription_starts_a_rebalance() -> None:
    world = GroupWorld()
    leader, follower = world.stable_group(2)

    world.join(member_id=follower, protocols=(Protocol("range", subscription("t", "u")),))
    again = world.join(member_id=leader)

    assert world.joined(again).generation == 2
    assert world.group().subscribed_topics == frozenset({"t", "u"})


def test_while_the_assignment_is_made_a_leader_that_lost_its_answer_gets_it_again() -> None:
    world = GroupWorld()
    token = world.join(version=3)
    world.advance(3_000)
    member = world.joined(token).member_id

    again = world.join(member_id=member)

    assert world.answers[again] == world.answers[token]


def test_members_that_do_not_rejoin_within_the_rebalance_timeout_are_dropped() -> None:
    world = GroupWorld()
    members = world.stable_group(3, rebalance_timeout_ms=20_000, session_timeout_ms=30_000)

    again = world.join(member_id=members[0], rebalance_timeout_ms=20_000, session_timeout_ms=30_000)
    world.advance(19_999)
    assert again not in world.answers
    world.advance(1)

    assert [member.member_id for member in world.joined(again).members] == [members[0]]


def test_the_group_waits_as_long_as_its_most_patient_member_asks() -> None:
    world = GroupWorld()
    impatient = world.join(version=3, rebalance_timeout_ms=5_000, session_timeout_ms=60_000)
    world.join(version=3, rebalance_timeout_ms=30_000, session_timeout_ms=60_000)
    world.advance(6_000)
    member = world.joined(impatient).member_id
    world.sync(member, 1)

    again = world.join(member_id=member, rebalance_timeout_ms=5_000, session_timeout_ms=60_000)
    world.advance(29_999)
    assert again not in world.answers
    world.advance(1)

    assert world.joined(again).generation == 2


def test_a_negative_rebalance_timeout_is_no_time_at_all() -> None:
    world = GroupWorld(GroupCoordinatorConfig(group_initial_rebalance_delay_ms=0))
    leader, _ = world.stable_group(2, rebalance_timeout_ms=-5)

    again = world.join(member_id=leader, rebalance_timeout_ms=-5)
    world.advance(0)

    assert [member.member_id for member in world.joined(again).members] == [leader]


def test_a_leader_that_does_not_rejoin_is_succeeded_by_one_that_did() -> None:
    world = GroupWorld()
    leader, follower = world.stable_group(2, session_timeout_ms=120_000)

    again = world.join(
        member_id=follower, protocols=(Protocol("range", subscription("u")),), session_timeout_ms=120_000
    )
    world.advance(60_000)

    assert world.joined(again).leader_id == follower
    assert leader not in world.group().members


def test_a_new_member_that_stays_silent_is_dropped_after_five_minutes() -> None:
    world = GroupWorld()
    world.stable_group(rebalance_timeout_ms=1_000_000, session_timeout_ms=1_000_000)
    newcomer = world.join(version=3)

    world.advance(5 * 60 * 1000)

    assert world.answers[newcomer] == JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, "")
    assert len(world.group().members) == 1


def test_a_second_join_of_a_waiting_member_answers_the_first() -> None:
    world = GroupWorld()
    member = world.new_member_id()
    lost = world.join(member_id=member)

    again = world.join(member_id=member)
    world.advance(3_000)

    assert world.answers[lost] == JoinResult(ErrorCode.REBALANCE_IN_PROGRESS, member)
    assert world.joined(again).generation == 1


def test_the_subscriptions_of_other_protocol_types_are_not_read() -> None:
    world = GroupWorld()

    world.stable_group(protocol_type="connect", protocols=(Protocol("v1", b"\xff"),))

    assert world.group().subscribed_topics is None


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\0\1",
        b"\0\1\xff\xff\xff\xff",
        b"\0\1\0\0\0\2\0\1a",
        b"\0\1\0\0\0\1\0\1a",
        b"\0\1\0\0\0\1\0\1a\0\0\0\5user",
        b"\xff\xff" + subscription("a")[2:],
    ],
)
def test_a_consumer_whose_subscription_is_garbage_may_join_all_the_same(metadata: bytes) -> None:
    world = GroupWorld()

    world.stable_group(protocols=(Protocol("range", metadata),))

    assert world.group().subscribed_topics is None
    assert world.group().is_subscribed_to("anything")


def test_a_reloaded_group_keeps_members_generation_and_assignments_and_restarts_the_sessions() -> None:
    world = GroupWorld()
    leader, follower = world.stable_group(2)
    world.advance(5_000)

    world = world.reload()

    assert world.heartbeat(follower, 1) is ErrorCode.NONE
    assert world.synced(world.sync(follower, 1)).assignment == f"for {follower}".encode()
    world.advance(10_000)
    assert world.group().phase is Phase.EMPTY
    assert world.group().generation == 2
    replayed = replay(world.log).classic("g")
    assert replayed is not None and replayed.phase is Phase.EMPTY
    assert leader not in world.group().members


def test_joining_offers_are_kept_as_they_were_sent() -> None:
    world = GroupWorld()
    token = world.join(version=3, protocols=(*RANGE, Protocol("sticky", b"state")))
    world.advance(3_000)

    assert world.group().members[world.joined(token).member_id].protocols == (
        *RANGE,
        Protocol("sticky", b"state"),
    )
