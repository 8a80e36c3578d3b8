"""The parts of every decision about a consumer group: the turn, its timers, and its errors."""

from __future__ import annotations

from collections.abc import Hashable

from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.consumer.records import epoch_record
from pykafka_broker.coordinator.groups.core.consumer.state import ConsumerGroup
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.records import after
from pykafka_broker.coordinator.groups.core.state import Group, Groups
from pykafka_broker.coordinator.groups.core.topics import group_hash
from pykafka_broker.coordinator.groups.core.turn import GroupTurn
from pykafka_broker.machine.step import Step
from pykafka_broker.system.named_tuple import NamedTuple


def session_timer(group_id: str, member_id: str) -> Hashable:
    """Expels a member whose session has timed out."""
    return ("consumer-session", group_id, member_id)


def revocation_timer(group_id: str, member_id: str) -> Hashable:
    """Expels a member that does not revoke partitions in time."""
    return ("consumer-revocation", group_id, member_id)


def classic_join_timer(group_id: str, member_id: str) -> Hashable:
    """Expels a classic member that was told to join again and has not."""
    return ("consumer-join", group_id, member_id)


def classic_sync_timer(group_id: str, member_id: str) -> Hashable:
    """Expels a classic member that has joined and not asked for its assignment."""
    return ("consumer-sync", group_id, member_id)


class ResolveRegexes(NamedTuple):
    """Work for the shell: find the topics that match; a `RegexesResolved` event brings the answer.

    Topics that the member with this principal and host may not describe are left out.
    """

    group_id: str
    started_ms: int
    regexes: tuple[str, ...]
    principal: str = ""
    client_host: str = ""


class ConsumerTurn(GroupTurn):
    """The changes of one event to one consumer group, while it is handled.

    `write` is the only way to change the durable part: it applies the record at once, as a reader of the log
    will. `soft` changes the rest.
    """

    def __init__(
        self, groups: Groups, group: ConsumerGroup, now_ms: int, config: GroupCoordinatorConfig
    ) -> None:
        super().__init__(now_ms, config)
        self.groups = groups
        self.group = group
        #: The group's epoch when the turn began.
        self.epoch_before = group.group_epoch
        self.settings = config.consumer_settings(group.group_id)
        #: A group of another kind that replaces this one.
        self.successor: Group | None = None

    @property
    def group_id(self) -> str:
        return self.group.group_id

    def write(self, *records: Record) -> None:
        for record in records:
            self.records.append(record)
            changed = after(self.group, record)
            assert isinstance(changed, ConsumerGroup)
            self.group = changed

    def soft(
        self,
        *,
        refresh_deadline_ms: int | None = None,
        is_resolving: bool | None = None,
        expected_to_join: frozenset[str] | None = None,
    ) -> None:
        group = self.group
        self.group = group._replace(
            refresh_deadline_ms=(
                group.refresh_deadline_ms if refresh_deadline_ms is None else refresh_deadline_ms
            ),
            is_resolving=group.is_resolving if is_resolving is None else is_resolving,
            expected_to_join=group.expected_to_join if expected_to_join is None else expected_to_join,
        )

    def bump_epoch(self, *, always: bool) -> None:
        """Move the group to its next epoch, if it must be or if the subscribed topics have changed."""
        fingerprint = group_hash(self.group.subscribed_topics(), self.groups.topics)
        if always or fingerprint != self.group.metadata_hash:
            self.write(epoch_record(self.group_id, self.group.group_epoch + 1, fingerprint))

    def reset_session(self, member_id: str, timeout_ms: int | None = None) -> None:
        delay_ms = self.settings.session_timeout_ms if timeout_ms is None else timeout_ms
        self.set_timer(session_timer(self.group_id, member_id), delay_ms)

    def cancel_timers(self, member_id: str) -> None:
        for timer in (session_timer, revocation_timer, classic_join_timer, classic_sync_timer):
            self.cancel_timer(timer(self.group_id, member_id))

    def step(self) -> Step[Groups]:
        return self.step_to(self.group if self.successor is None else self.successor, self.groups)
