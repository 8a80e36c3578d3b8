"""Fetch (API key 1) on listeners of controllers: voters and observers copy the metadata log from its leader.

Uncommitted records are sent, too; the high watermark shows which are committed. Unlike a broker's Fetch it
has no sessions, and the topic is always the metadata log. `raft/core` decides, `raft/wire/fetch.py`
translates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.fetching.answer import refused_whole
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.fetch import FetchRequest, FetchResponse
from pykafka_broker.raft.wire import fetch as wire
from pykafka_broker.raft.wire.common import Scope

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext

#: The most bytes of an answer: the largest batch of a metadata log, as in Kafka.
MAX_BYTES = 8 << 20
#: The first version with the address of the leader of the metadata log (KIP-853).
ENDPOINTS_VERSION = 17


def _refused(request: FetchRequest, error: KafkaError) -> FetchResponse:
    return refused_whole(request, error.code)


@handles(
    FetchRequest,
    versions="4-18",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=_refused,
)
async def fetch_from_controller(request: FetchRequest, ctx: ControllerContext) -> FetchResponse:
    """The next records of the metadata log, at once or when some arrive."""
    scope = Scope(ctx.node.metadata.image.cluster_id, ctx.connection.listener_name)
    asked = wire.read_request(request, scope)
    if isinstance(asked, FetchResponse):
        return asked
    ctx.node.connections.note(asked.replica.node_id, ctx.connection)
    answer = await ctx.node.quorum.request(asked)
    records: Buffer = b""
    if answer.read_from is not None:
        records = await ctx.node.quorum.read(answer.read_from, min(max(request.max_bytes, 1), MAX_BYTES))
        if ctx.node.quorum.current.epoch != answer.current.epoch:
            # There is a new leader, and this log may have been truncated before it was read: its records need
            # not continue the log of the fetching replica.
            records = b""
    response = wire.response(answer, scope, records)
    if ctx.version < ENDPOINTS_VERSION:
        response.node_endpoints = []
    return response
