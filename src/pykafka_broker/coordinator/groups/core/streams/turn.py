"""The parts of every decision about a streams group: the turn, and its timers."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pykafka_broker.coordinator.groups.core.config import StreamsGroupSettings
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.streams.records import apply, epoch_record
from pykafka_broker.coordinator.groups.core.streams.state import StreamsGroup
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.machine.step import CancelTimer, Effect, Reply, SetTimer, Step

#: A decision about a group. None stands for no group.
GroupStep = Step[StreamsGroup | None]

#: The setting that a target depends on, by the name under which the group's record keeps it.
NUM_STANDBY_REPLICAS = "num.standby.replicas"


def session_timer(group_id: str, member_id: str) -> Hashable:
    """Expels a member whose session has timed out."""
    return ("streams-session", group_id, member_id)


def revocation_timer(group_id: str, member_id: str) -> Hashable:
    """Expels a member that does not revoke tasks in time."""
    return ("streams-revocation", group_id, member_id)


def initial_rebalance_timer(group_id: str) -> Hashable:
    """Makes the first assignment of a group that was empty."""
    return ("streams-initial-rebalance", group_id)


class StreamsTurn:
    """The changes of one event to one streams group, while it is handled.

    `write` is the only way to change the durable part: it applies the record at once, as a reader of the log
    will. `soft` changes the rest.
    """

    def __init__(
        self, group: StreamsGroup, topics: TopicDirectory, settings: StreamsGroupSettings, now_ms: int
    ) -> None:
        self.group = group
        #: The group when the turn began; reading its tables is expensive once they have changed.
        self.before = group
        self.was_empty = not group.members
        #: The member that joins in this turn.
        self.newcomer: str | None = None
        self.topics = topics
        self.settings = settings
        self.now_ms = now_ms
        self.records: list[Record] = []
        self.effects: list[Effect] = []

    @property
    def assignment_configs(self) -> tuple[tuple[str, str], ...]:
        """The settings a target depends on, as the group's record keeps them."""
        return ((NUM_STANDBY_REPLICAS, str(self.settings.num_standby_replicas)),)

    @property
    def group_id(self) -> str:
        return self.group.group_id

    def write(self, *records: Record) -> None:
        for record in records:
            self.records.append(record)
            changed = apply(self.group, record)
            assert changed is not None
            self.group = changed

    def soft(self, **values: Any) -> None:
        self.group = self.group._replace(**values)

    def bump_epoch(self, **values: Any) -> None:
        """Move the group to its next epoch, with other fields of its record."""
        self.write(epoch_record(self.group._replace(group_epoch=self.group.group_epoch + 1, **values)))

    def reply(self, token: int, result: object) -> None:
        self.effects.append(Reply(token, result))

    def set_timer(self, key: Hashable, delay_ms: int) -> None:
        self.effects.append(SetTimer(key, self.now_ms + delay_ms))

    def cancel_timers(self, member_id: str) -> None:
        for timer in (session_timer, revocation_timer):
            self.effects.append(CancelTimer(timer(self.group_id, member_id)))

    def cancel_timer(self, key: Hashable) -> None:
        self.effects.append(CancelTimer(key))

    def step(self) -> GroupStep:
        return Step(self.group, tuple(self.records), tuple(self.effects))
