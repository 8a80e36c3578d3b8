"""What consumer groups do when the cluster's topics change, and when they have been read back from a log."""

from __future__ import annotations

from pykafka_broker.coordinator.group.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.group.consumer.state import ConsumerGroup, MemberState
from pykafka_broker.coordinator.group.consumer.turn import revocation_timer, session_timer
from pykafka_broker.coordinator.group.events import TopicsChanged
from pykafka_broker.coordinator.group.state import Groups
from pykafka_broker.machine.step import Effect, SetTimer, Step


def on_topics_changed(groups: Groups, event: TopicsChanged) -> Step[Groups]:
    """Groups that read a changed topic look at it with their next heartbeat."""
    state = groups._replace(topics=event.topics)
    if event.has_new_topics or groups.new_topics_version == -1:
        state = state._replace(new_topics_version=event.topics.version)
    for group_id in tuple(groups.consumer_group_ids) if event.changed else ():
        group = state.consumer(group_id)
        assert group is not None
        if group.refresh_deadline_ms and any(map(group.is_subscribed_to, event.changed)):
            state = state.with_group(group._replace(refresh_deadline_ms=0))
    return Step(state)


def timers_of_loaded(group: ConsumerGroup, now_ms: int, config: GroupCoordinatorConfig) -> list[Effect]:
    """Every member gets a new session, and its time to give up what it was told to."""
    timeout_ms = config.consumer_settings(group.group_id).session_timeout_ms
    effects: list[Effect] = []
    for member in group.members.values():
        effects.append(SetTimer(session_timer(group.group_id, member.member_id), now_ms + timeout_ms))
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            at_ms = now_ms + member.rebalance_timeout_ms
            effects.append(SetTimer(revocation_timer(group.group_id, member.member_id), at_ms))
    return effects
