"""Known mistakes of brokers, coordinators and controllers, each as a change of one rule of real nodes.

The simulation has to find each of them: that it finds nothing in the nodes as they are means no more than
that.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, NamedTuple

import pytest

from pykafka_broker.apis.fetching import followed as fetch_from_follower
from pykafka_broker.apis.fetching import plan as fetch_plan
from pykafka_broker.cluster.image import PartitionRegistration
from pykafka_broker.controller.core import alter_partition, brokers, partitions
from pykafka_broker.controller.core.elections import Election
from pykafka_broker.controller.core.partitions import Target
from pykafka_broker.controller.core.state import ControllerState, Decision
from pykafka_broker.controller.role import ControllerRole
from pykafka_broker.coordinator import coordinator_topic
from pykafka_broker.coordinator.groups.core.classic.kind import ClassicKind
from pykafka_broker.coordinator.groups.core.consumer import heartbeat
from pykafka_broker.coordinator.groups.core.records import Replay
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.topic_log import last_whole_batch
from pykafka_broker.coordinator.transactions.core import timers as transactions
from pykafka_broker.log.disk.checkpoints import EpochEntry
from pykafka_broker.log.partition.producers import ProducerStates
from pykafka_broker.log.partition.reader import LogReader
from pykafka_broker.log.partition.replica_writer import Copied, ReplicaWriter
from pykafka_broker.log.recovery import crash_scan
from pykafka_broker.log.recovery.found_log import FoundLog
from pykafka_broker.log.segment.segment import Segment
from pykafka_broker.machine.shard import Shard
from pykafka_broker.machine.step import Start, Step
from pykafka_broker.machine.versioned_map import VersionedMap
from pykafka_broker.metadata.batch import AppendedBatches
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.fetch import FetchRequest
from pykafka_broker.raft.core import elections, progress, turn
from pykafka_broker.replication import committing, leading_replica
from pykafka_broker.replication.committing import Committing
from pykafka_broker.replication.core import following, high_watermark, transitions
from pykafka_broker.replication.core.events import FollowerFetched
from pykafka_broker.replication.core.following import FollowerLog, Following, TruncateTo
from pykafka_broker.replication.core.state import Leadership
from tests.simulation.wrong import Wrong


class Planted(NamedTuple):
    """A mistake, found in one of the first `seeds` seeds; `faults` are what those have besides what their
    profiles say. `found_by` is the seed that has found it, which is tried first. A violation without the
    words `says` does not name the mistake.
    """

    bug: str
    wrongs: tuple[Wrong, ...]
    seeds: int = 20
    faults: Mapping[str, float] = {}
    found_by: int = 0
    says: str = ""


# -- leaders ------------------------------------------------------------------------------------------------


def _joins_at_once(right: Any) -> object:
    def isr_with(leadership: Leadership, event: FollowerFetched) -> tuple[int, ...] | None:
        isr, follower = leadership.isr, leadership.followers[event.replica_id]
        if isr.proposed is not None or event.replica_id in isr.committed or not follower.is_eligible:
            return None
        return (*isr.committed, event.replica_id)

    return isr_with


def _names_are_enough(right: Any) -> object:
    return lambda topic_id, asked: None


def _any_epoch_will_do(right: Any) -> object:
    return lambda leader_epoch, asked: None


#: The name of the module in its package is that of the handler.
_LIST_OFFSETS = sys.modules["pykafka_broker.apis.list_offsets"]

#: Whether the newest fetch that was planned is a follower's.
_of_follower = [False]


def _notes_who_fetches(right: Any) -> object:
    def noting(request: FetchRequest) -> int:
        replica_id: int = right(request)
        _of_follower[0] = replica_id >= 0
        return replica_id

    return noting


def _followers_names_are_enough(right: Any) -> object:
    return lambda topic_id, asked: None if _of_follower[0] else right(topic_id, asked)


def _diverging_epochs_are_not_told(right: Any) -> object:
    return lambda self, epoch: EpochEntry(epoch, sys.maxsize)


def _the_leader_is_enough(right: Any) -> object:
    """Producers with acks=all wait as those with acks=1."""
    return lambda self, next_offset, *_: right(self, next_offset, 1)


def _moves_end_at_once(right: Any) -> object:
    def completed(target: Target) -> Target:
        if not target.adding and not target.removing:
            return target
        replicas = tuple(replica for replica in target.replicas if replica not in target.removing)
        isr = tuple(replica for replica in target.isr if replica in replicas) or replicas
        return target._replace(replicas=replicas, isr=isr, removing=(), adding=())

    return completed


# -- followers ----------------------------------------------------------------------------------------------


def _truncates_to_high_watermark(right: Any) -> object:
    def follow(leader_epoch: int, log: FollowerLog, damaged_from: int | None = None) -> Step[Following]:
        step: Step[Following] = right(leader_epoch, log, damaged_from)
        return Step(step.state, effects=(Start(TruncateTo(log.high_watermark)),))

    return follow


def _keeps_all(right: Any) -> object:
    return lambda diverging, log: log.log_end_offset


def _notes_no_producers(right: Any) -> object:
    def append(self: ReplicaWriter, records: Any, **about: Any) -> Copied:
        with pytest.MonkeyPatch.context() as deaf:
            deaf.setattr(ProducerStates, "note", lambda *_: None)
            copied: Copied = right(self, records, **about)
        return copied

    return append


# -- coordinators -------------------------------------------------------------------------------------------


def _reads_up_to_high_watermark(right: Any) -> object:
    async def batches_in(log: Any, buffer_bytes: Callable[[], int], cold_reads: Any) -> AsyncIterator[bytes]:
        offset = log.state.log_start_offset
        while offset < log.state.high_watermark:
            plan = log.reader.plan_read(offset, buffer_bytes(), limit="high_watermark")
            data = await cold_reads.run(log, plan.read)
            end = last_whole_batch(data)
            if end is None:
                return
            size, offset = end
            yield data[:size]

    return batches_in


def _partitions_are_free_at_once(right: Any) -> object:
    def reconciled(member: Any, target: Any, owned: Any) -> object:
        return right(member, target._replace(partition_epochs={}), owned)

    return reconciled


def _loads_no_offsets(right: Any) -> object:
    def state(self: Replay) -> Groups:
        groups: Groups = right(self)
        return groups._replace(offsets=VersionedMap(), offset_counts=VersionedMap())

    return state


def _decided_transactions_stay(right: Any) -> object:
    def on_loaded(state: Any, event: Any, config: Any) -> Any:
        step = right(state, event, config)
        return step._replace(effects=tuple(e for e in step.effects if not isinstance(e, Start)))

    return on_loaded


def _coordinators_answer_before_commit(right: Any) -> object:
    def begin(self: Shard[Any, Any], state: Any, *others: Any, committed: int = 0, **more: Any) -> None:
        everything = committed if isinstance(state, ControllerState) else sys.maxsize
        right(self, state, *others, committed=everything, **more)

    return begin


# -- controllers --------------------------------------------------------------------------------------------


def _one_is_a_majority(right: Any) -> object:
    return lambda count, voters: count >= 1


def _deposed_leaders_may_change_the_isr(right: Any) -> object:
    fences = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_UPDATE_VERSION)

    def refusal(*change: Any) -> ErrorCode:
        error: ErrorCode = right(*change)
        return ErrorCode.NONE if error in fences else error

    return refusal


def _any_live_replica_leads_where_none_is_eligible(right: Any) -> object:
    """Not only the last known leader."""

    def elect(
        state: ControllerState,
        partition: PartitionRegistration,
        replicas: tuple[int, ...],
        candidates: tuple[int, ...],
        election: Election,
        may_lead: Callable[[int], bool],
    ) -> object:
        if not candidates:
            partition, election = partition._replace(last_known_elr=()), Election.UNCLEAN
        return right(state, partition, replicas, candidates, election, may_lead)

    return elect


def _forgets_who_is_gone(right: Any) -> object:
    def end_session(state: ControllerState, broker_id: int) -> Decision:
        decision: Decision = right(state, broker_id)
        return decision._replace(records=())

    return end_session


def _fenced_brokers_keep_what_they_lead(right: Any) -> object:
    return lambda state, broker: right(state, broker)[-1:]


# -- starts after a crash -----------------------------------------------------------------------------------


def _torn_tails_stay(right: Any) -> object:
    def scan_segment(segment: Segment, *about: Any, **more: Any) -> int:
        size = segment.size
        end: int = right(segment, *about, **more)
        segment.size = size
        return end

    return scan_segment


def _epochs_behind_the_end_stay(right: Any) -> object:
    def finish_epochs(self: FoundLog, log_start_offset: int, log_end_offset: int) -> None:
        right(self, log_start_offset, sys.maxsize)

    return finish_epochs


#: A small cluster of which nothing fails.
CALM: Mapping[str, float] = {
    "replication_factor": 3,
    "partitions": 1,
    "producers": 1,
    "transactional": 0,
    "ahead": 0,
    "members": 0,
    "drop": 0.0,
    "flush_ms": 5,
    "delay_ms": 5,
    "pause_between_ms": 100,
    "change_ms": 0,
    "remake_ms": 0,
    "kill_ms": 0,
    "power_ms": 0,
    "pause_ms": 0,
    "partition_ms": 0,
    "stop_ms": 0,
    "clock_drift": 0.0,
    "replica_fetch_bytes": 1 << 20,
    "longer_down_ms": 0,
}
KILLS = {**CALM, "kill_ms": 3000}
#: A topic is deleted and created again under its name.
REMAKES = {**CALM, "remake_ms": 1000}
#: Leaders change, and their epochs.
MOVES = {**CALM, "change_ms": 300}
CHANGES = {**CALM, "replication_factor": 1, "change_ms": 1000}
#: Long enough for another leader, while clients still reach the one before.
CUTS = {**CALM, "partition_ms": 10_000, "ahead": 1}
#: Long enough for another controller, while the one before does not know of it.
PAUSES = {**CALM, "pause_ms": 4000}
#: One machine after the other loses what it has not synced.
POWER_CUTS = {**CALM, "power_ms": 3000, "ahead": 1, "delay_ms": 30}
#: One machine after the other is without power for so long that it must be fenced.
ABSENCES = {**CALM, "power_ms": 5000, "longer_down_ms": 25_000}


PLANTED = (
    Planted(
        "a follower joins the ISR before it has reached the high watermark",
        (
            Wrong(transitions, "isr_with", _joins_at_once),
            Wrong(high_watermark, "is_about_to_join", lambda right: lambda *_: False),
        ),
        faults={**KILLS, "replica_fetch_bytes": 200},
    ),
    Planted(
        "the end of the log goes back with a new leader",
        (Wrong(leading_replica, "is_end_known", lambda right: lambda *_: True),),
        faults=KILLS,
    ),
    Planted(
        "a consumer's session reads the topic that has the name of its own now",
        (Wrong(fetch_plan, "check_topic_id", _names_are_enough),),
        faults=REMAKES,
    ),
    Planted(
        "a follower's session of the topic before commits what another topic of its name has",
        (
            Wrong(fetch_plan, "replica_id_of", _notes_who_fetches),
            Wrong(fetch_plan, "check_topic_id", _followers_names_are_enough),
        ),
        faults={**REMAKES, "partition_ms": 1000, "delay_ms": 10, "remake_ms": 500},
    ),
    Planted(
        "consumers that know an older leader epoch read on",
        (
            Wrong(fetch_plan, "check_leader_epoch", _any_epoch_will_do),
            Wrong(fetch_from_follower, "check_leader_epoch", _any_epoch_will_do),
        ),
        faults=MOVES,
        says="names the epoch",
    ),
    Planted(
        "consumers that know an older leader epoch are told the end of the log",
        (Wrong(_LIST_OFFSETS, "check_leader_epoch", _any_epoch_will_do),),
        faults=MOVES,
        found_by=1,
        says="is told the end in",
    ),
    Planted(
        "followers are not told where the logs diverge",
        (Wrong(LogReader, "end_offset_for_epoch", _diverging_epochs_are_not_told),),
        faults=CUTS,
    ),
    Planted(
        "acks=all is answered before replication",
        (Wrong(Committing, "acknowledged", _the_leader_is_enough),),
        faults=CUTS,
    ),
    Planted(
        "a leader takes records while too few replicas are in sync",
        (Wrong(leading_replica, "is_under_min_isr", lambda right: lambda _: False),),
        faults=KILLS,
        says="has taken",
    ),
    Planted(
        "a leader commits while too few replicas are in sync",
        (Wrong(high_watermark, "is_under_min_isr", lambda right: lambda _: False),),
        faults=KILLS,
        says="has committed",
    ),
    Planted(
        "producers that wait are told success by a leader that is deposed",
        (Wrong(committing, "outcome_without_leader", lambda right: lambda _: ErrorCode.NONE),),
        faults={
            **CUTS,
            "producers": 3,
            "partitions": 3,
            "partition_ms": 6000,
            "pause_ms": 4000,
            "drop": 0.05,
        },
        seeds=60,
        found_by=3,
    ),
    Planted(
        "consumers of what is committed read up to the high watermark",
        (Wrong(fetch_plan, "limit_of_fetch", lambda right: lambda replica_id, _: right(replica_id, 0)),),
        faults={**CALM, "transactional": 2},
        says="a consumer of what is committed has read",
    ),
    Planted(
        "a follower truncates to its high watermark when the leader changes",
        (Wrong(following, "follow", _truncates_to_high_watermark),),
        faults=KILLS,
    ),
    Planted(
        "followers do not note sequence numbers",
        (Wrong(ReplicaWriter, "append", _notes_no_producers),),
        faults={**KILLS, "ahead": 1},
        found_by=3,
        says="twice",
    ),
    Planted(
        "a coordinator loads its log only up to the high watermark",
        (Wrong(coordinator_topic, "batches_in", _reads_up_to_high_watermark),),
        faults=KILLS,
    ),
    Planted(
        "a coordinator loads groups without their committed offsets",
        (Wrong(Replay, "state", _loads_no_offsets),),
        faults=KILLS,
    ),
    Planted(
        "a coordinator that has moved writes no markers of decided transactions",
        (Wrong(transactions, "on_loaded", _decided_transactions_stay),),
        faults={**KILLS, "transactional": 2, "delay_ms": 30},
        found_by=8,
        says="has no marker",
    ),
    Planted(
        "a coordinator answers before its records are committed",
        (Wrong(Shard, "__init__", _coordinators_answer_before_commit),),
        faults={**KILLS, "partition_ms": 4000},
    ),
    Planted(
        "members of earlier generations may commit",
        (
            Wrong(ClassicKind, "commit_error", lambda right: lambda *_: ErrorCode.NONE),
            Wrong(ClassicKind, "commit_effects", lambda right: lambda *_: []),
        ),
        faults={**CALM, "members": 2},
        found_by=8,
    ),
    Planted(
        "a member of a consumer group gets partitions that another one has not given up",
        (Wrong(heartbeat, "reconciled", _partitions_are_free_at_once),),
        faults={**CALM, "members": 2, "partitions": 3},
        says="at the same time",
    ),
    Planted(
        "every candidate is elected and commits alone, so that two controllers are active",
        (
            Wrong(elections, "is_majority", _one_is_a_majority),
            Wrong(turn, "is_majority", _one_is_a_majority),
            Wrong(progress, "majority_offset", lambda right: max),
        ),
        faults=CUTS,
    ),
    Planted(
        "a leader that was deposed is not fenced, and changes the ISR",
        (Wrong(alter_partition, "refusal", _deposed_leaders_may_change_the_isr),),
        faults={**CUTS, "pause_ms": 4000, "replica_lag_ms": 3000, "min_insync": 1},
    ),
    Planted(
        "a broker that has crashed stays in sync",
        (Wrong(brokers, "partitions_after_shutdown", lambda right: lambda *_: []),),
        faults={**CALM, "power_ms": 3000},
    ),
    Planted(
        "a replica that is not in sync is elected although unclean elections are off",
        (Wrong(ControllerState, "unclean_election_enabled", lambda right: lambda self, topic: True),),
        faults={**CUTS, "kill_ms": 3000},
        seeds=40,
        found_by=27,
    ),
    Planted(
        "any live replica is elected when the last one in sync has crashed and none is eligible",
        (Wrong(partitions, "elect", _any_live_replica_leads_where_none_is_eligible),),
        faults={**KILLS, "min_insync": 1, "replica_fetch_bytes": 200},
        found_by=4,
    ),
    Planted(
        "a broker whose session is over is not fenced",
        (Wrong(brokers, "end_session", _forgets_who_is_gone),),
        faults=ABSENCES,
    ),
    Planted(
        "a broker is fenced and leads on",
        (Wrong(brokers, "fence", _fenced_brokers_keep_what_they_lead),),
        faults=KILLS,
    ),
    Planted(
        "a controller goes on when another node leads the metadata log",
        (Wrong(ControllerRole, "end", lambda right: lambda self, error: None),),
        faults=CUTS,
    ),
    Planted(
        "a controller that was deposed goes by what it has appended and nobody has committed",
        (Wrong(AppendedBatches, "forget", lambda right: lambda self: None),),
        faults={**PAUSES, "change_ms": 300},
    ),
    Planted(
        "a reassignment ends before the replicas that it adds are in sync",
        (Wrong(partitions, "completed", _moves_end_at_once),),
        faults=CHANGES,
    ),
    Planted(
        "a torn tail is not truncated after a power cut",
        (Wrong(crash_scan, "scan_segment", _torn_tails_stay),),
        faults=POWER_CUTS,
    ),
    Planted(
        "the leader epochs of records that are lost are not truncated after a power cut",
        (Wrong(FoundLog, "finish_epochs", _epochs_behind_the_end_stay),),
        faults=POWER_CUTS,
        seeds=40,
        found_by=21,
    ),
    Planted(
        "what only a leader has had is not truncated after a power cut, when it follows",
        (Wrong(following, "truncation_offset", _keeps_all),),
        faults={**POWER_CUTS, "power_ms": 1500, "ahead": 2, "delay_ms": 60},
        seeds=40,
        found_by=27,
        says="in ('t', 0) at",
    ),
)
