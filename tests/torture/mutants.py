"""Planted bugs: each is patched into a broker's process, and the rounds named beside it must catch it.

A harness that finds nothing proves nothing until it has been seen to find what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from inspect import Parameter, signature
from typing import Any, NamedTuple

from tests.torture.files import Crash, Plan

Bug = Callable[..., Any]

FSYNC = {"log.flush.interval.messages": "1"}


class Mutant(NamedTuple):
    """A bug, how to plant it, and what it must lead to under which rounds."""

    plant: Callable[[], None]
    #: At least one of these anomalies.
    leads_to: frozenset[str]
    plans: tuple[Plan, ...]
    properties: dict[str, str]


MUTANTS: dict[str, Mutant] = {}


def plant(name: str) -> None:
    """Plant the bug of this name in this process."""
    if name in MUTANTS:
        MUTANTS[name].plant()
    else:
        {**RESOURCE_BUGS, **REPLICATION_BUGS, **COORDINATOR_BUGS}[name]()


def patch(owner: object, name: str, bug: Bug) -> None:
    """Put a bug in the place of a method of a class, or of a function of a module."""
    check_place(owner, name, bug)
    setattr(owner, name, bug)


def check_place(owner: object, name: str, bug: Bug) -> None:
    """Raise if a bug cannot be called as what it replaces, for it would show something else than itself."""
    assert not name.startswith("_") or name.endswith("__"), f"{name} is private: it may change at any time"
    assert hasattr(owner, name), f"there is no {name} any more: the bug would change nothing"
    parameters = signature(getattr(owner, name)).parameters.values()
    by_name = [each.name for each in parameters if each.kind is Parameter.KEYWORD_ONLY]
    by_place = [each.name for each in parameters if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
    signature(bug).bind(*by_place, **dict.fromkeys(by_name))


TWO_KILLS = (Plan(), Plan())
TWO_POWER_CUTS = (Plan(volatile=True), Plan(volatile=True))
TORN_WRITES = tuple(Plan(crash=Crash("pwrite .log", n, "torn")) for n in (25, 40))
#: On disk, and not answered: the producer sends it again.
UNANSWERED = tuple(Plan(crash=Crash("pwrite .log", n, "after")) for n in (25, 35, 45))


def mutant(
    *leads_to: str, plans: tuple[Plan, ...], properties: dict[str, str] | None = None
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(plant: Callable[[], None]) -> Callable[[], None]:
        MUTANTS[plant.__name__] = Mutant(plant, frozenset(leads_to), plans, properties or {})
        return plant

    return register


@mutant("lost", plans=TWO_POWER_CUTS, properties=FSYNC)
def skip_the_sync_of_a_segment() -> None:
    from pykafka_broker.log.segment.segment import Segment

    original = Segment.sync

    def sync(self: Segment, *, with_indexes: bool) -> None:
        if "__cluster_metadata" in self.path:
            original(self, with_indexes=with_indexes)

    patch(Segment, "sync", sync)


@mutant("lost", plans=TWO_POWER_CUTS, properties=FSYNC)
def acknowledge_before_the_sync() -> None:
    from pykafka_broker.replication.committing import Committing

    patch(Committing, "acknowledged", lambda self, *_: None)


@mutant("lost", plans=TWO_KILLS)
def acknowledge_before_the_write() -> None:
    """A batch is kept in the process until the next one comes."""
    from pykafka_broker.log.disk.names import LOG_SUFFIX
    from pykafka_broker.log.segment.segment_files import SegmentFiles

    kept: dict[str, tuple[Any, bytes, int]] = {}
    original = SegmentFiles.open

    class Keeper:
        def __init__(self, file: Any, path: str) -> None:
            self._file = file
            self._path = path

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

        def pwrite(self, data: Any, position: int) -> int:
            if before := kept.pop(self._path, None):
                before[0].pwrite(*before[1:])
            kept[self._path] = (self._file, bytes(data), position)
            return len(data)

    def open_file(self: SegmentFiles, suffix: str, *, create: bool = False, writable: bool = True) -> Any:
        file = original(self, suffix, create=create, writable=writable)
        # The metadata log is read again as it is committed: without its last batch no broker starts.
        is_kept = suffix == LOG_SUFFIX and "__cluster_metadata" not in self.path
        return Keeper(file, self.path) if is_kept else file

    patch(SegmentFiles, "open", open_file)


@mutant("lost", "vanished", plans=TORN_WRITES)
def leave_a_torn_tail() -> None:
    import pykafka_broker.log.recovery.crash_scan as crash_scan
    from pykafka_broker.log.segment import segment_scan
    from pykafka_broker.log.segment.trust import Trust

    # Otherwise the next start finds the tail and fences it off, and no test notices.
    patch(Trust, "is_verified", lambda self, start, end: True)
    original = segment_scan.scan_segment

    def scan_segment(segment: Any, *arguments: Any, **details: Any) -> int:
        whole = segment.file.size()
        before = segment.file.pread(whole, 0)
        end_offset = original(segment, *arguments, **details)
        if segment.size < whole:
            segment.file.pwrite(before[segment.size :], segment.size)
            segment.size = whole
        return end_offset

    patch(crash_scan, "scan_segment", scan_segment)


@mutant("wrong seek", plans=TWO_KILLS)
def look_one_entry_too_far_in_an_index() -> None:
    from pykafka_broker.log.segment.index import OffsetIndex

    original = OffsetIndex.position_before

    def position_before(self: OffsetIndex, offset: int) -> int:
        position = original(self, offset)
        later = [candidate for candidate in self.positions if candidate > position]
        return later[0] if later else position

    patch(OffsetIndex, "position_before", position_before)


@mutant("duplicated", plans=UNANSWERED)
def forget_producers_at_a_restart() -> None:
    from pykafka_broker.log.partition.producer_snapshots import ProducerFiles

    original = ProducerFiles.rebuild

    def rebuild(self: Any, *arguments: Any, **details: Any) -> Any:
        rebuilt = original(self, *arguments, **details)
        rebuilt.producers.producers.clear()
        return rebuilt

    patch(ProducerFiles, "rebuild", rebuild)


@mutant("duplicated", plans=UNANSWERED)
def append_a_retry_again() -> None:
    from pykafka_broker.log.partition.producers import ProducerStates

    patch(ProducerStates, "check", lambda self, *arguments, **details: None)


@mutant(
    "read before it was safe",
    plans=tuple(Plan(volatile=True, delays={"sync ledger": 400}) for _ in range(2)),
    properties=FSYNC,
)
def serve_past_the_high_watermark() -> None:
    from pykafka_broker.log.partition.reader import LogReader
    from pykafka_broker.log.partition.state import LogState

    patch(LogState, "limit_offset", lambda self, limit: self.log_end_offset)
    patch(LogReader, "available_bytes", lambda self, offset, limit: 1)


@mutant("lost", plans=TWO_KILLS)
def drop_the_last_batch_at_recovery() -> None:
    from pykafka_broker.log.segment.batch_scan import BatchScan

    original = BatchScan.__iter__

    def __iter__(self: Any) -> Iterator[Any]:  # noqa: N807
        before, held = None, None
        for item in original(self):
            if held is not None:
                yield held
            before, held = (self.valid_end, self.next_offset), item
        if before is not None:
            self.valid_end, self.next_offset = before

    patch(BatchScan, "__iter__", __iter__)


# --- bugs that want of room, descriptors or speed must show ----------------------------------------


def acknowledge_what_a_full_disk_refused() -> None:
    from pykafka_broker.log.segment.segment import Segment

    original = Segment.append

    def append(self: Segment, *arguments: Any) -> None:
        with suppress(OSError):
            original(self, *arguments)

    patch(Segment, "append", append)


def keep_the_descriptors_of_all_logs() -> None:
    from pykafka_broker.log.manager.directory_failures import DirectoryFailures

    patch(DirectoryFailures, "release_files", lambda self: None)


def share_the_threads_of_all_disks() -> None:
    from pykafka_broker.log.manager.disk_threads import DiskThreads

    original = DiskThreads.run_in
    patch(DiskThreads, "run_in", lambda self, directory, job: original(self, "all", job))


RESOURCE_BUGS = {
    bug.__name__: bug
    for bug in (
        acknowledge_what_a_full_disk_refused,
        keep_the_descriptors_of_all_logs,
        share_the_threads_of_all_disks,
    )
}


# --- bugs of replication: `test_replication_bugs.py` -------------------------------------------------


def acknowledge_before_followers_have_it() -> None:
    """acks=all is answered as acks=1 is."""
    from pykafka_broker.replication.committing import Committing

    original = Committing.acknowledged

    def acknowledged(
        self: Committing, next_offset: int, required_acks: int, timeout_ms: int | None = None
    ) -> Any:
        return original(self, next_offset, 1, timeout_ms)

    patch(Committing, "acknowledged", acknowledged)


def commit_without_followers() -> None:
    """The high watermark is the leader's own end, and consumers read to there."""
    import pykafka_broker.replication.committing as committing

    patch(committing, "high_watermark", lambda leadership, log, local_offset, now_ms: local_offset)


def truncate_by_offset() -> None:
    """A follower goes on where its log ends, in any epoch: only what is beyond the leader's end goes."""
    import pykafka_broker.replication.core.following as rules
    from pykafka_broker.log.partition.leader_epochs import UNDEFINED_EPOCH
    from pykafka_broker.machine.step import Step

    original = rules.at_log_end

    def at_log_end(following: Any, log: Any) -> Any:
        return original(following, log)._replace(last_fetched_epoch=UNDEFINED_EPOCH)

    def follow(leader_epoch: int, log: Any, damaged_from: int | None = None) -> Any:
        return Step(at_log_end(rules.Following(leader_epoch, 0, UNDEFINED_EPOCH), log))

    patch(rules, "at_log_end", at_log_end)
    patch(rules, "follow", follow)


#: Each with what it must lead to.
REPLICATION_BUGS_AND_SIGNS = {
    acknowledge_before_followers_have_it: "lost",
    commit_without_followers: "vanished",
    truncate_by_offset: "replicas",
}
REPLICATION_BUGS = {bug.__name__: bug for bug in REPLICATION_BUGS_AND_SIGNS}


# --- bugs of coordinators: `test_group_readers.py` ---------------------------------------------------


def forget_committed_offsets() -> None:
    """A group coordinator that loads a shard takes in the groups, and none of their offsets."""
    from pykafka_broker.coordinator.groups.core.records import Replay
    from pykafka_broker.machine.versioned_map import VersionedMap

    original = Replay.state

    def state(self: Replay) -> Any:
        return original(self)._replace(offsets=VersionedMap(), offset_counts=VersionedMap())

    patch(Replay, "state", state)


COORDINATOR_BUGS = {forget_committed_offsets.__name__: forget_committed_offsets}
