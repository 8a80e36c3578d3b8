"""A reader of the metadata log that replicates nothing, without I/O.

    request()     -> the next request for the controller that is asked
    take(answer)  -> Progress: ask again, ask the leader, wait, or all that is committed is here

Its replica id is -1, so it counts neither as a voter nor as an observer of the quorum. It takes in committed
records only, so its log never diverges from the leader's.
"""

from __future__ import annotations

from enum import Enum
from typing import Union

from pykafka_broker.cli.metadata_shell.replaying import Replaying
from pykafka_broker.client.core.addresses import Address
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.fetch import FetchRequest, FetchResponse
from pykafka_broker.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from pykafka_broker.protocol.records.batch import read_header
from pykafka_broker.raft.core.log_view import SnapshotId
from pykafka_broker.raft.core.messages import Current, Fetch, FetchAnswer, FetchSnapshot, FetchSnapshotAnswer
from pykafka_broker.raft.core.quorum import ReplicaKey
from pykafka_broker.raft.snapshots import decode_snapshot
from pykafka_broker.raft.wire import fetch, fetch_snapshot
from pykafka_broker.raft.wire.common import Scope
from pykafka_broker.system.named_tuple import NamedTuple

READER = ReplicaKey(-1, bytes(16))
#: The cluster is not known beforehand: requests name none.
SCOPE = Scope("")
MAX_BYTES = 8 << 20
#: A larger snapshot is refused: it is held in memory.
MAX_SNAPSHOT_BYTES = 1 << 30
_OTHER_LEADER = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
)


class Progress(Enum):
    """What to do after an answer."""

    ASK_AGAIN = "ask again at once"
    ASK_LEADER = "ask the controller at `leader`"
    WAIT = "ask again after a pause"
    CAUGHT_UP = "all that is committed has been taken in"


class _Download(NamedTuple):
    snapshot_id: SnapshotId
    data: bytes = b""
    size_bytes: int = -1


class Observer:
    """The progress of reading the log, and the next request."""

    def __init__(self) -> None:
        self._replaying = Replaying()
        self._epoch = 0
        self._download: _Download | None = None
        #: The address of the leader, once an answer has told it.
        self.leader: Address | None = None

    @property
    def replaying(self) -> Replaying:
        """The records taken in so far, replayed."""
        return self._replaying

    def request(self) -> Union[FetchRequest, FetchSnapshotRequest]:
        """The next request."""
        if self._download is not None:
            snapshot_id, data, _ = self._download
            part = FetchSnapshot(self._epoch, READER, snapshot_id, len(data), MAX_BYTES)
            part_request = fetch_snapshot.request(part, SCOPE)
            part_request.cluster_id = None
            return part_request
        log = self._replaying
        asked = Fetch(self._epoch, READER, log.next_offset, log.last_epoch, max_wait_ms=0)
        request = fetch.request(asked, SCOPE, MAX_BYTES)
        request.cluster_id = None
        return request

    def take(self, response: Union[FetchResponse, FetchSnapshotResponse]) -> Progress:
        """Take in the answer to the newest request.

        Raises:
            KafkaError: the controller refuses.
            MalformedAnswer, MalformedFile: its answer is empty, or its snapshot is damaged.
        """
        if response.error_code:
            raise KafkaError(ErrorCode(response.error_code))
        if isinstance(response, FetchSnapshotResponse):
            return self._take_part(fetch_snapshot.read_response(response, SCOPE))
        return self._take_batches(fetch.read_response(response, SCOPE))

    def _take_batches(self, answer: FetchAnswer) -> Progress:
        if answer.error is not ErrorCode.NONE:
            return self._refused(answer.error, answer.current)
        log = self._replaying
        if answer.snapshot_id is not None:
            self._download = _Download(answer.snapshot_id)
            return Progress.ASK_AGAIN
        if answer.diverging is not None:
            # A committed log never diverges from a leader's: this is another cluster.
            raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, "The metadata log is another than before")
        if answer.high_watermark is None:
            return Progress.WAIT
        for batch in answer.batches:
            if batch.base_offset == log.next_offset and batch.next_offset <= answer.high_watermark:
                assert isinstance(batch.data, bytes)
                log.take(read_header(batch.data), batch.data)
        if log.next_offset >= answer.high_watermark:
            return Progress.CAUGHT_UP
        return Progress.ASK_AGAIN if answer.batches else Progress.WAIT

    def _take_part(self, answer: FetchSnapshotAnswer) -> Progress:
        if answer.error is ErrorCode.SNAPSHOT_NOT_FOUND:
            self._download = None
            return Progress.ASK_AGAIN
        if answer.error is not ErrorCode.NONE:
            return self._refused(answer.error, answer.current)
        download = self._download
        assert download is not None
        if answer.size_bytes > MAX_SNAPSHOT_BYTES:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"A snapshot of {answer.size_bytes} bytes is too large"
            )
        if answer.position != len(download.data) or not answer.data:
            self._download = None
            return Progress.WAIT
        data = download.data + answer.data
        if len(data) < answer.size_bytes:
            self._download = download._replace(data=data)
        else:
            self._download = None
            self._replaying.start_from(download.snapshot_id, decode_snapshot(data))
        return Progress.ASK_AGAIN

    def _refused(self, error: ErrorCode, current: Current) -> Progress:
        if error not in _OTHER_LEADER:
            raise KafkaError(error)
        is_news = current.epoch > self._epoch
        self._epoch = max(self._epoch, current.epoch)
        address = next(iter(current.endpoints.values()), None)
        if current.epoch == self._epoch and address is not None:
            self.leader = Address(*address)
            return Progress.ASK_LEADER
        return Progress.ASK_AGAIN if is_news else Progress.WAIT
