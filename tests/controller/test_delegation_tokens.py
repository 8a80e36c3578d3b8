"""Who may create, renew and expire delegation tokens, how long they live, and when they are removed."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest

from pykafka_broker.cluster.image import ClusterImage, replay
from pykafka_broker.cluster.snapshot import snapshot_records
from pykafka_broker.controller.core.delegation_tokens import LAST_MS, TokenTimer, first_token_timers
from pykafka_broker.controller.core.events import (
    CreatedToken,
    CreateToken,
    Event,
    EventError,
    ExpireToken,
    Moment,
    RemoveExpiredTokens,
    RenewToken,
)
from pykafka_broker.controller.core.state import ControllerState, TokenRules
from pykafka_broker.machine.step import Reply, SetTimer
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.messages.records import metadata as m
from tests.controller.deciding import NOW_MS, an_empty_cluster, decide, stepped
from tests.support.metadata import Node

RULES = TokenRules(b"key", max_lifetime_ms=1_000, expiry_time_ms=100, expiry_check_interval_ms=50)
ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"
ID = uuid_text(next(Moment(NOW_MS, NOW_MS).random_uuids()))
HMAC = hmac.digest(b"key", ID.encode(), hashlib.sha512)


def creation(**fields: Any) -> CreateToken:
    event = CreateToken(ALICE, ALICE, (("User", "bob"),), -1)
    return event._replace(**fields)


def with_tokens() -> ControllerState:
    return an_empty_cluster(tokens=RULES)


def with_a_token(**fields: Any) -> ControllerState:
    return decide(with_tokens(), creation(**fields))[0]


def refused(state: ControllerState, event: Event, now_ms: int = NOW_MS) -> ErrorCode:
    """The error of an event that changes nothing."""
    after, records, result = decide(state, event, now_ms)
    assert (after.image, records) == (state.image, ())
    assert isinstance(result, EventError)
    return result.error


def test_a_token_is_created() -> None:
    state, [record], created = decide(with_tokens(), creation(requester=CAROL))

    assert created == CreatedToken(ID, NOW_MS, NOW_MS + 100, NOW_MS + 1_000, HMAC)
    assert record == m.DelegationTokenRecord(
        owner=ALICE,
        requester=CAROL,
        renewers=[BOB],
        issue_timestamp=NOW_MS,
        max_timestamp=NOW_MS + 1_000,
        expiration_timestamp=NOW_MS + 100,
        token_id=ID,
    )
    assert state.image.delegation_tokens == {ID: record}


@pytest.mark.parametrize(
    ("asked_ms", "lifetime_ms"), [(-1, 1_000), (0, 1_000), (50, 50), (1_000, 1_000), (9_000, 1_000)]
)
def test_the_owner_asks_for_a_shorter_life_only(asked_ms: int, lifetime_ms: int) -> None:
    _, _, created = decide(with_tokens(), creation(max_lifetime_ms=asked_ms))
    assert created.max_timestamp_ms - NOW_MS == lifetime_ms
    assert created.expiry_timestamp_ms - NOW_MS == min(100, lifetime_ms)


def test_renewers_are_users() -> None:
    renewers = (("User", "bob"), ("Group", "staff"))
    assert refused(with_tokens(), creation(renewers=renewers)) is ErrorCode.INVALID_PRINCIPAL_TYPE


@pytest.mark.parametrize("principal", [ALICE, BOB])
@pytest.mark.parametrize(("asked_ms", "period_ms"), [(-1, 100), (0, 100), (30, 30), (5_000, 100)])
def test_the_owner_and_the_renewers_renew_it(principal: str, asked_ms: int, period_ms: int) -> None:
    later_ms = NOW_MS + 90
    state, _, expiry_ms = decide(with_a_token(), RenewToken(principal, HMAC, asked_ms), later_ms)
    assert expiry_ms == later_ms + period_ms
    assert state.image.delegation_tokens[ID].expiration_timestamp == expiry_ms
    assert state.image.delegation_tokens[ID].max_timestamp == NOW_MS + 1_000


def test_no_renewal_goes_beyond_the_age_of_a_token() -> None:
    _, _, expiry_ms = decide(with_a_token(max_lifetime_ms=120), RenewToken(ALICE, HMAC, -1), NOW_MS + 90)
    assert expiry_ms == NOW_MS + 120


def test_others_neither_renew_nor_expire_it() -> None:
    state = with_a_token(requester=CAROL)
    for principal in (CAROL, "User:dave", "Group:alice"):
        for event in (
            RenewToken(principal, HMAC, -1),
            ExpireToken(principal, HMAC, -1),
        ):
            assert refused(state, event) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


@pytest.mark.parametrize("unknown", [b"", b"other", HMAC[:-1]])
def test_a_token_is_found_by_its_hmac_alone(unknown: bytes) -> None:
    for event in (RenewToken(ALICE, unknown, -1), ExpireToken(ALICE, unknown, -1)):
        assert refused(with_a_token(), event) is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_an_expired_token_is_not_renewed_and_may_be_removed() -> None:
    state, late_ms = with_a_token(), NOW_MS + 101
    # Apache Kafka tells everybody that it has expired, before it looks who asks for its renewal.
    assert refused(state, RenewToken(CAROL, HMAC, -1), late_ms) is ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert refused(state, ExpireToken(ALICE, HMAC, 5), late_ms) is ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert refused(state, ExpireToken(CAROL, HMAC, 5), late_ms) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    state, _, expiry_ms = decide(state, ExpireToken(BOB, HMAC, -1), late_ms)
    assert (expiry_ms, dict(state.image.delegation_tokens)) == (late_ms, {})


@pytest.mark.parametrize(
    ("period_ms", "expires_after_ms"), [(0, 0), (70, 70), (5_000, 1_000), (LAST_MS, 1_000)]
)
def test_a_token_expires_when_it_is_told_to(period_ms: int, expires_after_ms: int) -> None:
    state, _, expiry_ms = decide(with_a_token(), ExpireToken(ALICE, HMAC, period_ms))
    assert expiry_ms == NOW_MS + expires_after_ms
    assert state.image.delegation_tokens[ID].expiration_timestamp == expiry_ms


def test_without_a_key_there_are_no_tokens() -> None:
    state = an_empty_cluster()
    for event in (
        creation(renewers=(("Group", "staff"),)),
        RenewToken(ALICE, HMAC, -1),
        ExpireToken(ALICE, HMAC, -1),
    ):
        assert refused(state, event) is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert first_token_timers(state.rules, NOW_MS) == ()


def test_an_old_metadata_version_has_no_such_records() -> None:
    state = with_tokens()
    image = state.image._replace(features={**state.image.features, "metadata.version": 13})
    assert refused(state._replace(image=image), creation()) is ErrorCode.UNSUPPORTED_VERSION


def test_expired_tokens_are_removed_from_time_to_time() -> None:
    state = with_a_token()
    older_ms = NOW_MS - 60
    state, _, older = decide(state, creation(), older_ms, seed=1)
    assert first_token_timers(state.rules, NOW_MS) == (SetTimer(TokenTimer.REMOVE_EXPIRED, NOW_MS + 50),)

    step = stepped(state, RemoveExpiredTokens(), NOW_MS + 41)

    assert step.records == (m.RemoveDelegationTokenRecord(token_id=older.token_id),)
    assert step.effects == (SetTimer(TokenTimer.REMOVE_EXPIRED, NOW_MS + 91),)
    assert list(step.state.image.delegation_tokens) == [ID]


async def test_tokens_expire_by_the_wall_clock_even_if_it_is_set() -> None:
    node = Node(tokens=RULES)
    await node.start()
    first = await node.role.ask(creation())
    node.clock.set_wall_clock(-3_600_000)
    await node.clock.pass_time(1_000)
    second = await node.role.ask(creation())
    assert list(node.image.delegation_tokens) == [first.token_id, second.token_id]
    assert (first.issue_timestamp_ms, second.issue_timestamp_ms) == (NOW_MS, node.clock.now_ms())

    node.clock.set_wall_clock(3_599_000)
    await node.clock.pass_time(RULES.expiry_check_interval_ms)

    assert list(node.image.delegation_tokens) == [first.token_id]


def test_a_snapshot_has_them_and_no_hmac() -> None:
    state = with_a_token()
    records = tuple(snapshot_records(state.image))
    again = replay(ClusterImage(state.image.cluster_id), records, offset=0, epoch=1)
    assert again.delegation_tokens == state.image.delegation_tokens
    assert HMAC not in repr(records).encode()


def test_no_secret_in_repr() -> None:
    step = stepped(with_tokens(), creation(), token=1)
    [created] = [effect.result for effect in step.effects if isinstance(effect, Reply)]
    shown = repr((RULES, created, RenewToken(ALICE, HMAC, 1), ExpireToken(ALICE, HMAC, 1)))
    assert "key" not in shown
    assert "hmac" not in shown
