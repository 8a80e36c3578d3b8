"""The parts of every decision about a group of any kind."""

from __future__ import annotations

from collections.abc import Hashable

from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.state import Group, Groups
from pykafka_broker.machine.step import CancelTimer, Effect, Reply, SetTimer, Start, Step


class GroupTurn:
    """The records and effects of one event for one group, while it is handled."""

    def __init__(self, now_ms: int, config: GroupCoordinatorConfig) -> None:
        self.now_ms = now_ms
        self.config = config
        self.records: list[Record] = []
        self.effects: list[Effect] = []

    def reply(self, token: int | None, result: object) -> None:
        """Answer a request, if there is one."""
        if token is not None:
            self.effects.append(Reply(token, result))

    def start(self, work: object) -> None:
        self.effects.append(Start(work))

    def set_timer(self, key: Hashable, delay_ms: int) -> None:
        self.effects.append(SetTimer(key, self.now_ms + delay_ms))

    def cancel_timer(self, key: Hashable) -> None:
        self.effects.append(CancelTimer(key))

    def step_to(self, group: Group, groups: Groups) -> Step[Groups]:
        """The step to this group. A group without records does not exist."""
        is_same = groups.groups.get(group.group_id) is group
        is_absent = not self.records and group.group_id not in groups.groups
        state = groups if is_same or is_absent else groups.with_group(group)
        return Step(state, tuple(self.records), tuple(self.effects))


def refuse(groups: Groups, token: int, result: object) -> Step[Groups]:
    """Answer a request and change nothing."""
    return Step(groups, effects=(Reply(token, result),))
