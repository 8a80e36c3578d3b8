"""What a leader does: it answers Fetch, parks fetches without news, and checks that a majority follows.

The answer may have uncommitted records. The offset of a Fetch tells how far its replica is.
"""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.announcing import announce
from pykafka_broker.raft.core.common import leader_request_error
from pykafka_broker.raft.core.log_view import EpochEnd, LogView
from pykafka_broker.raft.core.messages import Fetch, FetchAnswer
from pykafka_broker.raft.core.progress import move_high_watermark, note_fetch, successors
from pykafka_broker.raft.core.quorum import ReplicaKey
from pykafka_broker.raft.core.roles import Leader, ParkedFetch
from pykafka_broker.raft.core.snapshot_fetching import missing_snapshot
from pykafka_broker.raft.core.turn import Turn
from pykafka_broker.raft.core.voter_changes import poll_change

#: The most parked fetches; further ones are answered at once, even without news.
MAX_PARKED_FETCHES = 1_000


def on_fetch(turn: Turn, token: int, request: Fetch) -> None:
    """A replica asks for records."""
    if (
        request.max_wait_ms < 0
        or request.offset < 0
        or not 0 <= request.last_epoch <= request.epoch
        or request.epoch < 0
    ):
        turn.answer(token, _refused(turn, ErrorCode.INVALID_REQUEST))
        return
    answer = _find(turn, request)
    if answer.error is ErrorCode.NONE:
        _release(turn, request.replica)
    role = turn.role
    if (
        not isinstance(role, Leader)
        or has_news(turn, request, answer)
        or request.max_wait_ms == 0
        or len(role.parked) >= MAX_PARKED_FETCHES
    ):
        turn.answer(token, answer)
        return
    parked = ParkedFetch(token, request, turn.now_ms + request.max_wait_ms)
    turn.role = role._replace(parked=(*role.parked, parked))


def _release(turn: Turn, replica: ReplicaKey) -> None:
    """A replica fetches again: answer its parked fetches.

    A replica that asks all voters for the leader may have two fetches on the way. If they arrive in the wrong
    order, the older one sets its known progress back. The early answer makes it fetch again at once, which
    corrects the progress before `max_wait_ms` is over.
    """
    role = turn.role
    if not isinstance(role, Leader) or replica.node_id < 0:
        return
    waiting = tuple(parked for parked in role.parked if parked.request.replica != replica)
    if len(waiting) == len(role.parked):
        return
    turn.role = role._replace(parked=waiting)
    for parked in role.parked:
        if parked.request.replica == replica:
            turn.answer(parked.token, _find_again(turn, role, parked.request))


def _refused(turn: Turn, error: ErrorCode) -> FetchAnswer:
    """An error answer, with the log start offset as in Apache Kafka."""
    return FetchAnswer(error, turn.current, start_offset=turn.log.start_offset)


def _find(turn: Turn, request: Fetch) -> FetchAnswer:
    """The answer to a Fetch now; if the replica's log does not diverge, its progress is noted."""
    error = leader_request_error(turn, request.epoch)
    if error is ErrorCode.NONE and request.replica.node_id == turn.node_id:
        error = ErrorCode.UNKNOWN_SERVER_ERROR
    if error is not ErrorCode.NONE:
        return _refused(turn, error)
    log = turn.log
    snapshot_id = missing_snapshot(log, request.offset, request.last_epoch)
    diverging = None if snapshot_id is not None else divergence(log, request.offset, request.last_epoch)
    read_from = None
    if snapshot_id is None and diverging is None:
        if request.replica.node_id >= 0:
            note_fetch(turn, request.replica, request.offset)
        read_from = request.offset if request.offset < log.end_offset else None
    role = turn.role
    high_watermark = role.high_watermark if isinstance(role, Leader) else None
    return FetchAnswer(
        ErrorCode.NONE, turn.current, high_watermark, log.start_offset, diverging, snapshot_id, read_from
    )


def divergence(log: LogView, offset: int, epoch: int) -> EpochEnd | None:
    """The point from which a log that ends at `offset` in `epoch` diverges from this one, or None."""
    if offset == 0 and log.start_offset == 0:
        return None
    own = log.end_of_epoch(epoch)
    if own.epoch == epoch and own.end_offset >= offset:
        return None
    return EpochEnd(max(own.epoch, 0), own.end_offset)


def has_news(turn: Turn, request: Fetch, answer: FetchAnswer) -> bool:
    """Whether an answer has news, so that it is sent before `max_wait_ms` is over."""
    return (
        answer.error is not ErrorCode.NONE
        or answer.read_from is not None
        or answer.diverging is not None
        or answer.snapshot_id is not None
        or (answer.high_watermark is not None and answer.high_watermark > request.high_watermark)
    )


def flushed(turn: Turn, end_offset: int) -> None:
    """The own log is on disk below `end_offset`."""
    if end_offset > turn.log.flushed_offset:
        turn.log = turn.log._replace(flushed_offset=min(end_offset, turn.log.end_offset))
        move_high_watermark(turn)


def poll_leader(turn: Turn, role: Leader) -> None:
    """Resign if this replica may no longer lead; otherwise answer parked fetches and announce the epoch."""
    role = poll_change(turn, role)
    if turn.stopping or _lost_quorum(turn, role) or is_voted_out(turn, role):
        turn.become_resigned(successors(turn, role))
        return
    _answer_parked(turn)
    if isinstance(turn.role, Leader):
        announce(turn, turn.role)


def _lost_quorum(turn: Turn, role: Leader) -> bool:
    """Whether no majority has fetched for `check_quorum_timeout_ms`. The timer starts with a second voter."""
    if len(turn.voters.voters) == 1 and turn.is_voter:
        turn.role = role._replace(check_quorum_deadline_ms=None)
        return False
    if role.check_quorum_deadline_ms is None:
        deadline_ms = turn.now_ms + turn.settings.check_quorum_timeout_ms
        turn.role = role._replace(check_quorum_deadline_ms=deadline_ms, begin_epoch_deadline_ms=turn.now_ms)
        return False
    return turn.has_reached(role.check_quorum_deadline_ms)


def is_voted_out(turn: Turn, role: Leader) -> bool:
    """Whether this replica's removal from the voters is committed."""
    return (
        not turn.is_voter
        and role.high_watermark is not None
        and turn.log.membership.offset < role.high_watermark
    )


def _answer_parked(turn: Turn) -> None:
    """Answer the parked fetches that have news or whose deadline has come."""
    role = turn.role
    if not isinstance(role, Leader) or not role.parked:
        return
    waiting = []
    for parked in role.parked:
        answer = _find_again(turn, role, parked.request)
        if has_news(turn, parked.request, answer) or turn.has_reached(parked.deadline_ms):
            turn.answer(parked.token, answer)
        else:
            waiting.append(parked)
    if len(waiting) < len(role.parked):
        turn.role = role._replace(parked=tuple(waiting))


def _find_again(turn: Turn, role: Leader, request: Fetch) -> FetchAnswer:
    """The answer to a parked Fetch now; its progress was noted when it came."""
    log = turn.log
    read_from = request.offset if request.offset < log.end_offset else None
    return FetchAnswer(
        ErrorCode.NONE, turn.current, role.high_watermark, log.start_offset, read_from=read_from
    )
