"""A simulated broker with one replica of the partition, which it leads or follows over `replication/core`."""

from __future__ import annotations

from typing import NamedTuple, Union

from pykafka_broker.cluster.image import NO_LEADER, ClusterImage, PartitionRegistration, ResourceType
from pykafka_broker.machine.step import Start, Step
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.replication.core import access, high_watermark, in_sync, transitions
from pykafka_broker.replication.core import following as following_core
from pykafka_broker.replication.core.events import (
    BrokersChanged,
    Event,
    FollowerFetched,
    IsrChangeAnswered,
    IsrProposal,
    TimePassed,
)
from pykafka_broker.replication.core.fetch_session import PartitionFetch
from pykafka_broker.replication.core.following import (
    Answer,
    Append,
    EpochEnd,
    Following,
    TruncateTo,
    at_log_end,
    fetched,
    is_due,
)
from pykafka_broker.replication.core.state import Leadership
from pykafka_broker.replication.core.transitions import ReplicationSettings
from tests.simulation.partition.replica_log import Record, ReplicaLog

TOPIC = "orders"
LAG_MS = 30_000
#: The records of one answer.
MOST_RECORDS = 3


class Fetch(NamedTuple):
    """A follower has everything below `offset`, and wants what comes then."""

    to: int
    replica_id: int
    broker_epoch: int
    leader_epoch: int
    offset: int
    last_epoch: int


class Fetched(NamedTuple):
    """The answer to `asked`."""

    to: int
    asked: Fetch
    error: ErrorCode = ErrorCode.NONE
    records: tuple[Record, ...] = ()
    high_watermark: int = 0
    diverging: EpochEnd | None = None


class IsrWanted(NamedTuple):
    """A leader asks the controller for `change`: its attempt of this number."""

    broker_id: int
    broker_epoch: int
    attempt: int
    change: IsrProposal


Message = Union[Fetch, Fetched, IsrWanted]


class Waiting(NamedTuple):
    """A producer that waits for all replicas in sync."""

    leader_epoch: int
    offset: int
    record: Record


class Broker:
    """`broker_epoch` is that of its registration, and changes with every start.

    What it has to send is returned by each method; `acknowledged` and `seen` are what clients have been told
    since the laws looked last.
    """

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = -1
        self.is_up = False
        self.log = ReplicaLog()
        self.checkpointed_high_watermark = 0
        self.image = ClusterImage()
        self.leadership: Leadership | None = None
        #: The newest state of the partition that this broker has taken up.
        self.registration: PartitionRegistration | None = None
        self.following: Following | None = None
        self.fetching: Fetch | None = None
        #: The change that the controller has been asked for, until it has answered.
        self.asked: IsrProposal | None = None
        #: How often it has been asked; only the answer to the last attempt counts.
        self.attempts = 0
        self.waiting: list[Waiting] = []
        self.acknowledged: list[tuple[int, Record]] = []
        #: Committed since the laws looked last: offsets and records.
        self.seen: list[tuple[int, Record]] = []

    # -- its life ----------------------------------------------------------------------------------

    def crash(self) -> None:
        """The process ends; the page cache outlives it, the newest high watermark does not."""
        self.is_up = False
        self.log.high_watermark = min(self.checkpointed_high_watermark, self.log.end)
        self.leadership = self.registration = self.following = self.fetching = self.asked = None
        self.waiting.clear()

    def start(self, broker_epoch: int) -> None:
        self.is_up = True
        self.broker_epoch = broker_epoch

    def checkpoint(self) -> None:
        self.checkpointed_high_watermark = self.log.high_watermark

    def learn(self, image: ClusterImage, now_ms: int) -> list[Message]:
        """Newer metadata, as `ReplicaManager.apply` takes it up."""
        self.image = image
        topic = image.topics[TOPIC]
        registration = topic.partitions[0]
        self._become(registration, image, now_ms)
        leadership = self.leadership
        if leadership is None:
            return []
        brokers = (image.brokers.get(one) for one in leadership.followers)
        return self._happens(
            BrokersChanged({b.broker_id: b.epoch for b in brokers if b and b.active}), now_ms
        )

    def _become(self, registration: PartitionRegistration, image: ClusterImage, now_ms: int) -> None:
        if self.leadership is not None and transitions.is_outdated(self.leadership, registration):
            return
        before = self.registration
        self.registration = registration
        if registration.leader != self.broker_id:
            self.leadership = None
            self.waiting.clear()
            if before is None or before.leader_epoch != registration.leader_epoch:
                self.fetching = self.following = None
                if registration.leader != NO_LEADER:
                    step = following_core.follow(registration.leader_epoch, self.log)
                    self.following = step.state
                    self._carry_out(step, None)
            return
        self.fetching = self.following = None
        if before is None or before.leader_epoch != registration.leader_epoch:
            self.log.begin_epoch(registration.leader_epoch)
        min_isr = int(image.config(ResourceType.TOPIC, TOPIC)["min.insync.replicas"])
        settings = ReplicationSettings(min_isr, LAG_MS)
        self.leadership = transitions.leadership_of(
            self.leadership, self.broker_id, registration, settings, self.log.end, now_ms
        )
        self._commit(now_ms)

    # -- leading -----------------------------------------------------------------------------------

    def produce(self, value: int, now_ms: int) -> None:
        """A producer with acks=all writes."""
        leadership = self.leadership
        if leadership is None or in_sync.is_under_min_isr(leadership):
            return
        record = Record(leadership.leader_epoch, value)
        self.waiting.append(Waiting(leadership.leader_epoch, self.log.end, record))
        self.log.append([record])
        self._commit(now_ms)

    def look_for_laggards(self, now_ms: int) -> list[Message]:
        if self.leadership is None:
            return []
        return self._happens(TimePassed(now_ms, self.log.offsets), now_ms)

    def serve(self, asked: Fetch, now_ms: int) -> list[Message]:
        """The answer to a follower, in the order of checks of `apis/fetching/plan.py`."""
        messages: list[Message] = []
        try:
            answer = self._served(asked, now_ms, messages)
        except KafkaError as error:
            answer = Fetched(asked.replica_id, asked, error.code)
        return [answer, *messages]

    def _served(self, asked: Fetch, now_ms: int, messages: list[Message]) -> Fetched:
        if self.registration is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        access.check_leader_epoch(self.registration.leader_epoch, asked.leader_epoch)
        if self.leadership is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        access.check_follower(self.leadership, asked.replica_id, asked.leader_epoch)
        log = self.log
        answer = Fetched(asked.replica_id, asked, high_watermark=log.high_watermark)
        if asked.last_epoch >= 0:
            epoch, end = log.epochs.end_offset_for(asked.last_epoch, log.end)
            if epoch < 0:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            if epoch < asked.last_epoch or end < asked.offset:
                return answer._replace(diverging=EpochEnd(epoch, end))
        if asked.offset > log.end:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        broker = self.image.brokers.get(asked.replica_id)
        event = FollowerFetched(
            now_ms,
            asked.replica_id,
            asked.offset,
            log.offsets,
            asked.broker_epoch,
            -1 if broker is None else broker.epoch,
            broker is not None and broker.active,
        )
        if event.is_stale:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        answer = answer._replace(records=tuple(log.records[asked.offset : asked.offset + MOST_RECORDS]))
        messages += self._happens(event, now_ms)
        return answer

    def isr_answered(self, event: IsrChangeAnswered, now_ms: int) -> list[Message]:
        self.asked = None
        return [] if self.leadership is None else self._happens(event, now_ms)

    def ask_again(self) -> list[Message]:
        """No answer has come: ask for the same change in the registration of today."""
        return [] if self.asked is None else [self._attempt(self.asked)]

    def _attempt(self, change: IsrProposal) -> IsrWanted:
        self.attempts += 1
        return IsrWanted(self.broker_id, self.broker_epoch, self.attempts, change)

    def _happens(self, event: Event, now_ms: int) -> list[Message]:
        assert self.leadership is not None
        step = transitions.transition(self.leadership, event)
        self.leadership = step.state
        messages: list[Message] = []
        for effect in step.effects:
            assert isinstance(effect, Start) and isinstance(effect.work, IsrProposal)
            if self.asked is not None:
                answer = IsrChangeAnswered(effect.work, ErrorCode.OPERATION_NOT_ATTEMPTED)
                self.leadership = transitions.transition(self.leadership, answer).state
                continue
            self.asked = effect.work
            messages.append(self._attempt(effect.work))
        self._commit(now_ms)
        return messages

    def _commit(self, now_ms: int) -> None:
        leadership, log = self.leadership, self.log
        assert leadership is not None
        before = log.high_watermark
        after = high_watermark.high_watermark(leadership, log.offsets, log.end, now_ms)
        assert before <= after <= log.end, f"high watermark from {before} to {after}, log end {log.end}"
        log.high_watermark = after
        self.seen += ((offset, log.records[offset]) for offset in range(before, after))
        still = []
        for waiting in self.waiting:
            if waiting.leader_epoch != leadership.leader_epoch:
                continue
            if waiting.offset >= after:
                still.append(waiting)
            elif access.outcome_of_committed(leadership, access.ACKS_ALL) is ErrorCode.NONE:
                self.acknowledged.append((waiting.offset, waiting.record))
        self.waiting = still

    # -- following ---------------------------------------------------------------------------------

    def fetch(self, now_ms: int) -> list[Message]:
        """Ask the leader for more, if it may be asked; a fetch that has got no answer is given up."""
        leader, following = self.registration, self.following
        if leader is None or following is None or not is_due(following, now_ms):
            return []
        self.fetching = Fetch(
            leader.leader,
            self.broker_id,
            self.broker_epoch,
            following.leader_epoch,
            following.fetch_offset,
            following.last_fetched_epoch,
        )
        return [self.fetching]

    def fetched(self, answer: Fetched, now_ms: int) -> None:
        """Take in what the leader has answered."""
        asked = self.fetching
        if answer.asked != asked or asked is None or self.following is None:
            return
        self.fetching = None
        wanted = PartitionFetch(asked.leader_epoch, asked.offset, asked.last_epoch, 0)
        told = Answer(answer.error, answer.diverging)
        step = fetched(self.following, wanted, told, self.log, now_ms + 50)
        self.following = step.state
        self._carry_out(step, answer)

    def _carry_out(self, step: Step[Following], answer: Fetched | None) -> None:
        log = self.log
        for effect in step.effects:
            assert isinstance(effect, Start)
            if isinstance(effect.work, TruncateTo):
                log.truncate(effect.work.offset)
            else:
                assert isinstance(effect.work, Append), "leaders know every epoch before theirs"
                assert answer is not None
                log.append(answer.records)
                log.high_watermark = max(log.high_watermark, min(answer.high_watermark, log.end))
            self.following = at_log_end(step.state, log)
