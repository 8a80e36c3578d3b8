"""Changes of the cluster's topics, as consumer groups follow them."""

from __future__ import annotations

from pykafka_broker.coordinator.group.events import TopicsChanged
from pykafka_broker.coordinator.group.state import Groups
from pykafka_broker.machine.step import Step


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
