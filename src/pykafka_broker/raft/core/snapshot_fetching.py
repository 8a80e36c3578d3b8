"""FetchSnapshot: the leader hands out parts of a snapshot, and a follower puts them together.

A follower that lacks records which the leader has trimmed starts over from a snapshot. Its own log stays
unchanged until the whole snapshot is on disk.
"""

from __future__ import annotations

from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.common import heard_from, leader_request_error
from pykafka_broker.raft.core.log_view import BOOTSTRAP_SNAPSHOT, LogView, SnapshotId
from pykafka_broker.raft.core.messages import Destination, FetchSnapshot, FetchSnapshotAnswer
from pykafka_broker.raft.core.progress import hear_voter
from pykafka_broker.raft.core.roles import Download, Follower, Leader
from pykafka_broker.raft.core.state import Chunk
from pykafka_broker.raft.core.turn import Turn


def on_fetch_snapshot(turn: Turn, token: int, request: FetchSnapshot) -> None:
    """A follower asks for a part of a snapshot."""
    error, size_bytes = _find(turn, request)
    if error is not ErrorCode.NONE:
        turn.answer(token, FetchSnapshotAnswer(error, turn.current))
        return
    hear_voter(turn, request.replica)
    turn.answer(
        token,
        FetchSnapshotAnswer(
            ErrorCode.NONE,
            turn.current,
            request.snapshot_id,
            size_bytes,
            request.position,
            max(1, min(request.max_bytes, turn.settings.snapshot_part_bytes)),
        ),
    )


def _find(turn: Turn, request: FetchSnapshot) -> tuple[ErrorCode, int]:
    """Return the error of the request, or the size of the snapshot."""
    error = leader_request_error(turn, request.epoch)
    if error is not ErrorCode.NONE:
        return error, 0
    sizes = dict(turn.log.snapshots)
    size_bytes = sizes.get(request.snapshot_id)
    if size_bytes is None or request.snapshot_id == BOOTSTRAP_SNAPSHOT:
        return ErrorCode.SNAPSHOT_NOT_FOUND, 0
    if not 0 <= request.position < size_bytes:
        return ErrorCode.POSITION_OUT_OF_RANGE, 0
    return ErrorCode.NONE, size_bytes


def ask_for_part(turn: Turn, leader: Destination, download: Download) -> None:
    """Ask the leader for the bytes that follow."""
    request = FetchSnapshot(
        turn.epoch,
        turn.local.key,
        download.snapshot_id,
        download.position,
        turn.settings.snapshot_part_bytes,
    )
    turn.ask(leader, request)


def on_fetch_snapshot_answer(turn: Turn, answer: FetchSnapshotAnswer) -> bool:
    """A part of the snapshot has come; return whether the leader may be asked again at once."""
    handled = heard_from(turn, answer.error, answer.current)
    if handled is not None:
        return handled
    role = turn.role
    download = role.download if isinstance(role, Follower) else None
    if not isinstance(role, Follower) or download is None:
        return False
    role = role._replace(
        fetch_deadline_ms=turn.now_ms + turn.settings.fetch_timeout_ms, election_deadline_ms=None
    )
    if answer.error is ErrorCode.SNAPSHOT_NOT_FOUND or answer.error is ErrorCode.POSITION_OUT_OF_RANGE:
        # The leader has deleted it, or another leader has another file: the next Fetch tells.
        turn.role = role._replace(download=None)
        return True
    if answer.error is not ErrorCode.NONE or not _goes_on(download, answer):
        return False
    turn.role = _with_part(turn, role, download, answer)
    return True


def _goes_on(download: Download, answer: FetchSnapshotAnswer) -> bool:
    """Whether the answer has the bytes that were asked for."""
    is_next = answer.snapshot_id == download.snapshot_id and answer.position == download.position
    return is_next and bool(answer.data) and not download.is_complete


def _with_part(turn: Turn, role: Follower, download: Download, answer: FetchSnapshotAnswer) -> Follower:
    position = download.position + len(answer.data)
    is_last = position >= answer.size_bytes
    turn.receive = Chunk(download.snapshot_id, download.position, answer.data, is_last)
    return role._replace(download=Download(download.snapshot_id, position, is_last))


def snapshot_installed(turn: Turn, log: LogView) -> None:
    """The received snapshot has replaced the log: everything below its end is committed."""
    role = turn.role
    if isinstance(role, Leader):
        raise IllegalState("a leader has all records: it loads no snapshot")
    if isinstance(role, Follower):
        turn.role = role._replace(download=None)
    turn.log = log
    turn.commit(log.end_offset)


def snapshot_refused(turn: Turn) -> None:
    """The received snapshot is damaged: fetch again after a pause, because the next may be damaged too."""
    role = turn.role
    if isinstance(role, Follower):
        turn.role = role._replace(download=None)
        retry_ms = turn.now_ms + turn.settings.election_backoff_max_ms
        for node_id in (role.leader_id, *(server.node_id for server in turn.bootstrap)):
            turn.connections = turn.connections.paused(node_id, retry_ms)


def missing_snapshot(log: LogView, offset: int, epoch: int) -> SnapshotId | None:
    """The snapshot that a follower whose log ends at `offset` in `epoch` must fetch first, or None."""
    start_offset = log.start_offset
    # A replica that has received a snapshot may still have files of older ones.
    usable = [snapshot_id for snapshot_id, _ in log.snapshots if snapshot_id.end_offset >= start_offset]
    if not usable:
        return None
    oldest, newest = usable[0], usable[-1]
    if offset == 0:
        return newest
    if offset < start_offset or epoch < oldest.epoch or (offset == start_offset and epoch != oldest.epoch):
        return newest
    return None
