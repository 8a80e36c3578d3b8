"""The active controller: decides on metadata, from the moment this node leads the metadata log until it does
not.

    event -> core -> records appended to the metadata log -> committed -> published on this node -> answer

A shard (machine/shard.py) over the core of `core/transitions.py`. Its state includes records that are not yet
committed, so that each decision builds on the one before. That state never leaves this file: the rest of the
node sees committed images only. Once everything appended is published, the state takes over the published
image, so the node holds its metadata only once.

Brokers on other nodes have sessions. A timer fires when the first session ends; each heartbeat resets it.
Silent brokers are fenced one by one, as in Kafka. Brokers whose connections have ended are probed, and fenced
earlier if their processes have ended as well (`core/early_fencing.py`). Two more timers bring preferred
leaders back and hold unclean elections where they are allowed (`core/requested_elections.py`), and one
removes expired delegation tokens. Setting the wall clock moves neither sessions nor timers; only the
timestamps of delegation tokens follow it. Decisions are logged once they are committed (`decision_lines.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Union, cast

from pykafka_broker.cluster.image import (
    MINIMUM_METADATA_VERSION,
    ClusterImage,
    LeaderRecoveryState,
    replay,
)
from pykafka_broker.controller.bootstrap import first_records
from pykafka_broker.controller.broker_probes import BrokerProbes, Probe, is_refused
from pykafka_broker.controller.channel import ChangeRequester
from pykafka_broker.controller.core import events
from pykafka_broker.controller.core.delegation_tokens import TokenTimer
from pykafka_broker.controller.core.early_fencing import Suspect
from pykafka_broker.controller.core.requested_elections import ElectionTimer, election_event
from pykafka_broker.controller.core.state import ControllerRules, ControllerState
from pykafka_broker.controller.core.transitions import transition
from pykafka_broker.controller.decision_lines import Decided, DecisionLines
from pykafka_broker.machine.scheduler import Scheduler
from pykafka_broker.machine.shard import Answer, Shard, ShardCore, ShardPorts
from pykafka_broker.machine.steady_timers import SteadyTimers
from pykafka_broker.machine.step import Start, Step
from pykafka_broker.metadata.log_leadership import LeaderLog
from pykafka_broker.metadata.publisher import MetadataPublisher
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records.metadata import PartitionChangeRecord
from pykafka_broker.raft.core.messages import AddVoter, ChangeAnswer, RemoveVoter
from pykafka_broker.raft.format import random_uuid
from pykafka_broker.raft.quorum_description import QuorumDescription

#: How long an answer waits by default for the commit of its records: the patience of Kafka's brokers.
COMMIT_TIMEOUT_MS = 60_000


class ActiveController:
    """Decides over `log`. `state` is the state after the last record of the log."""

    def __init__(
        self,
        state: ControllerState,
        log: LeaderLog,
        scheduler: Scheduler,
        *,
        published_offset: int,
        probe: Probe = is_refused,
    ) -> None:
        self._log = log
        self._timers = timers = SteadyTimers(scheduler)
        self._probes = BrokerProbes(timers, self._on_probed, probe)
        #: Elections of replicas that were not in sync.
        self.unclean_elections = 0
        #: Events that it has decided.
        self.decisions = 0
        self._lines = DecisionLines(state.rules.node_id, state.rules.configs.is_secret)
        #: The client whose event is being decided.
        self._requester: ChangeRequester | None = None
        self._shard: Shard[ControllerState, events.Asked] = Shard(
            state,
            ShardCore(self._transition, self._timer_event),
            ShardPorts(self._append, timers, self._start),
            written=log.end_offset,
            committed=published_offset,
            commit_timeout_ms=COMMIT_TIMEOUT_MS,
        )

    @classmethod
    def begin(
        cls,
        log: LeaderLog,
        publisher: MetadataPublisher,
        rules: ControllerRules,
        scheduler: Scheduler,
        bootstrap: Sequence[object],
        probe: Probe = is_refused,
    ) -> ActiveController:
        """Continue from the state of the log: append the first records, and give every broker a session.

        Raises:
            KafkaError: the log could not be written.
        """
        base_offset = log.end_offset
        image = publisher.replayed_image._replace(offset=base_offset - 1, epoch=log.epoch)
        state = ControllerState(image, _rules_of(log, rules))
        records = first_records(state, bootstrap, in_transaction=publisher.in_transaction)
        if records:
            # None of these record types has a second version.
            log.append(records, MINIMUM_METADATA_VERSION)
            state = state._replace(image=replay(image, records, offset=base_offset, epoch=log.epoch))
        controller = cls(state, log, scheduler, published_offset=publisher.published_offset, probe=probe)
        controller._tell(events.Activate())
        return controller

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self._log.end_offset

    @property
    def heartbeat_ages_ms(self) -> Mapping[int, int]:
        """The milliseconds since the last heartbeat, or since this controller began, of each broker with a
        session.
        """
        now_ms = self._timers.now_ms()
        return {
            broker_id: now_ms - session.last_contact_ms
            for broker_id, session in self._shard.state.sessions.items()
        }

    def ask(self, event: events.Event, requester: ChangeRequester | None = None) -> Answer:
        """Decide now; the answer comes when the decision is committed and published."""
        self._requester = requester
        moment = self._moment(self._timers.now_ms())
        try:
            return self._shard.ask(lambda token: events.Asked(event, moment, token))
        finally:
            self._requester = None

    def _tell(self, event: events.Event) -> None:
        self._shard.tell(events.Asked(event, self._moment(self._timers.now_ms())))

    def _timer_event(self, key: Hashable, now_ms: int) -> events.Asked:
        event: events.Event
        if isinstance(key, ElectionTimer):
            event = election_event(key)
        else:
            event = events.RemoveExpiredTokens() if isinstance(key, TokenTimer) else events.ExpireSessions()
        return events.Asked(event, self._moment(now_ms))

    def _moment(self, now_ms: int) -> events.Moment:
        return events.Moment(now_ms, self._timers.wall_ms(), int.from_bytes(random_uuid(), "big"))

    async def change_voters(self, request: Union[AddVoter, RemoveVoter]) -> ChangeAnswer:
        """The answer of the leader of the log to a change of its voters."""
        answer: ChangeAnswer = await self._log.request(request)
        return answer

    @property
    def kraft_version(self) -> int:
        """0 if the configuration of each node names the voters, 1 if the log does."""
        return self._log.kraft_version

    async def upgrade_kraft_version(
        self, *, validate_only: bool, requester: ChangeRequester | None = None
    ) -> str | None:
        """Raise kraft.version to 1, or only check that; return why the voters do not allow it, or None.

        Raises:
            KafkaError: NOT_CONTROLLER, this node has stopped leading; REQUEST_TIMED_OUT, no commit in time.
        """
        answer = await self._log.upgrade_kraft_version(validate_only=validate_only)
        if answer.error is ErrorCode.NONE and not validate_only:
            self._lines.tell_kraft_version(self.kraft_version, requester)
        if answer.error is ErrorCode.NONE or answer.error is ErrorCode.INVALID_UPDATE_VERSION:
            return answer.message
        if answer.error is ErrorCode.REQUEST_TIMED_OUT:
            raise KafkaError(answer.error, answer.message)
        raise KafkaError(ErrorCode.NOT_CONTROLLER)

    def describe_quorum(self) -> QuorumDescription:
        """The quorum that this controller leads."""
        return self._log.describe_quorum()

    def on_published(self, image: ClusterImage, offset: int) -> None:
        """The node has published `image` and all offsets below `offset`: answer waiting callers."""
        shard = self._shard
        shard.on_commit(offset)
        if image.offset == shard.state.image.offset:
            shard.state = shard.state._replace(image=image)

    def on_connected(self, broker_id: int, *, is_connected: bool) -> None:
        """The first connection of a broker has come, or its last one has ended."""
        with suppress(KafkaError):  # its session decides then
            self._tell(events.BrokerConnected(broker_id, is_connected))

    def on_heartbeats_ended(self, broker_id: int) -> None:
        """The last connection on which the broker sent heartbeats is closed."""
        with suppress(KafkaError):
            self._tell(events.HeartbeatsEnded(broker_id))

    def close(self, error: KafkaError) -> None:
        """Answer waiting callers with `error`; the next leader decides whether their records count."""
        self._probes.close()
        self._shard.close(error)

    def _transition(self, state: ControllerState, asked: events.Asked) -> Step[ControllerState]:
        if state.next_offset != self._log.end_offset:
            # Control records of raft, such as a new set of voters, take offsets too.
            image = state.image._replace(offset=self._log.end_offset - 1)
            state = state._replace(image=image, rules=_rules_of(self._log, state.rules))
        self.decisions += 1
        step = transition(state, asked)
        if step.records:
            decided = Decided(asked.event, step.records, state.image, step.state.image, self._requester)
            step = step._replace(effects=(Start(decided), *step.effects))
        return step

    def _start(self, work: object) -> None:
        if isinstance(work, Decided):
            self.unclean_elections += sum(map(_is_unclean, work.records))
            self._lines.tell(work)
        else:
            self._probes.watch(cast("Mapping[int, Suspect]", work))

    def _on_probed(self, suspect: Suspect, is_refused: bool) -> None:
        with suppress(KafkaError):  # the next turn reports it again
            self._tell(events.BrokerProbed(suspect.broker_id, suspect.broker_epoch, is_refused))

    def _append(self, records: tuple[object, ...]) -> int:
        return self._log.append(records, self._shard.state.image.metadata_version)


def _is_unclean(record: object) -> bool:
    recovering = LeaderRecoveryState.RECOVERING
    return isinstance(record, PartitionChangeRecord) and record.leader_recovery_state == recovering


def _rules_of(log: LeaderLog, rules: ControllerRules) -> ControllerRules:
    """The rules with the kraft.version and the voters of the log's control records."""
    return rules._replace(kraft_version=log.kraft_version, voters=log.voter_ids)
