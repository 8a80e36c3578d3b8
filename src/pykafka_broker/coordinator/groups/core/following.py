"""Changes of the cluster's topics, as groups follow them."""

from __future__ import annotations

from functools import partial

from pykafka_broker.coordinator.groups.core import forgetting
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup
from pykafka_broker.coordinator.groups.core.events import TopicsChanged, TopicsDeleted
from pykafka_broker.coordinator.groups.core.kinds import kind_of
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.machine.step import Step


def on_topics_changed(groups: Groups, event: TopicsChanged) -> Step[Groups]:
    """Groups that depend on a changed topic check it at their next heartbeat."""
    state = groups._replace(topics=event.topics)
    if event.has_new_topics or groups.new_topics_version == -1:
        state = state._replace(new_topics_version=event.topics.version)
    for group_id in tuple(groups.consumer_group_ids) if event.changed else ():
        group = state.groups[group_id]
        assert not isinstance(group, ClassicGroup)
        if group.refresh_deadline_ms and any(map(partial(kind_of(group).looks_at, group), event.changed)):
            state = state.with_group(group._replace(refresh_deadline_ms=0))
    return Step(state)


def on_topics_deleted(groups: Groups, event: TopicsDeleted) -> Step[Groups]:
    """Forget the offsets of deleted topics, and other state that groups keep of them."""
    state, records, effects = forgetting.on_topics_deleted(groups, event)
    topic_ids = frozenset(topic_id for _, topic_id in event.topics)
    more: list[object] = []
    for group_id in tuple(groups.consumer_group_ids):
        group = state.groups[group_id]
        changed, of_group = kind_of(group).forget_topics(group, topic_ids, groups.topics, event.now_ms)
        if of_group:
            state = state.with_group(changed)
            more += of_group
    return Step(state, (*records, *more), effects)
