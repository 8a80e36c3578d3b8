"""Accept, release, reject, gap and renew: how a member acknowledges the records that it has acquired.

A request is carried out as a whole or not at all; locks that it renewed before an error stay renewed, as
in Kafka. Accepted, released and rejected records are in transition until that is written; a renewed lock
is never written. Acknowledgements of records below the start offset are ignored without an error.

The handler checks the order and the overlaps of a request's batches.
"""

from __future__ import annotations

from typing import Optional

from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.share.core.batch import InFlightBatch, Piece
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import OK, Acknowledge, AcknowledgementBatch, AcknowledgeType, Result
from pykafka_broker.share.core.in_flight import (
    NO_MEMBER,
    Delivery,
    given_back,
    in_transition,
    renewed,
)
from pykafka_broker.share.core.records import WrittenBatch
from pykafka_broker.share.core.state import SharePartition
from pykafka_broker.share.core.turn import Turn, written_batch
from pykafka_broker.share.core.writing import roll_back


def _invalid_state(message: str) -> Result:
    return Result(ErrorCode.INVALID_RECORD_STATE, message)


def _invalid_request(message: str) -> Result:
    return Result(ErrorCode.INVALID_REQUEST, message)


NOT_FOUND = _invalid_state("Batch record not found. The request batch offsets are not found in the cache.")
FIRST_PAST_END = _invalid_request(
    "Batch record not found. The first offset in request is past acquired records."
)
LAST_PAST_END = _invalid_request(
    "Batch record not found. The last offset in request is past acquired records."
)
BATCH_NOT_ACQUIRED = _invalid_state(
    "The batch cannot be acknowledged. The batch is not in the acquired state."
)
OFFSET_NOT_ACQUIRED = _invalid_state("The offset cannot be acknowledged. The offset is not acquired.")
BATCH_OF_OTHER = _invalid_state("Member is not the owner of batch record")
OFFSET_OF_OTHER = _invalid_state("Member is not the owner of offset")
RENEW_DISABLED = _invalid_state("Renewing acquisition locks is not enabled for the group.")

_BECOMES = {
    AcknowledgeType.GAP: Delivery.ARCHIVED,
    AcknowledgeType.ACCEPT: Delivery.ACKNOWLEDGED,
    AcknowledgeType.REJECT: Delivery.ARCHIVED,
}
_KNOWN_TYPES = frozenset(AcknowledgeType)


class _Refused(Exception):
    """The request cannot be carried out."""

    def __init__(self, result: Result) -> None:
        super().__init__(result)
        self.result = result


def on_acknowledge(state: SharePartition, event: Acknowledge, config: ShareConfig) -> Step[SharePartition]:
    """Acknowledge a member's records."""
    turn = Turn(state, config, event.now_ms)
    written: list[WrittenBatch] = []
    refused: Optional[Result] = None
    try:
        for batch in event.batches:
            _acknowledge(turn, event.member_id, batch, written)
    except _Refused as error:
        refused = error.result
    if refused is not None:
        roll_back(turn, turn.next_write_id, written)
        turn.reply(event.token, refused)
    elif written:
        turn.write(event.token, written)
    else:
        turn.reply(event.token, OK)
    return turn.step()


def _acknowledge(turn: Turn, member_id: str, said: AcknowledgementBatch, written: list[WrittenBatch]) -> None:
    """Take one batch of a request.

    Raises:
        _Refused: a type, an offset or a record's state is wrong.
    """
    types = said.types
    size = said.last_offset - said.first_offset + 1
    if size < 1 or len(types) not in (1, size) or not _KNOWN_TYPES.issuperset(types):
        raise _Refused(_invalid_request(f"Invalid acknowledge type: {list(types)}"))
    if said.last_offset < turn.start_offset:
        return
    for place in _places(turn, said):
        batch = turn.batches[place]
        if batch.last_offset < turn.start_offset:
            continue
        if not batch.by_offset:
            _check_whole(batch, member_id)
        is_whole = batch.is_within(said.first_offset, said.last_offset) and len(types) == 1
        if batch.by_offset or not is_whole or turn.is_cut_by_start(batch):
            turn.by_offset(place)
        first = max(batch.first_offset, said.first_offset, turn.start_offset)
        last = min(batch.last_offset, said.last_offset)
        taken: list[Piece] = []
        try:
            for piece in turn.batches[place].pieces(first, last):
                check_piece(piece, member_id)
                for part, type_ in _by_type(piece, said):
                    taken.append(_taken(turn, part, type_, written))
        finally:
            turn.put(place, taken)


def _places(turn: Turn, said: AcknowledgementBatch) -> range:
    """The places of the batches with the acknowledged offsets.

    Raises:
        _Refused: some of its offsets are not in flight.
    """
    begin = said.first_offset
    if turn.floor(begin) < 0 and begin < turn.start_offset:
        begin = turn.start_offset
    if turn.floor(begin) < 0:
        raise _Refused(NOT_FOUND)
    places = turn.places(begin, said.last_offset)
    end = turn.batches[places[-1]].last_offset
    if end < said.first_offset:
        raise _Refused(FIRST_PAST_END)
    if end < said.last_offset:
        raise _Refused(LAST_PAST_END)
    return places


def _check_whole(batch: InFlightBatch, member_id: str) -> None:
    """Check the owner of a batch in one piece."""
    if batch.state.member_id == NO_MEMBER:
        raise _Refused(BATCH_NOT_ACQUIRED)
    if batch.state.member_id != member_id:
        raise _Refused(BATCH_OF_OTHER)


def check_piece(piece: Piece, member_id: str) -> None:
    """Check records of a batch."""
    if piece.state.delivery is not Delivery.ACQUIRED:
        raise _Refused(OFFSET_NOT_ACQUIRED)
    if piece.state.member_id != member_id:
        raise _Refused(OFFSET_OF_OTHER)


def _by_type(piece: Piece, said: AcknowledgementBatch) -> list[tuple[Piece, int]]:
    """The piece cut where the type changes."""
    if len(said.types) == 1:
        return [(piece, said.types[0])]
    parts: list[tuple[Piece, int]] = []
    first = piece.first_offset
    for offset in range(piece.first_offset, piece.last_offset + 1):
        type_ = said.types[offset - said.first_offset]
        if offset == piece.last_offset or said.types[offset + 1 - said.first_offset] != type_:
            parts.append((Piece(first, offset, piece.state), type_))
            first = offset + 1
    return parts


def _taken(turn: Turn, part: Piece, type_: int, written: list[WrittenBatch]) -> Piece:
    """Records of one state after one acknowledge type."""
    state = part.state
    if type_ == AcknowledgeType.RENEW:
        if not turn.config.renew_acknowledge_enable:
            raise _Refused(RENEW_DISABLED)
        return part._replace(state=renewed(state, turn.lock_until()))
    limit = turn.config.delivery_count_limit
    if type_ == AcknowledgeType.RELEASE:
        delivery = given_back(state, limit, is_in_log=True)
    else:
        delivery = _BECOMES[AcknowledgeType(type_)]
    after = part._replace(state=in_transition(state, delivery, turn.next_write_id, limit))
    written.append(written_batch(after))
    return after
