"""Delegation tokens: who may create, renew and expire one, and how long it lives (KIP-48, KIP-373).

A token belongs to its owner. The owner and the renewers may renew it, up to its maximum age, and expire it. A
requester that is not the owner may do neither. The log keeps no HMAC: it is computed from the id, so looking
up a token means computing the HMACs of all tokens, at about a microsecond each.

The order of the checks is that of Apache Kafka's DelegationTokenControlManager.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from hmac import compare_digest
from itertools import islice
from typing import Union

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.cluster.records import MAX_RECORDS_PER_OPERATION
from pykafka_broker.controller.core.events import (
    CreatedToken,
    CreateToken,
    ExpireToken,
    Moment,
    RemoveExpiredTokens,
    RenewToken,
)
from pykafka_broker.controller.core.state import ControllerRules, ControllerState, Decision, TokenRules
from pykafka_broker.machine.step import SetTimer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.sasl.delegation_tokens import token_hmac

#: metadata.version 3.6-IV2: older versions lack the records.
TOKENS_VERSION = 14
#: The only type of principals that may renew tokens.
USER_TYPE = "User"
#: The latest time that a record can hold.
LAST_MS = (1 << 63) - 1


class TokenTimer(Enum):
    """The timer of the controller that removes expired tokens."""

    REMOVE_EXPIRED = auto()


def create_token(state: ControllerState, event: CreateToken, moment: Moment) -> Decision:
    """Issue a token."""
    rules = _rules(state)
    max_lifetime_ms = _at_most(event.max_lifetime_ms, rules.max_lifetime_ms)
    max_timestamp_ms = _later(moment.wall_ms, max_lifetime_ms)
    expiry_timestamp_ms = min(max_timestamp_ms, _later(moment.wall_ms, rules.expiry_time_ms))
    if any(kind != USER_TYPE for kind, _ in event.renewers):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    token_id = uuid_text(next(moment.random_uuids()))
    record = m.DelegationTokenRecord(
        owner=event.owner,
        requester=event.requester,
        renewers=[f"{kind}:{name}" for kind, name in event.renewers],
        issue_timestamp=moment.wall_ms,
        max_timestamp=max_timestamp_ms,
        expiration_timestamp=expiry_timestamp_ms,
        token_id=token_id,
    )
    created = CreatedToken(
        token_id,
        moment.wall_ms,
        expiry_timestamp_ms,
        max_timestamp_ms,
        token_hmac(rules.secret_key, token_id),
    )
    return Decision((record,), created)


def renew_token(state: ControllerState, event: RenewToken, moment: Moment) -> Decision:
    """Extend the life of a token, up to its maximum age."""
    rules = _rules(state)
    token = _found(state.image, rules, event.hmac)
    if _has_expired(token, moment.wall_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    _check_renewer(token, event.principal)
    return _expiring(token, moment.wall_ms, _at_most(event.renew_period_ms, rules.expiry_time_ms))


def expire_token(state: ControllerState, event: ExpireToken, moment: Moment) -> Decision:
    """Let a token expire after `expiry_period_ms`, or remove it at once if that is negative."""
    rules = _rules(state)
    token = _found(state.image, rules, event.hmac)
    _check_renewer(token, event.principal)
    if event.expiry_period_ms < 0:
        return Decision((_removal(token),), moment.wall_ms)
    if _has_expired(token, moment.wall_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    return _expiring(token, moment.wall_ms, event.expiry_period_ms)


def first_token_timers(rules: ControllerRules, now_ms: int) -> tuple[SetTimer, ...]:
    """The timer that a new controller sets, if delegation tokens are enabled."""
    if rules.tokens is None:
        return ()
    return (SetTimer(TokenTimer.REMOVE_EXPIRED, now_ms + rules.tokens.expiry_check_interval_ms),)


def remove_expired_tokens(state: ControllerState, event: RemoveExpiredTokens, moment: Moment) -> Decision:
    """Remove expired tokens. If one operation cannot hold them all, the next round follows at once."""
    rules = state.rules.tokens
    if rules is None:
        return Decision()
    expired = (
        token for token in state.image.delegation_tokens.values() if _has_expired(token, moment.wall_ms)
    )
    records = tuple(map(_removal, islice(expired, MAX_RECORDS_PER_OPERATION)))
    is_full = len(records) == MAX_RECORDS_PER_OPERATION
    next_ms = moment.now_ms if is_full else moment.now_ms + rules.expiry_check_interval_ms
    return Decision(records, timers=(SetTimer(TokenTimer.REMOVE_EXPIRED, next_ms),))


def tokens_of(image: ClusterImage, principals: Union[list[str], None]) -> Iterator[m.DelegationTokenRecord]:
    """The tokens that one of the principals owns, has requested, or may renew; all if None."""
    for token in image.delegation_tokens.values():
        if principals is None or any(concerns(token, principal) for principal in principals):
            yield token


def concerns(token: m.DelegationTokenRecord, principal: str) -> bool:
    """Whether the principal owns the token, has requested it, or may renew it."""
    return principal in (token.owner, token.requester) or principal in token.renewers


def _rules(state: ControllerState) -> TokenRules:
    rules = state.rules.tokens
    if rules is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    if state.image.metadata_version < TOKENS_VERSION:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    return rules


def _found(image: ClusterImage, rules: TokenRules, hmac: bytes) -> m.DelegationTokenRecord:
    for token in image.delegation_tokens.values():
        if compare_digest(token_hmac(rules.secret_key, token.token_id), hmac):
            return token
    raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)


def _has_expired(token: m.DelegationTokenRecord, wall_ms: int) -> bool:
    return token.max_timestamp < wall_ms or token.expiration_timestamp < wall_ms


def _check_renewer(token: m.DelegationTokenRecord, principal: str) -> None:
    if principal != token.owner and principal not in token.renewers:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _expiring(token: m.DelegationTokenRecord, wall_ms: int, after_ms: int) -> Decision:
    expiry_timestamp_ms = min(token.max_timestamp, _later(wall_ms, after_ms))
    record = m.DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=token.renewers,
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=expiry_timestamp_ms,
        token_id=token.token_id,
    )
    return Decision((record,), expiry_timestamp_ms)


def _removal(token: m.DelegationTokenRecord) -> m.RemoveDelegationTokenRecord:
    return m.RemoveDelegationTokenRecord(token_id=token.token_id)


def _at_most(asked_ms: int, limit_ms: int) -> int:
    """The duration asked for, at most the limit; the limit if `asked_ms` is not positive."""
    return min(asked_ms, limit_ms) if asked_ms > 0 else limit_ms


def _later(wall_ms: int, duration_ms: int) -> int:
    return min(LAST_MS, wall_ms + duration_ms)
