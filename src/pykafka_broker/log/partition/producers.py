"""Producer state of one partition: who may append next, which batches are retries, and the open transactions.

Pure. Per producer id it keeps the epoch and the last five batches (KIP-98's window of `max.in.flight`
requests), so a retried batch is answered with its original offsets instead of being appended twice; a gap is
refused, an old epoch is fenced. It also keeps, for the last stable offset, open transactions and completed
ones whose marker is not yet below the high watermark, and the questions to the transaction coordinator that a
transaction's first append has to wait for (`transaction_guards.py`).

`check` decides and changes nothing; `append` records a batch that is in the log. Both take the batch header,
so that rebuilding the state from a log is the same call per header (`REPLICATION`: nothing is refused).

Snapshots have Kafka's `.snapshot` bytes (version 1: one batch per producer). Kafka forgets the other four
batches over a restart, so that retries of them are appended twice. We keep all five in a file of our own
beside it (`window_bytes`), which is used only if it agrees with the snapshot and is otherwise rebuilt from
the log.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from enum import Enum
from struct import Struct

from pykafka_broker.log.partition.transaction_guards import NO_GUARD, VerificationStateEntry
from pykafka_broker.log.segment.aborted_txns import AbortedTxn
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import (
    EPOCH_BUMP,
    MAX_PRODUCER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    BatchHeader,
    increment_sequence,
    read_records,
)
from pykafka_broker.protocol.records.control import EndTransactionMarker, decode_marker
from pykafka_broker.protocol.records.crc import crc32c
from pykafka_broker.system.named_tuple import NamedTuple

WINDOW_BATCHES = 5
#: A coordinator that aborts a transaction has this time after the longest `transaction.timeout.ms`.
LATE_TRANSACTION_BUFFER_MS = 300_000
NO_OFFSET = -1
_MAX_SEQUENCE = (1 << 31) - 1


class AppendOrigin(Enum):
    """The origin of an append, which decides how much is checked."""

    #: A Produce request: everything is checked.
    CLIENT = "client"
    #: A coordinator of this broker: offsets are assigned, producer epochs checked, sequences not.
    COORDINATOR = "coordinator"
    #: The raft leader: offsets and epoch are already right.
    RAFT_LEADER = "raft_leader"
    #: A copy of batches that the leader has accepted: taken as they are.
    REPLICATION = "replication"


class BatchSummary(NamedTuple):
    """One appended batch, as the window remembers it."""

    last_sequence: int
    last_offset: int
    #: last offset - first offset; also last sequence - first sequence.
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def first_sequence(self) -> int:
        return minus_sequence(self.last_sequence, self.offset_delta)


class ProducerState:
    """The state of one producer id."""

    __slots__ = (
        "coordinator_epoch",
        "current_txn_first_offset",
        "idle_since_ms",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
        "window",
    )

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = -1,
        last_timestamp: int = -1,
        current_txn_first_offset: int = NO_OFFSET,
        window: tuple[BatchSummary, ...] = (),
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.current_txn_first_offset = current_txn_first_offset
        #: Oldest first, at most five.
        self.window = window
        #: When `expire` first found nothing new of the producer; None = it has appended since.
        self.idle_since_ms: int | None = None

    @property
    def last_sequence(self) -> int:
        return self.window[-1].last_sequence if self.window else NO_SEQUENCE

    def _key(self) -> tuple[object, ...]:
        return (
            self.producer_id,
            self.producer_epoch,
            self.coordinator_epoch,
            self.last_timestamp,
            self.current_txn_first_offset,
            self.window,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProducerState) and self._key() == other._key()

    # The state changes, so it is no key; the type of `object.__hash__` does not allow for that.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "ProducerState" + repr(self._key())


class ProducerStates:
    """All producers of one partition, and its open transactions."""

    __slots__ = ("end_offset", "ongoing", "producers", "unreplicated", "verifications")

    def __init__(self, end_offset: int = 0) -> None:
        self.producers: dict[int, ProducerState] = {}
        #: Open transactions, first offset -> producer id. New ones start past all others, so the order is
        #: by offset.
        self.ongoing: dict[int, int] = {}
        #: Ended transactions whose marker is not below the high watermark yet: first offset -> marker's
        #: offset.
        self.unreplicated: dict[int, int] = {}
        #: Open questions to the coordinator, by producer id; none survives a restart.
        self.verifications: dict[int, VerificationStateEntry] = {}
        #: Everything below this offset is accounted for.
        self.end_offset = end_offset

    def start_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, *, bumps_epoch: bool, now_ms: int
    ) -> int:
        """The guard under which the coordinator has to be asked before a transactional batch is appended;
        NO_GUARD if the producer's transaction is open here already.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH for an old epoch.
        """
        state = self.producers.get(producer_id)
        if state is not None and producer_epoch < state.producer_epoch:
            raise _old_epoch(producer_id, producer_epoch, state.producer_epoch)
        if self.has_open_transaction(producer_id, producer_epoch):
            return NO_GUARD
        verification = self.verifications.get(producer_id)
        if verification is None:
            verification = self.verifications[producer_id] = VerificationStateEntry(
                producer_epoch, sequence, bumps_epoch=bumps_epoch, now_ms=now_ms
            )
        else:
            verification.asked_again(producer_epoch, sequence)
        return verification.guard

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer has a transaction open here in this epoch."""
        state = self.producers.get(producer_id)
        return (
            state is not None
            and state.producer_epoch == producer_epoch
            and state.current_txn_first_offset != NO_OFFSET
        )

    def has_late_transaction(self, now_ms: int, max_timeout_ms: int) -> bool:
        """Whether the producer of the oldest open transaction has appended nothing for `max_timeout_ms` and
        `LATE_TRANSACTION_BUFFER_MS`, by the time of its last record: its coordinator should have aborted
        it (KIP-664).
        """
        producer_id = next(iter(self.ongoing.values()), None)
        if producer_id is None:
            return False
        last_ms = self.producers[producer_id].last_timestamp
        return 0 < last_ms < now_ms - max_timeout_ms - LATE_TRANSACTION_BUFFER_MS

    def check(
        self,
        header: BatchHeader,
        origin: AppendOrigin,
        marker: EndTransactionMarker | None = None,
        *,
        transaction_version: int = 0,
        guard: int | None = NO_GUARD,
    ) -> BatchSummary | None:
        """Whether a batch of a producer may be appended: None = yes, a summary = it is there already. 0.4 us.

        `transaction_version` is that of a marker's transaction. `guard` proves that the coordinator knows of
        the transaction; None switches that check off.

        Raises KafkaError with the code Kafka answers: 45 for a gap, 47 for an old epoch, 48 for plain
        records in a transaction and for transactional ones outside, 52 for a marker of a deposed
        coordinator.
        """
        if origin is AppendOrigin.REPLICATION:
            return None
        state = self.producers.get(header.producer_id)
        if marker is not None:
            if state is not None:
                _check_marker(state, header, marker, transaction_version)
            return None
        epoch = header.producer_epoch
        if state is not None and origin is AppendOrigin.CLIENT and epoch == state.producer_epoch:
            first, delta = header.base_sequence, header.last_offset_delta
            last = increment_sequence(first, delta)
            for batch in reversed(state.window):
                if batch.last_sequence == last and batch.offset_delta == delta:
                    return batch
        if state is not None and epoch < state.producer_epoch:
            raise _old_epoch(header.producer_id, epoch, state.producer_epoch)
        if header.is_transactional and not self.has_open_transaction(header.producer_id, epoch):
            self._check_verification(header, origin, state, guard)
        if state is None:
            return None
        if origin is AppendOrigin.CLIENT:
            self._check_sequence(state, header)
        if state.current_txn_first_offset != NO_OFFSET and not header.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {header.producer_id}",
            )
        return None

    def _check_verification(
        self, header: BatchHeader, origin: AppendOrigin, state: ProducerState | None, guard: int | None
    ) -> None:
        """Check a transaction's first batch: the coordinator was asked, and no earlier batch waits."""
        verification = self.verifications.get(header.producer_id)
        if guard is not None and (verification is None or verification.guard != guard):
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
        if verification is None or origin is not AppendOrigin.CLIENT:
            return
        first = header.base_sequence
        if verification.bumps_epoch and first != 0 and (state is None or not state.window):
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid sequence number for producer {header.producer_id}: {first} (incoming seq. number). "
                "Expected sequence 0 for transactions v2 idempotent producer with no existing state.",
            )
        if first > verification.lowest_sequence:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {header.producer_id}: {first} "
                f"(incoming seq. number), {verification.lowest_sequence} (earliest seen sequence)",
            )

    @staticmethod
    def _check_sequence(state: ProducerState, header: BatchHeader) -> None:
        """A new epoch starts at 0; otherwise the sequence follows the last one, wrapping past 2^31-1."""
        first = header.base_sequence
        if header.producer_epoch != state.producer_epoch:
            if first != 0 and state.producer_epoch != NO_PRODUCER_EPOCH:
                raise KafkaError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Invalid sequence number for new epoch of producer {header.producer_id}: "
                    f"{header.producer_epoch} (request epoch), {first} (seq. number), "
                    f"{state.producer_epoch} (current producer epoch)",
                )
            return
        last = state.last_sequence
        if first != last + 1 and not (first == 0 and last == _MAX_SEQUENCE):
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {header.producer_id}: {first} "
                f"(incoming seq. number), {last} (current end sequence number)",
            )

    def append(self, header: BatchHeader, first_offset: int, timestamp: int) -> None:
        """Record a data batch that is in the log from `first_offset` on. 1.0 us."""
        producer_id, epoch, delta = header.producer_id, header.producer_epoch, header.last_offset_delta
        state = self.producers.get(producer_id)
        if state is None:
            state = self.producers[producer_id] = ProducerState(producer_id)
        first = header.base_sequence
        # The records that a coordinator commits in a transaction have no sequence numbers.
        last = increment_sequence(first, delta) if first != NO_SEQUENCE else NO_SEQUENCE
        batch = BatchSummary(last, first_offset + delta, delta, timestamp)
        if epoch != state.producer_epoch:
            state.producer_epoch = epoch
            state.window = (batch,)
        else:
            state.window = (*state.window[1 - WINDOW_BATCHES :], batch)
        state.last_timestamp = timestamp
        state.idle_since_ms = None
        if header.is_transactional:
            if self.verifications:
                self.verifications.pop(producer_id, None)
            if state.current_txn_first_offset == NO_OFFSET:
                state.current_txn_first_offset = first_offset
                self.ongoing[first_offset] = producer_id

    def append_marker(
        self, header: BatchHeader, offset: int, timestamp: int, marker: EndTransactionMarker
    ) -> AbortedTxn | None:
        """Record an end-transaction marker at `offset`; returns the index entry if it aborted something."""
        producer_id = header.producer_id
        state = self.producers.get(producer_id)
        if state is None:
            state = self.producers[producer_id] = ProducerState(producer_id)
        if header.producer_epoch != state.producer_epoch:
            state.producer_epoch = header.producer_epoch
            state.window = ()
        state.coordinator_epoch = marker.coordinator_epoch
        state.last_timestamp = timestamp
        state.idle_since_ms = None
        verification = self.verifications.get(producer_id)
        if verification is not None and not (
            # The question is about the next transaction, which has this epoch.
            verification.bumps_epoch and verification.producer_epoch == header.producer_epoch
        ):
            del self.verifications[producer_id]
        first_offset, state.current_txn_first_offset = state.current_txn_first_offset, NO_OFFSET
        if first_offset == NO_OFFSET:
            return None
        del self.ongoing[first_offset]
        self.unreplicated[first_offset] = offset
        if marker.commit:
            return None
        return AbortedTxn(producer_id, first_offset, offset, next(iter(self.ongoing), offset + 1))

    def note(self, header: BatchHeader, marker: EndTransactionMarker | None) -> AbortedTxn | None:
        """Record a batch that is in the log, as it was written or as it is read back; see `append_marker`."""
        if header.producer_id < 0:
            return None
        if marker is not None:
            return self.append_marker(header, header.base_offset, header.max_timestamp, marker)
        if not header.is_control:
            self.append(header, header.base_offset, header.max_timestamp)
        return None

    def on_high_watermark(self, high_watermark: int) -> None:
        """Transactions whose marker consumers may see no longer hold the last stable offset back."""
        if self.unreplicated:
            self.unreplicated = {f: last for f, last in self.unreplicated.items() if last >= high_watermark}

    def first_unstable_offset(self) -> int | None:
        """Start of the oldest transaction that is open, or whose outcome is not below the high watermark
        yet.
        """
        first = next(iter(self.ongoing), None)
        if self.unreplicated:
            oldest_ended = min(self.unreplicated)
            return oldest_ended if first is None else min(first, oldest_ended)
        return first

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers idle for `expiration_ms`, except those inside a transaction; returns how many.

        Idle time is measured by this clock, from check to check. Kafka measures it by the records'
        timestamps, so it forgets a producer of old timestamps at once.
        """
        expired = []
        for state in self.producers.values():
            if state.idle_since_ms is None:
                state.idle_since_ms = now_ms
            elif (
                now_ms - state.idle_since_ms >= expiration_ms and state.current_txn_first_offset == NO_OFFSET
            ):
                expired.append(state.producer_id)
        for producer_id in expired:
            del self.producers[producer_id]
        for producer_id, verification in tuple(self.verifications.items()):
            if now_ms - verification.started_ms >= expiration_ms:
                del self.verifications[producer_id]
        return len(expired)

    def note_idle(self, now_ms: int) -> None:
        """Start the idle time of producers that have appended since the last check."""
        for state in self.producers.values():
            if state.idle_since_ms is None:
                state.idle_since_ms = now_ms

    def load(self, states: Iterable[ProducerState], end_offset: int) -> None:
        """Start from a snapshot taken at `end_offset`."""
        self.producers = {}
        self.unreplicated = {}
        self.end_offset = end_offset
        self.add_missing(states)

    def add_missing(self, states: Iterable[ProducerState]) -> None:
        """Add the producers of a snapshot that are not known yet, with their open transactions."""
        for state in states:
            self.producers.setdefault(state.producer_id, state)
        open_txns = [s for s in self.producers.values() if s.current_txn_first_offset != NO_OFFSET]
        open_txns.sort(key=lambda state: state.current_txn_first_offset)
        self.ongoing = {s.current_txn_first_offset: s.producer_id for s in open_txns}


def _old_epoch(producer_id: int, epoch: int, last_seen: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"Epoch of producer {producer_id} is {epoch}, which is smaller than the last seen epoch {last_seen}",
    )


def _check_marker(
    state: ProducerState, header: BatchHeader, marker: EndTransactionMarker, transaction_version: int
) -> None:
    """Refuse a marker that comes too late (KIP-1228).

    From transaction.version 2 on, a marker has an epoch of its own, one above that of the records: with the
    records' own epoch it belongs to an earlier transaction. If no transaction is open, a marker with the same
    epoch is a harmless retry. (An epoch of 2^15-1 has no successor, so its markers are accepted.)
    """
    epoch, current = header.producer_epoch, state.producer_epoch
    if epoch < current:
        raise _old_epoch(header.producer_id, epoch, current)
    is_open = state.current_txn_first_offset != NO_OFFSET
    has_own_epoch = transaction_version >= EPOCH_BUMP and epoch != MAX_PRODUCER_EPOCH
    if has_own_epoch and is_open and epoch == current:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"Epoch of producer {header.producer_id} is {epoch}, "
            f"which is <= the last seen epoch {current} (TV{transaction_version})",
        )
    if marker.coordinator_epoch < state.coordinator_epoch:
        raise KafkaError(
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            f"Invalid coordinator epoch for producerId {header.producer_id}: "
            f"{marker.coordinator_epoch} (zombie), {state.coordinator_epoch} (current)",
        )


def transaction_marker(batch: Buffer, header: BatchHeader) -> EndTransactionMarker | None:
    """The transaction marker in a control batch; None for data and for other control records."""
    if not header.is_control or header.producer_id < 0:
        return None
    for record in read_records(batch, check_crc=False):
        return decode_marker(record.key, record.value)
    return None


def minus_sequence(sequence: int, decrement: int) -> int:
    """The inverse of `increment_sequence`."""
    return (sequence - decrement) & _MAX_SEQUENCE


# .snapshot: i16 version, u32 crc32c of what follows it, i32 count, then per producer
#
#   producer id i64 | epoch i16 | last sequence i32 | last offset i64 | offset delta i32 | timestamp i64
#   | coordinator epoch i32 | current transaction's first offset i64
#
_SNAPSHOT_HEADER = Struct(">hIi")
_SNAPSHOT_ENTRY = Struct(">qhiqiqiq")
_SNAPSHOT_VERSION = 1
_CRC_END = 6

# Our window file, same header: per producer  producer id i64 | count i16 | count x (last sequence i32 |
# last offset i64 | offset delta i32 | timestamp i64), oldest first.
_WINDOW_PRODUCER = Struct(">qh")
_WINDOW_BATCH = Struct(">iqiq")


class CorruptSnapshotError(Exception):
    """The bytes are not a snapshot we can read; rebuild the state from an older one or from the log."""


def snapshot_bytes(states: Iterable[ProducerState]) -> bytes:
    """Kafka's `.snapshot` file: the last batch of every producer."""
    entries = []
    for s in states:
        last = s.window[-1] if s.window else _NO_BATCH
        entries.append(
            _SNAPSHOT_ENTRY.pack(
                s.producer_id,
                s.producer_epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                s.last_timestamp,
                s.coordinator_epoch,
                s.current_txn_first_offset,
            )
        )
    return _sealed(len(entries), entries)


def window_bytes(states: Iterable[ProducerState]) -> bytes:
    """Our companion of a snapshot: every remembered batch of every producer that has more than one."""
    entries = []
    for s in states:
        if len(s.window) > 1:
            batches = b"".join([_WINDOW_BATCH.pack(*batch) for batch in s.window])
            entries.append(_WINDOW_PRODUCER.pack(s.producer_id, len(s.window)) + batches)
    return _sealed(len(entries), entries)


def read_snapshot(data: bytes) -> list[ProducerState]:
    """Read a `.snapshot` file; each producer's window holds its last batch only."""
    count = _unsealed(data)
    if len(data) < _SNAPSHOT_HEADER.size + count * _SNAPSHOT_ENTRY.size:
        raise CorruptSnapshotError("snapshot is shorter than its count says")
    states = []
    for index in range(count):
        fields = _SNAPSHOT_ENTRY.unpack_from(data, _SNAPSHOT_HEADER.size + index * _SNAPSHOT_ENTRY.size)
        producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, txn = fields
        window = (BatchSummary(last_sequence, last_offset, delta, timestamp),) if last_offset >= 0 else ()
        states.append(
            ProducerState(producer_id, epoch, coordinator_epoch, timestamp, max(txn, NO_OFFSET), window)
        )
    return states


def restore_windows(states: Iterable[ProducerState], window_data: bytes) -> bool:
    """Give the states of a snapshot their older batches back; False if the file belongs to another
    snapshot.
    """
    windows = dict(_read_windows(window_data))
    fitting = []
    for state in states:
        window = windows.pop(state.producer_id, state.window)
        if window[-1:] != state.window:
            return False
        fitting.append((state, window))
    if windows:
        return False
    for state, window in fitting:
        state.window = window
    return True


def _read_windows(data: bytes) -> Iterator[tuple[int, tuple[BatchSummary, ...]]]:
    position = _SNAPSHOT_HEADER.size
    try:
        for _ in range(_unsealed(data)):
            producer_id, count = _WINDOW_PRODUCER.unpack_from(data, position)
            position += _WINDOW_PRODUCER.size
            window = tuple(
                BatchSummary(*_WINDOW_BATCH.unpack_from(data, position + i * _WINDOW_BATCH.size))
                for i in range(count)
            )
            position += count * _WINDOW_BATCH.size
            yield producer_id, window
    except struct.error as error:
        raise CorruptSnapshotError("window file is shorter than its count says") from error


def _sealed(count: int, entries: list[bytes]) -> bytes:
    body = count.to_bytes(4, "big") + b"".join(entries)
    return _SNAPSHOT_HEADER.pack(_SNAPSHOT_VERSION, crc32c(body), count) + body[4:]


def _unsealed(data: bytes) -> int:
    if len(data) < _SNAPSHOT_HEADER.size:
        raise CorruptSnapshotError("snapshot is too short")
    version, crc, count = _SNAPSHOT_HEADER.unpack_from(data)
    if version != _SNAPSHOT_VERSION:
        raise CorruptSnapshotError(f"snapshot has an unknown version {version}")
    if crc != crc32c(data[_CRC_END:]):
        raise CorruptSnapshotError("snapshot is corrupt (CRC is no longer valid)")
    if count < 0:
        raise CorruptSnapshotError("snapshot has a negative count")
    return int(count)


_NO_BATCH = BatchSummary(NO_SEQUENCE, NO_OFFSET, 0, -1)
