"""Share sessions: whose they are, how epochs go on, what an answer lists, and what ends with a connection."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Optional

import pytest

from pykafka_broker.apis.sharing import sessions as share_sessions
from pykafka_broker.apis.sharing.sessions import (
    MAX_ENDED_GROUPS,
    Ended,
    Member,
    Place,
    ShareContext,
    SharedPartition,
    ShareSession,
    ShareSessions,
)
from pykafka_broker.apis.sharing.waiting import answer_of
from pykafka_broker.protocol.epochs import FINAL_EPOCH, INITIAL_EPOCH, MAX_EPOCH
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

ANN, BEN = Member("workers", "ann"), Member("workers", "ben")
CAT = Member("others", "cat")
A0, A1, A2 = (b"a" * 16, 0), (b"a" * 16, 1), (b"a" * 16, 2)
B0 = (b"b" * 16, 0)
NAMES = {b"a" * 16: "apples", b"b" * 16: "bananas"}


def begin(
    sessions: ShareSessions,
    epoch: int,
    *asked: Place,
    member: Member = ANN,
    forget: Iterable[Place] = (),
    acknowledges: bool = False,
    connection: object = "first",
    names: dict[bytes, str] = NAMES,
) -> ShareContext:
    return sessions.begin(
        member, epoch, asked, forget, names.get, has_acknowledgements=acknowledges, connection=connection
    )


def places(context: ShareContext) -> list[Place]:
    return [partition.place for partition in context.partitions]


def listed(context: ShareContext, *answers: tuple[Place, ErrorCode | bytes]) -> list[Place]:
    """What is listed of these answers, each an error or records."""
    told = []
    for place, found in answers:
        answer = answer_of(place, found if isinstance(found, ErrorCode) else ErrorCode.NONE)
        if isinstance(found, bytes):
            answer.records = found
        told.append((place, answer))
    return [place for place, _ in context.listed(told)]


def refusal_of(action: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        action()
    return refused.value.code


# ---- epochs ----


def test_a_session_begins_with_epoch_0_and_goes_on_with_what_it_knows() -> None:
    sessions = ShareSessions()

    assert places(begin(sessions, 0, A0, A1)) == [A0, A1]
    assert places(begin(sessions, 1)) == [A0, A1]
    assert places(begin(sessions, 2, B0, forget=[A0])) == [A1, B0]
    assert places(begin(sessions, 3)) == [A1, B0]


def test_every_member_has_a_session_of_its_own() -> None:
    sessions = ShareSessions()
    begin(sessions, 0, A0)
    begin(sessions, 0, A1, member=BEN)
    begin(sessions, 0, A2, member=Member("others", "ann"))

    assert places(begin(sessions, 1)) == [A0]
    assert places(begin(sessions, 1, member=BEN)) == [A1]
    assert places(begin(sessions, 1, member=Member("others", "ann"))) == [A2]


@pytest.mark.parametrize("epoch", [2, 5, MAX_EPOCH, -2])
def test_an_epoch_that_is_not_the_next_is_refused_and_changes_nothing(epoch: int) -> None:
    sessions = ShareSessions()
    begin(sessions, 0, A0)

    assert refusal_of(lambda: begin(sessions, epoch, A1)) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert refusal_of(lambda: sessions.acknowledge(ANN, epoch)) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert places(begin(sessions, 1)) == [A0]


@pytest.mark.parametrize("epoch", [FINAL_EPOCH, 1, 7])
def test_a_session_that_was_never_begun_is_not_found(epoch: int) -> None:
    sessions = ShareSessions()
    begin(sessions, 0, A0, member=BEN)

    assert refusal_of(lambda: begin(sessions, epoch)) is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert refusal_of(lambda: sessions.acknowledge(ANN, epoch)) is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_after_the_largest_epoch_comes_1() -> None:
    sessions = ShareSessions()
    begin(sessions, 0, A0)
    session = ShareSession(ANN, {}, "first")
    session.epoch = MAX_EPOCH

    session.move(MAX_EPOCH)

    assert session.epoch == 1


def test_acknowledging_moves_the_epoch_and_never_begins_a_session() -> None:
    sessions = ShareSessions()
    begin(sessions, 0, A0)

    assert (
        refusal_of(lambda: sessions.acknowledge(ANN, INITIAL_EPOCH)) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    )
    sessions.acknowledge(ANN, 1)
    begin(sessions, 2)
    sessions.acknowledge(ANN, FINAL_EPOCH)
    sessions.acknowledge(ANN, 3)


def test_nothing_can_be_acknowledged_with_a_first_fetch_and_the_session_before_stays() -> None:
    sessions = ShareSessions()
    begin(sessions, 0, A0)

    assert refusal_of(lambda: begin(sessions, 0, A1, acknowledges=True)) is ErrorCode.INVALID_REQUEST
    assert places(begin(sessions, 1)) == [A0]


def test_a_member_that_begins_anew_has_another_session() -> None:
    sessions = ShareSessions()
    begin(sessions, 0, A0)
    begin(sessions, 1)

    begin(sessions, 0, B0)

    assert len(sessions) == 1
    assert places(begin(sessions, 1)) == [B0]


def test_a_first_fetch_that_names_a_partition_twice_ends_the_session_before() -> None:
    sessions = ShareSessions()
    begin(sessions, 0, A0)

    assert refusal_of(lambda: begin(sessions, 0, A1, A1)) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert refusal_of(lambda: begin(sessions, 1)) is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_no_session_is_thrown_out_for_another_one() -> None:
    sessions = ShareSessions(2)
    begin(sessions, 0, A0)
    begin(sessions, 0, A0, member=BEN)

    assert refusal_of(lambda: begin(sessions, 0, A0, member=CAT)) is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    begin(sessions, 0, A1)
    sessions.end(BEN)
    begin(sessions, 0, A0, member=CAT)
    assert places(begin(sessions, 1)) == [A1]


# ---- what is listed ----


def test_the_first_answer_lists_everything() -> None:
    sessions = ShareSessions()
    none, error = ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER

    assert listed(begin(sessions, 0, A0, A1), (A0, none), (A1, error)) == [A0, A1]


def test_later_ones_list_news() -> None:
    sessions = ShareSessions()
    none, error = ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER
    begin(sessions, 0, A0, A1, A2)

    assert listed(begin(sessions, 1), (A0, none), (A1, b"records"), (A2, error)) == [A1, A2]
    # What had an error is told to be well again, once.
    assert listed(begin(sessions, 2), (A0, none), (A1, none), (A2, none)) == [A2]
    assert listed(begin(sessions, 3), (A0, none), (A1, none), (A2, none)) == []
    # What was added is told once even if there is nothing.
    assert listed(begin(sessions, 4, B0), (A0, none), (B0, none)) == [B0]
    assert listed(begin(sessions, 5), (B0, none)) == []


def test_partitions_that_were_served_come_last_from_then_on() -> None:
    sessions = ShareSessions()
    begin(sessions, 0, A0, A1, A2)

    listed(begin(sessions, 1), (A0, b"records"), (A1, ErrorCode.NONE))

    assert places(begin(sessions, 2)) == [A1, A2, A0]


def test_a_request_that_was_overtaken_by_the_next_lists_nothing() -> None:
    sessions = ShareSessions()
    begin(sessions, 0, A0)
    slow = begin(sessions, 1)
    begin(sessions, 2)

    refused = refusal_of(lambda: listed(slow, (A0, b"records")))

    assert refused is ErrorCode.INVALID_SHARE_SESSION_EPOCH


def test_a_topic_that_becomes_known_later_gets_its_name_and_a_deleted_one_keeps_it() -> None:
    sessions = ShareSessions()
    begin(sessions, 0, A0, B0, names={b"b" * 16: "bananas"})

    context = begin(sessions, 1, names={b"a" * 16: "apples"})

    assert [partition.topic for partition in context.partitions] == ["apples", "bananas"]


# ---- ends ----


def test_the_last_fetch_of_a_session_fetches_nothing_and_the_session_lasts_until_it_is_ended() -> None:
    sessions = ShareSessions()
    begin(sessions, 0, A0)

    assert places(begin(sessions, FINAL_EPOCH, acknowledges=True)) == []
    [ended] = sessions.end(ANN).sessions
    assert list(ended.partitions) == [A0]
    assert sessions.end(ANN) == Ended()
    assert refusal_of(lambda: begin(sessions, 1)) is ErrorCode.SHARE_SESSION_NOT_FOUND


def ends_of(ended: Ended) -> tuple[list[Member], list[str]]:
    """The members whose sessions are over, and the groups that are empty now."""
    return [session.member for session in ended.sessions], sorted(ended.emptied)


def test_with_a_connection_the_sessions_end_that_were_begun_on_it() -> None:
    sessions = ShareSessions()
    begin(sessions, 0, A0, connection="first")
    begin(sessions, 0, A0, member=BEN, connection="first")
    begin(sessions, 0, A0, member=CAT, connection="second")
    begin(sessions, 1, connection="second")

    assert ends_of(sessions.lost("first")) == ([ANN, BEN], ["workers"])
    assert sessions.lost("first") == Ended()
    assert [member for member in (ANN, BEN, CAT) if sessions.end(member).sessions] == [CAT]


def test_a_session_that_was_begun_anew_elsewhere_does_not_end_with_the_old_connection() -> None:
    sessions = ShareSessions()
    begin(sessions, 0, A0, connection="first")
    begin(sessions, 0, A1, connection="second")

    assert ends_of(sessions.lost("first")) == ([], [])
    assert places(begin(sessions, 1)) == [A1]
    assert ends_of(sessions.lost("second")) == ([ANN], ["workers"])


def test_a_group_is_empty_when_the_connection_of_its_last_session_is_lost_and_not_before() -> None:
    sessions = ShareSessions()
    begin(sessions, 0, A0, connection="first")
    begin(sessions, 0, A0, member=BEN, connection="second")

    assert ends_of(sessions.end(ANN)) == ([ANN], [])
    assert ends_of(sessions.end(BEN)) == ([BEN], [])
    begin(sessions, 0, A0, member=BEN, connection="second")
    assert ends_of(sessions.lost("first")) == ([], [])
    assert ends_of(sessions.lost("second")) == ([BEN], ["workers"])


def test_a_connection_comes_back_only_to_the_last_of_many_groups() -> None:
    sessions = ShareSessions()
    for number in range(MAX_ENDED_GROUPS):
        member = Member(f"group {number}", "ann")
        begin(sessions, 0, A0, member=member)
        assert sessions.end(member).emptied == ()
    begin(sessions, 0, A0)

    assert ends_of(sessions.end(ANN)) == ([ANN], ["group 0"])
    assert len(sessions.lost("first").emptied) == MAX_ENDED_GROUPS


def test_a_connection_is_known_from_its_first_session_until_it_is_lost() -> None:
    sessions = ShareSessions()
    assert not sessions.has_begun_on("first")
    begin(sessions, 0, A0)
    sessions.end(ANN)
    assert sessions.has_begun_on("first")
    sessions.lost("first")
    assert not sessions.has_begun_on("first")


def test_all_sessions_end_when_share_groups_are_switched_off() -> None:
    sessions = ShareSessions()
    begin(sessions, 0, A0)
    begin(sessions, 0, A0, member=CAT)

    sessions.clear()

    assert len(sessions) == 0
    assert ends_of(sessions.lost("first")) == ([], [])
    begin(sessions, 0, A0)
    assert ends_of(sessions.lost("first")) == ([ANN], ["workers"])


# ---- a model, random events, and planted bugs ----


@dataclass
class Known:
    """A session as the model has it: partitions in order, those that the next answer has to list."""

    partitions: list[Place]
    connection: int
    epoch: int = 1
    due: set[Place] = field(default_factory=set)


class World:
    """Random requests of a few members on a few connections, beside plain lists and sets."""

    MEMBERS = (ANN, BEN, CAT)
    PLACES = (A0, A1, A2, B0)
    LIMIT = 2

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.sessions = ShareSessions(self.LIMIT)
        self.known: dict[Member, Known] = {}
        #: By connection, the groups of sessions that have ended before it did.
        self.ended: defaultdict[int, set[str]] = defaultdict(set)
        self.happened: Counter[str] = Counter()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.dice.choice([self.fetch, self.fetch, self.fetch, self.acknowledge, self.end, self.lose])()
            assert len(self.sessions) == len(self.known)

    def fetch(self) -> None:
        dice, member = self.dice, self.dice.choice(self.MEMBERS)
        known = self.known.get(member)
        connection = dice.randrange(2)
        asked = [dice.choice(self.PLACES) for _ in range(dice.randrange(3))]
        forgotten = [dice.choice(self.PLACES) for _ in range(dice.randrange(2))]
        epoch = dice.choice(
            [0, 1, -1] if known is None else [0, -1, known.epoch, known.epoch, known.epoch + 1]
        )
        acknowledges = dice.random() < 0.1
        expected = self.outcome(member, epoch, asked, acknowledges)
        try:
            context = begin(
                self.sessions,
                epoch,
                *asked,
                member=member,
                forget=forgotten,
                acknowledges=acknowledges,
                connection=connection,
            )
        except KafkaError as error:
            assert error.code is expected, (error, expected)
            if epoch == 0 and expected is not ErrorCode.INVALID_REQUEST:
                self.forget(member)
            self.happened[error.code.name] += 1
            return
        assert expected is None
        if epoch == FINAL_EPOCH:
            assert places(context) == []
            self.happened["last fetch"] += 1
            return
        if epoch == INITIAL_EPOCH:
            self.forget(member)
            known = self.known[member] = Known(asked, connection)
        else:
            assert known is not None
            known.epoch += 1
            new = [place for place in dict.fromkeys(asked) if place not in known.partitions]
            known.partitions += new
            known.due |= set(new)
            known.partitions = [place for place in known.partitions if place not in forgotten]
            known.due -= set(forgotten)
        assert places(context) == known.partitions
        self.answer(known, context, is_first=epoch == INITIAL_EPOCH)

    def forget(self, member: Member) -> None:
        """A session is replaced, or would have been."""
        known = self.known.pop(member, None)
        if known is not None:
            self.ended[known.connection].add(member.group_id)

    def outcome(
        self, member: Member, epoch: int, asked: list[Place], acknowledges: bool
    ) -> Optional[ErrorCode]:
        known = self.known.get(member)
        if epoch == INITIAL_EPOCH:
            if acknowledges:
                return ErrorCode.INVALID_REQUEST
            if len(set(asked)) < len(asked):
                return ErrorCode.UNKNOWN_SERVER_ERROR
            others = len(self.known) - (known is not None)
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED if others == self.LIMIT else None
        if known is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        is_next = epoch in (FINAL_EPOCH, known.epoch)
        return None if is_next else ErrorCode.INVALID_SHARE_SESSION_EPOCH

    def answer(self, known: Known, context: ShareContext, *, is_first: bool) -> None:
        may_be: list[ErrorCode | bytes] = [
            ErrorCode.NONE,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_ID,
            b"some",
        ]
        found = [(place, self.dice.choice(may_be)) for place in known.partitions]
        expected = [
            place for place, what in found if is_first or place in known.due or what is not ErrorCode.NONE
        ]
        assert listed(context, *found) == expected
        if not is_first:
            known.due = {place for place, what in found if what is ErrorCode.UNKNOWN_TOPIC_ID}
            served = [place for place, what in found if isinstance(what, bytes)]
            known.partitions = [place for place in known.partitions if place not in served] + served
            self.happened["listed"] += bool(expected)
            self.happened["left out"] += len(expected) < len(found)

    def acknowledge(self) -> None:
        member = self.dice.choice(self.MEMBERS)
        known = self.known.get(member)
        epoch = self.dice.choice([0, 1, -1] if known is None else [0, -1, known.epoch, known.epoch + 1])
        expected = (
            ErrorCode.INVALID_SHARE_SESSION_EPOCH if epoch == 0 else self.outcome(member, epoch, [], False)
        )
        try:
            self.sessions.acknowledge(member, epoch)
        except KafkaError as error:
            assert error.code is expected
            return
        assert expected is None and known is not None
        known.epoch += epoch != FINAL_EPOCH
        self.happened["acknowledged"] += 1

    def end(self) -> None:
        member = self.dice.choice(self.MEMBERS)
        ended, known = self.sessions.end(member), self.known.pop(member, None)
        assert [session.member for session in ended.sessions] == ([] if known is None else [member])
        assert ended.emptied == ()  # its connection is still there
        if known is not None:
            assert list(ended.sessions[0].partitions) == known.partitions
            self.ended[known.connection].add(member.group_id)
            self.happened["ended"] += 1

    def lose(self) -> None:
        connection = self.dice.randrange(2)
        gone = {member: known for member, known in self.known.items() if known.connection == connection}
        ended = self.sessions.lost(connection)
        assert {session.member for session in ended.sessions} == gone.keys()
        for session in ended.sessions:
            assert list(session.partitions) == self.known.pop(session.member).partitions
            self.happened["lost"] += 1
        groups = self.ended.pop(connection, set()) | {member.group_id for member in gone}
        assert set(ended.emptied) == groups - {member.group_id for member in self.known}
        self.happened["emptied"] += bool(ended.emptied)


EVERYTHING = {
    *("INVALID_REQUEST", "INVALID_SHARE_SESSION_EPOCH", "SHARE_SESSION_LIMIT_REACHED"),
    *("SHARE_SESSION_NOT_FOUND", "UNKNOWN_SERVER_ERROR"),
    *("acknowledged", "emptied", "ended", "last fetch", "left out", "listed", "lost"),
}


def test_sessions_are_as_the_model_says_whatever_comes() -> None:
    happened: Counter[str] = Counter()
    for seed in range(20):
        world = World(seed)
        world.run(300)
        happened.update(world.happened)

    assert set(happened) == EVERYTHING
    assert min(happened.values()) > 10


def _never_due(right: Any) -> Any:
    def spoilt(self: SharedPartition, place: Place, topic: str | None, *, is_due: bool = False) -> None:
        right(self, place, topic)

    return spoilt


def _tells_an_error_once(right: Any) -> Any:
    def spoilt(self: SharedPartition, answer: Any) -> bool:
        is_news: bool = right(self, answer)
        self.is_due = False
        return is_news

    return spoilt


def _stays_in_place(right: Any) -> Any:
    return lambda self, place: None


def _any_epoch(right: Any) -> Any:
    return lambda self, epoch: right(self, self.epoch)


def _does_not_move(right: Any) -> Any:
    def spoilt(self: ShareSession, epoch: int) -> None:
        right(self, epoch)
        self.epoch = epoch

    return spoilt


def _keeps_the_old_one(right: Any) -> Any:
    begun: dict[tuple[ShareSessions, Member], ShareContext] = {}

    def spoilt(self: ShareSessions, member: Member, epoch: int, *rest: Any, **more: Any) -> Any:
        if epoch == INITIAL_EPOCH and (self, member) in begun:
            return begun[self, member]
        context = right(self, member, epoch, *rest, **more)
        if epoch == INITIAL_EPOCH:
            begun[self, member] = context
        return context

    return spoilt


def _empties_too_soon(right: Any) -> Any:
    def spoilt(self: ShareSessions, member: Member) -> Any:
        return right(self, member)._replace(emptied=(member.group_id,))

    return spoilt


def _only_the_last_of_a_connection(right: Any) -> Any:
    def spoilt(self: ShareSessions, connection: Any) -> Any:
        ended = right(self, connection)
        return ended._replace(sessions=ended.sessions[-1:])

    return spoilt


def _forgets_ended_groups(right: Any) -> Any:
    def spoilt(self: ShareSessions, connection: Any) -> Any:
        ended = right(self, connection)
        had_sessions = {session.member.group_id for session in ended.sessions}
        return ended._replace(emptied=tuple(group for group in ended.emptied if group in had_sessions))

    return spoilt


def _takes_one_more(right: Any) -> Any:
    def spoilt(self: ShareSessions, max_sessions: int = 0) -> None:
        right(self, max_sessions + 1)

    return spoilt


BUGS: list[tuple[type, str, Callable[[Any], Any]]] = [
    (SharedPartition, "__init__", _never_due),
    (SharedPartition, "is_news", _tells_an_error_once),
    (ShareSession, "served", _stays_in_place),
    (ShareSession, "move", _any_epoch),
    (ShareSession, "move", _does_not_move),
    (ShareSessions, "begin", _keeps_the_old_one),
    (ShareSessions, "end", _empties_too_soon),
    (ShareSessions, "lost", _only_the_last_of_a_connection),
    (ShareSessions, "lost", _forgets_ended_groups),
    (ShareSessions, "__init__", _takes_one_more),
]


@pytest.mark.parametrize(("where", "attribute", "spoil"), BUGS, ids=[bug.__name__ for _, _, bug in BUGS])
def test_the_model_finds_planted_bugs(
    monkeypatch: pytest.MonkeyPatch, where: type, attribute: str, spoil: Callable[[Any], Any]
) -> None:
    monkeypatch.setattr(where, attribute, spoil(getattr(where, attribute)))

    with pytest.raises((AssertionError, KafkaError)):
        for seed in range(20):
            World(seed).run(300)


def test_the_default_limit_is_kafkas() -> None:
    assert share_sessions.DEFAULT_MAX_SESSIONS == 2_000
