"""The topics matched by a group's regular expression that the subscribed member may see."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pykafka_broker.apis.ports.authorizer import AclOperation, AclResourceType, Authorizer
from pykafka_broker.protocol.fields import api_key_of
from pykafka_broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pykafka_broker.system.named_tuple import NamedTuple


class Member(NamedTuple):
    """The group member whose expression it is; its request has been answered already."""

    principal: str
    client_host: str
    api_key: int = api_key_of(ConsumerGroupHeartbeatRequest)
    client_id: str | None = None

    @property
    def log_fields(self) -> Mapping[str, object]:
        """The fields of log lines about it."""
        return {"principal": self.principal}


def describable_topics(
    authorizer: Authorizer, principal: str, client_host: str, topics: Collection[str]
) -> Collection[str]:
    """The topics that the member may describe; denials are not logged, as the member has not named the
    topics.
    """
    member = Member(principal, client_host)
    return authorizer.filter(member, AclOperation.DESCRIBE, AclResourceType.TOPIC, topics, is_attempt=False)
