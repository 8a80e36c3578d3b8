"""FetchSnapshot (59): an observer that lacks trimmed records copies a snapshot in parts."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.messages import FetchSnapshot
from pykafka_broker.raft.snapshots import decode_snapshot
from pykafka_broker.raft.wire import fetch_snapshot
from pykafka_broker.testing.user import User
from tests.support.controllers import combined_home, controller_address
from tests.support.observers import OBSERVER, observer_of


async def test_an_observer_of_a_trimmed_log_begins_with_the_snapshot() -> None:
    home = combined_home({"metadata.log.max.record.bytes.between.snapshots": "1"})
    async with home.running() as client, await User.connect(controller_address(home.broker)) as user:
        for number in range(3):
            await client.create_topic(f"orders{number}")
        observer = await observer_of(home, user)
        snapshot_id = (await observer.fetch()).snapshot_id
        assert snapshot_id is not None
        data, size_bytes = b"", 1
        while len(data) < size_bytes:
            asked = FetchSnapshot(observer.epoch, OBSERVER, snapshot_id, len(data), 100)
            response = await user.send(fetch_snapshot.request(asked, observer.scope), 1)
            part = fetch_snapshot.read_response(response, observer.scope)
            assert (part.error, part.position, len(part.data) <= 100) == (ErrorCode.NONE, len(data), True)
            data, size_bytes = data + part.data, part.size_bytes
        assert len(decode_snapshot(data).values) > 0

        beyond = FetchSnapshot(observer.epoch, OBSERVER, snapshot_id, size_bytes, 100)
        response = await user.send(fetch_snapshot.request(beyond, observer.scope), 1)
        assert fetch_snapshot.read_response(response, observer.scope).error is ErrorCode.POSITION_OUT_OF_RANGE
        unknown = FetchSnapshot(observer.epoch, OBSERVER, snapshot_id._replace(end_offset=1), 0, 100)
        response = await user.send(fetch_snapshot.request(unknown, observer.scope), 1)
        assert fetch_snapshot.read_response(response, observer.scope).error is ErrorCode.SNAPSHOT_NOT_FOUND
