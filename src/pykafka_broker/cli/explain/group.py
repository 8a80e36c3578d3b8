"""What Kafka's APIs tell about a group: its state and what it means, its members, and their lags."""

from __future__ import annotations

from collections import Counter

from pykafka_broker.cli.explain.explanation import Fact
from pykafka_broker.cli.group_state import MEANINGS, Group, describe_group, partitions_text, positions
from pykafka_broker.cli.share_group_state import ShareGroup, describe_share_group
from pykafka_broker.client.blocking import Client
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.wording import counted


def look(client: Client, name: str) -> list[Fact]:
    """The present of a group of any kind.

    Raises:
        KafkaError: the coordinator's error.
    """
    group = _described(client, name)
    members = counted(len(group.members), "member")
    lags = _lags(client, group) if isinstance(group, Group) else Counter[str | None]()
    behind = f", {counted(lags.total(), 'record')} behind" if lags else ""
    facts = [
        state_fact(group.state),
        Fact(f"Its coordinator is broker {group.coordinator.node_id}, and it has {members}{behind}."),
    ]
    for member in group.members:
        has = partitions_text(member.assignment, ", ") or "no partition"
        lag = lags.get(member.consumer_id)
        behind = "" if lag is None else f", {counted(lag, 'record')} behind"
        facts.append(Fact(f"Member {member.consumer_id} ({member.host.lstrip('/')}) has {has}{behind}."))
    return facts


def _lags(client: Client, group: Group) -> Counter[str | None]:
    """How far each member is behind, and None, which stands for partitions without a member; nothing if this
    user may not ask.
    """
    lags = Counter[str | None]()
    try:
        found = positions(client, group)
    except KafkaError:
        return lags
    for position in found:
        if position.lag is not None:
            lags[position.consumer_id] += position.lag
    return lags


def state_fact(name: str) -> Fact:
    """What the state of a group means."""
    meaning, remedy = MEANINGS.get(name, ("", ""))
    return Fact(f"The group is {name}{f': {meaning}' if meaning else ''}.", remedy)


def _described(client: Client, name: str) -> Group | ShareGroup:
    try:
        return describe_group(client, name)
    except KafkaError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        try:
            return describe_share_group(client, name)
        except KafkaError as of_share_group:
            # Brokers that know no share groups refuse the version.
            if of_share_group.code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
                raise error from None
            raise
