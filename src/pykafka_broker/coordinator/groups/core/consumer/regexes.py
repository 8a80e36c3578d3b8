"""Subscriptions by regular expression: when they are resolved, and how the answer is taken in.

RE2 matches any expression in time proportional to the text. The shell matches expressions against all topics,
outside of heartbeats; a later heartbeat brings the member its topics. All expressions of a group are resolved
together: when a new one comes, when the cluster has new topics, and after
`group.consumer.regex.refresh.interval.ms`, but at most once in ten seconds.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.consumer.records import regex_record, regex_tombstone
from pykafka_broker.coordinator.groups.core.consumer.state import ConsumerMember, ResolvedRegex
from pykafka_broker.coordinator.groups.core.consumer.turn import ConsumerTurn, ResolveRegexes
from pykafka_broker.coordinator.groups.core.events import ConsumerGroupHeartbeat, JoinGroup, RegexesResolved
from pykafka_broker.coordinator.groups.core.heartbeats import METADATA_REFRESH_INTERVAL_MS
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

MIN_REFRESH_INTERVAL_MS = 10_000


class RegexUpdate(enum.Enum):
    """The change that a heartbeat made to its member's regular expression."""

    UNCHANGED = enum.auto()
    #: The topics of the new expression are not known yet.
    CHANGED = enum.auto()
    CHANGED_AND_RESOLVED = enum.auto()


def compiled(regex: str) -> object:
    """The expression, ready to match.

    Raises:
        KafkaError: INVALID_REGULAR_EXPRESSION.

    """
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {_reason(error)}.",
        ) from None


def _reason(error: Exception) -> str:
    """The message of RE2, without the part of the expression that it quotes after it."""
    said = error.args[0] if error.args else ""
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    return text.partition(": ")[0]


def matching_topics(regexes: Iterable[str], names: Iterable[str]) -> tuple[tuple[str, frozenset[str]], ...]:
    """The topics each expression matches in full; an invalid one matches none."""
    matchers: list[tuple[str, Any]] = []
    for regex in regexes:
        try:
            matchers.append((regex, compiled(regex)))
        except KafkaError:
            matchers.append((regex, None))
    listed = list(names)
    return tuple(
        (regex, frozenset(name for name in listed if matcher is not None and matcher.fullmatch(name)))
        for regex, matcher in matchers
    )


def update_regex(
    turn: ConsumerTurn,
    before: ConsumerMember,
    after: ConsumerMember,
    event: ConsumerGroupHeartbeat | JoinGroup,
) -> RegexUpdate:
    """Take in a changed expression of the member, and begin to resolve the group's expressions if due.

    The member's subscription has been written already.

    Raises:
        KafkaError: INVALID_REGULAR_EXPRESSION.

    """
    old, new = before.subscribed_topic_regex or "", after.subscribed_topic_regex or ""
    newest = next(iter(turn.group.regexes.values()), None)
    update = RegexUpdate.UNCHANGED
    is_new = False
    if before.subscribed_topic_regex != after.subscribed_topic_regex:
        update = RegexUpdate.CHANGED
        if old and old not in turn.group.regex_counts:
            turn.write(regex_tombstone(turn.group_id, old))
        if new and turn.group.regex_counts[new] == 1:
            compiled(new)
            is_new = True
        elif new in turn.group.regexes or (old and not new):
            update = RegexUpdate.CHANGED_AND_RESOLVED
    _resolve_if_due(turn, newest, event, is_new=is_new)
    return update


def _resolve_if_due(
    turn: ConsumerTurn,
    newest: ResolvedRegex | None,
    event: ConsumerGroupHeartbeat | JoinGroup,
    *,
    is_new: bool,
) -> None:
    """Begin a resolution if one is due.

    `newest` is the last resolution from before this heartbeat: the heartbeat may have dropped that
    resolution, but its time still counts.
    """
    group = turn.group
    if not group.regex_counts or group.is_resolving:
        return
    # A time that is still to come is of a clock that was set back.
    if newest is not None and 0 <= turn.now_ms - newest.timestamp_ms <= MIN_REFRESH_INTERVAL_MS:
        return
    is_due = (
        is_new
        or newest is None
        or len(group.regex_counts) != len(group.regexes)
        or newest.version < turn.groups.new_topics_version
        or turn.now_ms > newest.timestamp_ms + turn.config.consumer_group_regex_refresh_interval_ms
    )
    if is_due:
        turn.soft(is_resolving=True)
        regexes = tuple(group.regex_counts)
        turn.start(ResolveRegexes(turn.group_id, turn.now_ms, regexes, event.principal, event.client_host))


def on_regexes_resolved(
    groups: Groups, event: RegexesResolved, config: GroupCoordinatorConfig
) -> Step[Groups]:
    """Store the topics of expressions still in use; if they have changed, bump the group epoch."""
    group = groups.consumer(event.group_id)
    if group is None:
        return Step(groups)
    turn = ConsumerTurn(groups, group, event.now_ms, config)
    turn.soft(is_resolving=False)
    if event.resolved is None:
        return turn.step()
    changed = False
    for regex, topics in event.resolved:
        if regex in group.regex_counts:
            changed = changed or topics != group.regexes.get(regex, ResolvedRegex()).topics
            found = ResolvedRegex(topics, event.version, event.started_ms)
            turn.write(regex_record(event.group_id, regex, found))
    epoch = turn.group.group_epoch
    turn.bump_epoch(always=changed)
    if turn.group.group_epoch != epoch:
        turn.soft(refresh_deadline_ms=event.now_ms + METADATA_REFRESH_INTERVAL_MS)
    return turn.step()
