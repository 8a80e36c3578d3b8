"""Known mistakes of Raft implementations and of KRaft, each as a change of the core or of its shell.

Mistakes of the core are planted among core replicas, which is quicker; `planted_in_shell.py` has those that
only the shell can make.

The simulation has to find each of them: that it finds nothing in the core as it is means no more than that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pykafka_broker.raft.core import (
    elections,
    following,
    leading,
    progress,
    transitions,
    voter_changes,
)
from pykafka_broker.raft.core.log_view import LogView
from pykafka_broker.raft.core.roles import Candidate, Follower, Leader, Prospective, Resigned
from pykafka_broker.raft.core.state import ElectionState
from pykafka_broker.raft.core.turn import Turn
from tests.simulation.core_replica import CORE, CoreReplica
from tests.simulation.replica import Kind
from tests.simulation.wrong import Wrong


class Planted(NamedTuple):
    """`owner.name` becomes `wrong`, which is given what it replaces; found in one of the first `seeds` seeds.

    `faults` are what those seeds have besides what their profiles say: the faults under which it shows.
    """

    bug: str
    owner: object
    name: str
    wrong: Callable[[Any], object]
    seeds: int = 100
    faults: Mapping[str, float] = {}
    kind: Kind = CORE
    also: tuple[Wrong, ...] = ()

    @property
    def wrongs(self) -> tuple[Wrong, ...]:
        """Everything that is replaced."""
        return (Wrong(self.owner, self.name, self.wrong), *self.also)


def _own_end_before_flush(right: Any) -> Any:
    def end_offsets(turn: Turn, role: Leader) -> list[int]:
        turn_log = turn.log
        turn.log = turn_log._replace(flushed_offset=turn_log.end_offset)
        found: list[int] = right(turn, role)
        turn.log = turn_log
        return found

    return end_offsets


def _observers_count(right: Any) -> Any:
    def end_offsets(turn: Turn, role: Leader) -> list[int]:
        others = [known.end_offset for known in role.progress.values()]
        return sorted([turn.log.flushed_offset, *others])[-len(turn.voters.voters) :]

    return end_offsets


def _removed_leader_counts_itself(right: Any) -> Any:
    def end_offsets(turn: Turn, role: Leader) -> list[int]:
        found: list[int] = right(turn, role)
        return found if turn.is_voter else [*found, turn.log.flushed_offset]

    return end_offsets


def _vote_not_written(right: Any) -> Any:
    def persist(self: CoreReplica, step: Any) -> None:
        if step.persist.voted_id < 0:
            right(self, step)

    return persist


def _vote_forgotten_at_boot(right: Any) -> Any:
    def boot(local: Any, election: ElectionState, *facts: Any) -> Any:
        if election.voted_id != local.key.node_id:
            election = ElectionState(election.leader_epoch, election.leader_id)
        return right(local, election, *facts)

    return boot


def _leader_again(right: Any) -> Any:
    """A leader that restarts takes its epoch up again."""

    def boot(local: Any, election: Any, log: LogView, moment: Any, settings: Any) -> Any:
        step = right(local, election, log, moment, settings)
        role = step.state.role
        if not isinstance(role, Resigned):
            return step
        again = Leader(role.epoch, log.end_offset, check_quorum_deadline_ms=moment.now_ms + 3000)
        return step._replace(state=step.state._replace(role=again))

    return boot


def _earlier_epochs_by_count(right: Any) -> Any:
    def move_high_watermark(turn: Turn) -> None:
        role = turn.role
        if not isinstance(role, Leader):
            return
        start_offset = role.start_offset
        turn.role = role._replace(start_offset=-1)
        right(turn)
        if isinstance(turn.role, Leader):
            turn.role = turn.role._replace(start_offset=start_offset)

    return move_high_watermark


def _no_comparison_of_logs(right: Any) -> Any:
    return lambda turn, request: True


def _length_instead_of_epoch(right: Any) -> Any:
    return lambda turn, request: request.end_offset >= turn.log.end_offset


def _half_is_a_majority(right: Any) -> Any:
    return lambda count, voters: count >= voters // 2


def _fetch_before_flush(right: Any) -> Any:
    return lambda turn: True


def _pre_vote_of_a_follower(right: Any) -> Any:
    def grants(turn: Turn, request: Any) -> bool:
        role = turn.role
        if request.pre_vote and isinstance(role, Follower):
            return bool(elections.is_up_to_date(turn, request))
        return bool(right(turn, request))

    return grants


def _divergence_by_offset(right: Any) -> Any:
    def divergence(log: LogView, offset: int, epoch: int) -> Any:
        return None if offset <= log.end_offset else right(log, offset, epoch)

    return divergence


def _truncates_everything(right: Any) -> Any:
    def truncate(turn: Turn, diverging: Any) -> None:
        if turn.log.start_offset < turn.log.end_offset:
            turn.truncate = turn.log.start_offset
            turn.log = turn.log.truncated(turn.truncate)

    return truncate


def _two_changes_at_once(right: Any) -> Any:
    def change_refusal(turn: Turn, doing: str) -> Any:
        role = turn.role
        if isinstance(role, Leader) and role.high_watermark is not None and turn.log.kraft_version:
            return None
        return right(turn, doing)

    return change_refusal


def _change_before_own_epoch_commits(right: Any) -> Any:
    """The mistake in Raft's dissertation: voters change before a record of the own epoch is committed."""

    def change_refusal(turn: Turn, doing: str) -> Any:
        role = turn.role
        known = turn.high_watermark or 0
        if isinstance(role, Leader) and role.change is None and turn.log.membership.offset < known:
            return None
        return right(turn, doing)

    return change_refusal


def _voters_count_when_committed(right: Any) -> Any:
    return property(lambda self: self.log.membership_below(self.high_watermark or 0).voters)


def _undone_voters_stay(right: Any) -> Any:
    def truncated(self: LogView, end_offset: int) -> LogView:
        return right(self, end_offset)._replace(memberships=self.memberships)  # type: ignore[no-any-return]

    return truncated


def _pre_votes_are_votes(right: Any) -> Any:
    def become_candidate(turn: Turn) -> None:
        role = turn.role
        right(turn)
        if isinstance(role, Prospective) and isinstance(turn.role, Candidate):
            turn.role = turn.role._replace(granted=role.granted)

    return become_candidate


def _log_kept_beside_a_snapshot(right: Any) -> Any:
    def install(self: CoreReplica, content: Any) -> None:
        self.disk.snapshots[content.content.snapshot_id] = content

    return install


def _only_voters_stand(right: Any) -> Any:
    return lambda self, key, high_watermark: self.voters.is_voter(key)


def _leads_though_voted_out(right: Any) -> Any:
    return lambda turn, role: False


#: Several candidates at a time, and voters that forget what they have not written.
DUELS = {"voters": 5, "delay_ms": 200, "drop": 0.2, "crash_after_vote": 0.5, "crash_ms": 2000}
#: Leaders that append what no other gets.
SPLITS = {
    "voters": 3,
    "observers": 0,
    "append_ms": 50,
    "partition_ms": 1500,
    "pause_ms": 1500,
    "change_ms": 0,
}

#: New leaders, and changes of the voters all the time.
CHANGES = {
    "voters": 3,
    "kraft_version": 1,
    "change_ms": 200,
    "crash_ms": 1000,
    "crash_of_new_leader": 0.3,
    "delay_ms": 30,
}

PLANTED = (
    Planted(
        "a leader counts its own records before they are on disk",
        progress,
        "end_offsets",
        _own_end_before_flush,
    ),
    Planted("observers count for the high watermark", progress, "end_offsets", _observers_count),
    Planted(
        "a leader that is no voter counts itself", progress, "end_offsets", _removed_leader_counts_itself
    ),
    Planted(
        "records of earlier epochs are committed by count",
        leading,
        "move_high_watermark",
        _earlier_epochs_by_count,
    ),
    Planted("a vote is given before it is on disk", CoreReplica, "persist", _vote_not_written, faults=DUELS),
    Planted("a vote is forgotten at a restart", transitions, "boot", _vote_forgotten_at_boot, faults=DUELS),
    Planted("a leader takes its epoch up again after a restart", transitions, "boot", _leader_again),
    Planted("a vote is given to a shorter log", elections, "is_up_to_date", _no_comparison_of_logs),
    Planted(
        "the longer log wins, whatever its epoch",
        elections,
        "is_up_to_date",
        _length_instead_of_epoch,
        faults=SPLITS,
    ),
    Planted("half of the voters are a majority", elections, "is_majority", _half_is_a_majority),
    Planted(
        "a follower fetches before its records are on disk",
        following,
        "is_safe_to_fetch",
        _fetch_before_flush,
    ),
    Planted(
        "a follower of a live leader gives a pre-vote", elections, "grants_vote", _pre_vote_of_a_follower
    ),
    Planted("pre-votes count as votes", Turn, "become_candidate", _pre_votes_are_votes),
    Planted("logs are compared by offset, not by epoch", leading, "divergence", _divergence_by_offset),
    Planted("a follower truncates below its high watermark", following, "truncate", _truncates_everything),
    Planted(
        "a snapshot is loaded, and the log stays",
        CoreReplica,
        "install",
        _log_kept_beside_a_snapshot,
        faults={"snapshot_ms": 500, "partition_ms": 2000},
    ),
    Planted(
        "two changes of voters at once", voter_changes, "change_refusal", _two_changes_at_once, faults=CHANGES
    ),
    Planted(
        "voters change before the epoch has committed",
        voter_changes,
        "change_refusal",
        _change_before_own_epoch_commits,
        faults=CHANGES,
    ),
    Planted("new voters count only when committed", Turn, "voters", _voters_count_when_committed),
    Planted(
        "voters of a truncated record count on",
        LogView,
        "truncated",
        _undone_voters_stay,
        faults={**CHANGES, "partition_ms": 1500},
    ),
    Planted(
        "a voter stands no more before its removal is committed",
        LogView,
        "may_stand",
        _only_voters_stand,
        faults={**CHANGES, "voters": 2, "observers": 0, "partition_ms": 2000, "empty_disk_ms": 0},
    ),
    Planted(
        "a leader that was voted out leads on",
        leading,
        "is_voted_out",
        _leads_though_voted_out,
        faults=CHANGES,
    ),
)
