"""The member that sends ShareFetch or ShareAcknowledge, and the release of records at its session's end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.denials import denied_groups
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.sharing.groups import serves_share_groups
from pykafka_broker.apis.sharing.sessions import Ended, Member
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.java_hash import string_length

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.apis.ports.node import NodePorts

#: Kafka's share consumers use a UUID of 22 characters; its broker also accepts one with dashes.
MAX_MEMBER_ID_CHARACTERS = 36


def member_of(group_id: str | None, member_id: str | None, ctx: RequestContext) -> Member:
    """The member that sends the request. The group is not asked whether it knows the member.

    Raises:
        KafkaError: UNSUPPORTED_VERSION if share groups are disabled, INVALID_REQUEST for a missing or invalid
            id, GROUP_AUTHORIZATION_FAILED.
    """
    if not serves_share_groups(ctx):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if denied_groups(ctx, AclOperation.READ, (group_id,)):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if member_id is None or not is_member_id(member_id):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return Member(group_id, member_id)


def is_member_id(text: str) -> bool:
    """Whether a member of a share group may have this id."""
    return 0 < string_length(text) <= MAX_MEMBER_ID_CHARACTERS


def end_session(node: NodePorts, member: Member) -> None:
    """End a member's session and release its records, without waiting until that is written."""
    _release(node, node.share_sessions.end(member))


def end_with_connection(ctx: RequestContext) -> None:
    """End the sessions of this connection when it is lost."""
    node, connection = ctx.node, ctx.connection
    connection.on_close(lambda: _release(node, node.share_sessions.lost(connection)))


def drop_pushed_out(node: NodePorts) -> None:
    """Drop the groups that members who began anew have pushed out of their connections."""
    for group_id in node.share_sessions.pushed_out():
        node.share_partitions.drop_group(group_id)


def _release(node: NodePorts, ended: Ended) -> None:
    for session in ended.sessions:
        group_id, member_id = session.member
        for topic_id, index in session.partitions:
            share_partition = node.share_partitions.find(group_id, topic_id, index)
            if share_partition is not None:
                share_partition.release(member_id)
    for group_id in ended.emptied:
        node.share_partitions.drop_group(group_id)
