"""The parts of every decision about a share group: the turn, its timer, and its errors."""

from __future__ import annotations

from collections.abc import Hashable

from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.records import after
from pykafka_broker.coordinator.groups.core.share.records import epoch_record, states_record
from pykafka_broker.coordinator.groups.core.share.state import ShareGroup, StatePartitions
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.topics import group_hash
from pykafka_broker.coordinator.groups.core.turn import GroupTurn
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


def session_timer(group_id: str, member_id: str) -> Hashable:
    """Expels a member whose session has timed out."""
    return ("share-session", group_id, member_id)


class ShareTurn(GroupTurn):
    """The changes of one event to one share group, while it is handled.

    `write` is the only way to change the durable part: it applies the record at once, as a reader of the log
    will.
    """

    def __init__(
        self, groups: Groups, group: ShareGroup, now_ms: int, config: GroupCoordinatorConfig
    ) -> None:
        super().__init__(now_ms, config)
        self.groups = groups
        self.group = group
        self.settings = config.share_settings(group.group_id)

    @property
    def group_id(self) -> str:
        return self.group.group_id

    def write(self, *records: Record) -> None:
        for record in records:
            self.records.append(record)
            changed = after(self.group, record)
            assert isinstance(changed, ShareGroup)
            self.group = changed._replace(is_settled=False)

    def write_states(self, states: StatePartitions) -> None:
        """Record which partitions have a state at the share coordinator."""
        self.write(states_record(self.group_id, states, self.groups.topics))
        self.group = self.group._replace(states_written_ms=self.now_ms)

    def bump_epoch(self, *, always: bool) -> bool:
        """Move the group to its next epoch, if it must be or if the subscribed topics have changed."""
        fingerprint = group_hash(self.group.name_counts, self.groups.topics)
        if not always and fingerprint == self.group.metadata_hash:
            return False
        self.write(epoch_record(self.group_id, self.group.group_epoch + 1, fingerprint))
        return True

    def settle(self) -> None:
        """Note whether the heartbeat changed nothing; initializing states may have to be requested again."""
        states = self.group.states
        is_waiting = states is not None and bool(states.initializing)
        is_behind = self.group.assignment_epoch < self.group.group_epoch
        is_settled = not (self.records or is_waiting or is_behind)
        if is_settled != self.group.is_settled:
            self.group = self.group._replace(is_settled=is_settled)

    def reset_session(self, member_id: str) -> None:
        self.set_timer(session_timer(self.group_id, member_id), self.settings.session_timeout_ms)

    def step(self) -> Step[Groups]:
        return self.step_to(self.group, self.groups)


def share_group(groups: Groups, group_id: str) -> ShareGroup:
    """The share group with this id.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND.

    """
    if group_id not in groups.groups:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    return _of_this_kind(groups, group_id)


def share_group_or_new(groups: Groups, group_id: str) -> ShareGroup:
    """The share group with this id; a new one if there is no group.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, the group is of another kind.

    """
    return _of_this_kind(groups, group_id) if group_id in groups.groups else ShareGroup.new(group_id)


def _of_this_kind(groups: Groups, group_id: str) -> ShareGroup:
    group = groups.share(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    return group
