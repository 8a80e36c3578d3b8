"""What Kafka's APIs tell about a group: its state, its members, and what each state means."""

from __future__ import annotations

from pykafka_broker.cli.explain.explanation import Fact
from pykafka_broker.cli.group_state import describe_group, partitions_text
from pykafka_broker.client.blocking import Client
from pykafka_broker.system.wording import counted

#: The meaning of a state, and what to do where it lasts.
STATES = {
    "Empty": ("no member is in it", "Start its consumers, if they are to run."),
    "PreparingRebalance": (
        "its members are to join again",
        "The group waits for those that have not joined, at most for max.poll.interval.ms.",
    ),
    "CompletingRebalance": (
        "its leader is to assign the partitions",
        "The group waits for its leader's assignment.",
    ),
    "Assigning": ("its members are to get new assignments", ""),
    "Reconciling": (
        "some members have not given up, or taken over, their partitions",
        "A member gives up partitions in poll(): one that does not call it holds the others up.",
    ),
    "Stable": ("every member has its partitions", ""),
}


def look(client: Client, name: str) -> list[Fact]:
    """The present of a group of any kind that commits offsets.

    Raises:
        KafkaError: the coordinator's error.
    """
    group = describe_group(client, name)
    meaning, remedy = STATES.get(group.state, ("", ""))
    coordinator = group.coordinator
    facts = [
        Fact(
            f"The group is {group.state}{f': {meaning}' if meaning else ''}. Its coordinator is broker "
            f"{coordinator.node_id}, and it has {counted(len(group.members), 'member')}.",
            remedy,
        )
    ]
    for member in group.members:
        has = partitions_text(member.assignment, ", ") or "no partition"
        facts.append(Fact(f"Member {member.consumer_id} ({member.host.lstrip('/')}) has {has}."))
    return facts
