"""Known mistakes of a shell around Raft: it says what is not on disk, or trusts what a crash has left."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from pykafka_broker.log.disk.files import FileSystem, join
from pykafka_broker.log.partition.folder import LogFolder
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.protocol.messages.records.control import SnapshotFooterRecord
from pykafka_broker.protocol.records.batch import iter_batches
from pykafka_broker.raft import received_snapshots, storage
from pykafka_broker.raft.core import following, leading
from pykafka_broker.raft.core.log_view import LogView
from pykafka_broker.raft.core.state import Chunk
from pykafka_broker.raft.driver import RaftDriver
from pykafka_broker.raft.quorum_state import QUORUM_STATE, decode_quorum_state, encode_quorum_state
from pykafka_broker.raft.received_snapshots import ReceivedSnapshots
from pykafka_broker.raft.snapshots import control_batch
from pykafka_broker.raft.storage import RaftStorage
from pykafka_broker.testing.memory_files import MemoryFile
from tests.simulation.planted import Planted
from tests.simulation.shell_replica import SHELL
from tests.simulation.wrong import Wrong


def _no_sync(right: Any) -> Any:
    return lambda self: True


def _counts_what_came_during_the_sync(right: Any) -> Any:
    return lambda turn, end_offset: right(turn, turn.log.end_offset)


def _fetch_while_a_sync_runs(right: Any) -> Any:
    return lambda turn: True


def _truncated_log_counts_as_synced(right: Any) -> Any:
    """What is appended behind a truncation counts, as far as the log was synced before."""

    def truncated(self: LogView, end_offset: int) -> LogView:
        log: LogView = right(self, end_offset)
        return log._replace(flushed_offset=self.flushed_offset)

    return truncated


def _election_written_later(right: Any) -> Any:
    def write(self: RaftStorage, *what: Any) -> None:
        asyncio.get_running_loop().call_soon(right, self, *what)

    return write


def _election_not_synced(right: Any) -> Any:
    def write(files: FileSystem, directory: str, *what: Any) -> None:
        files.replace_file(join(directory, QUORUM_STATE), encode_quorum_state(*what), sync=False)

    return write


def _election_of_the_page_cache(right: Any) -> Any:
    def read(files: FileSystem, directory: str) -> Any:
        try:
            return decode_quorum_state(files.read_file(join(directory, QUORUM_STATE)))
        except FileNotFoundError:
            return right(files, directory)

    return read


def _page_cache_counts_as_synced(right: Any) -> Any:
    def load(self: RaftStorage) -> Any:
        loaded = right(self)
        view = loaded.view._replace(flushed_offset=loaded.view.end_offset)
        return loaded._replace(view=view)

    return load


def _names_not_synced(right: Any) -> Any:
    return lambda self: None


def _last_part_missing(right: Any) -> Any:
    def write(self: ReceivedSnapshots, chunk: Any) -> None:
        right(self, chunk._replace(data=b"") if chunk.is_last and chunk.position else chunk)

    return write


def _no_footer_needed(right: Any) -> Any:
    """Whatever has come is a snapshot."""

    def decode(data: bytes) -> Any:
        footer = control_batch([SnapshotFooterRecord(version=0)], base_offset=0, epoch=0, now_ms=0)
        whole = 0
        for position, header in iter_batches(data):
            whole = position + header.size_in_bytes
        return right(data[:whole] + footer)

    return decode


def _name_before_content(right: Any) -> Any:
    def finish(self: ReceivedSnapshots) -> Any:
        with pytest.MonkeyPatch.context() as unsynced:
            unsynced.setattr(MemoryFile, "sync", lambda file: None)
            return right(self)

    return finish


class _Hasty(ReceivedSnapshots):
    """Begins the log anew with the last part of a snapshot."""

    __slots__ = ("storage",)

    storage: RaftStorage

    def write(self, chunk: Chunk) -> None:
        super().write(chunk)
        if chunk.is_last:
            self.storage.begin_at(chunk.snapshot_id)


def _log_gone_before_the_snapshot_is_there(right: Any) -> Any:
    def init(self: RaftStorage, files: FileSystem, log: PartitionLog, *more: Any) -> None:
        right(self, files, log, *more)
        self.received = hasty = _Hasty(files, log.directory)
        hasty.storage = self

    return init


def _told_while_it_appends(right: Any) -> Any:
    """The machine takes what waits for it, the append first, before the caller hears of the append."""

    def append(self: RaftDriver, values: Sequence[bytes]) -> int:
        end_offset: int = right(self, values)
        self.snapshots_changed()
        return end_offset

    return append


#: Followers that fall behind, and snapshots that they are sent.
SNAPSHOTS = {
    "voters": 3,
    "append_ms": 100,
    "snapshot_ms": 500,
    "partition_ms": 2000,
    "crash_ms": 2000,
    "power_cut": 0.002,
    "change_ms": 0,
}
#: Power that fails, and logs that part.
CUTS = {
    "voters": 3,
    "observers": 0,
    "append_ms": 50,
    "delay_ms": 2,
    "drop": 0,
    "crash_ms": 300,
    "pause_ms": 0,
    "stop_ms": 0,
    "flush_ms": 50,
    "change_ms": 0,
    "power_cut": 0.002,
    "disk_error": 0,
}


PLANTED_IN_SHELL = (
    Planted(
        "a leader may be deposed by what it appends, before that is noted",
        RaftDriver,
        "append",
        _told_while_it_appends,
        faults={"pause_ms": 2000, "append_ms": 100},
        kind=SHELL,
    ),
    Planted("a sync is reported that was not done", RaftStorage, "flush", _no_sync, kind=SHELL),
    Planted(
        "what was appended during a sync counts as synced",
        leading,
        "flushed",
        _counts_what_came_during_the_sync,
        kind=SHELL,
    ),
    Planted(
        "a replica fetches, and truncates, while a sync runs",
        following,
        "is_safe_to_fetch",
        _fetch_while_a_sync_runs,
        kind=SHELL,
    ),
    Planted(
        "after a truncation the shorter log counts as synced",
        LogView,
        "truncated",
        _truncated_log_counts_as_synced,
        kind=SHELL,
    ),
    Planted(
        "quorum-state is written after the vote is given",
        RaftStorage,
        "write_election_state",
        _election_written_later,
        kind=SHELL,
    ),
    Planted("quorum-state is not synced", storage, "write_quorum_state", _election_not_synced, kind=SHELL),
    Planted(
        "a quorum-state that a killed process has not synced counts as written",
        storage,
        "read_quorum_state",
        _election_of_the_page_cache,
        faults={**CUTS, "crash_ms": 0, "power_cut": 0.05},
        kind=SHELL,
    ),
    Planted(
        "a log that a killed process has not synced counts as synced",
        RaftStorage,
        "load",
        _page_cache_counts_as_synced,
        faults=CUTS,
        kind=SHELL,
    ),
    Planted("names of new files are not synced", LogFolder, "note_names", _names_not_synced, kind=SHELL),
    Planted(
        "a snapshot is installed without its last part",
        ReceivedSnapshots,
        "write",
        _last_part_missing,
        faults=SNAPSHOTS,
        kind=SHELL,
        also=(Wrong(received_snapshots, "decode_snapshot", _no_footer_needed),),
    ),
    Planted(
        "a received snapshot gets its name before it is synced",
        ReceivedSnapshots,
        "finish",
        _name_before_content,
        faults=SNAPSHOTS,
        kind=SHELL,
    ),
    Planted(
        "the log begins anew before its snapshot is on disk",
        RaftStorage,
        "__init__",
        _log_gone_before_the_snapshot_is_there,
        faults=SNAPSHOTS,
        kind=SHELL,
    ),
)
