"""Which topics that an expression of a group matches the member may see that has given it."""

from __future__ import annotations

from collections.abc import Collection

from pykafka_broker.apis.ports.authorizer import AclOperation, AclResourceType, Authorizer
from pykafka_broker.protocol.fields import api_key_of
from pykafka_broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pykafka_broker.system.named_tuple import NamedTuple


class Member(NamedTuple):
    """The member of a group whose request has been answered already."""

    principal: str
    client_host: str
    api_key: int = api_key_of(ConsumerGroupHeartbeatRequest)
    client_id: str | None = None


def describable_topics(
    authorizer: Authorizer, principal: str, client_host: str, topics: Collection[str]
) -> Collection[str]:
    """Those of `topics` that the member may describe; it has not named them."""
    member = Member(principal, client_host)
    return authorizer.filter(member, AclOperation.DESCRIBE, AclResourceType.TOPIC, topics, is_attempt=False)
