"""A replica of the metadata log elsewhere, which asks a node over its listener of controllers."""

from __future__ import annotations

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.cluster.loader import MetadataLoader
from pykafka_broker.cluster.records import decode_record
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.records.batch import read_records
from pykafka_broker.raft.core.messages import Fetch, FetchAnswer
from pykafka_broker.raft.core.quorum import ReplicaKey
from pykafka_broker.raft.wire import fetch
from pykafka_broker.raft.wire.common import Scope
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User

OBSERVER = ReplicaKey(2, b"2" * 16)


class Observer:
    """A replica that copies the log over one connection."""

    def __init__(self, user: User, cluster_id: str) -> None:
        self.user = user
        self.scope = Scope(cluster_id)
        self.loader = MetadataLoader(ClusterImage())
        self.offset = self.epoch = self.last_epoch = 0

    async def ask(self, asked: Fetch, version: int = 18) -> FetchAnswer:
        response = await self.user.send(fetch.request(asked, self.scope, 1 << 20), version)
        return fetch.read_response(response, self.scope)

    async def fetch(self, max_wait_ms: int = 0) -> FetchAnswer:
        """Ask for what comes next, and take it in."""
        asked = Fetch(self.epoch, OBSERVER, self.offset, self.last_epoch, max_wait_ms)
        answer = await self.ask(asked)
        for batch in answer.batches:
            self.offset, self.last_epoch = batch.next_offset, batch.epoch
            if batch.control:
                self.loader.skip_to(batch.next_offset - 1, batch.epoch)
            else:
                assert isinstance(batch.data, bytes)
                records = [decode_record(record.value or b"") for record in read_records(batch.data)]
                self.loader.apply(records, offset=batch.base_offset, epoch=batch.epoch)
        return answer

    async def find_leader(self) -> None:
        """Learn the epoch: a replica that knows none asks in epoch 0."""
        answer = await self.fetch()
        assert answer.error is ErrorCode.FENCED_LEADER_EPOCH
        self.epoch = answer.current.epoch


async def observer_of(home: Home, user: User) -> Observer:
    observer = Observer(user, home.broker.node.image.cluster_id)
    await observer.find_leader()
    return observer
