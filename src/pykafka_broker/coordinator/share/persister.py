"""Asks the share coordinator of a share partition, for the group coordinator and the leaders of this node.

The coordinator is the leader of one partition of `__share_group_state`, by the newest metadata: this node, or
another broker. The topic is created when it is first needed. Transient failures are retried (`attempts.py`),
sooner if the metadata shows another coordinator. Of two questions that change the same share partition the
second is asked when the first is answered.

Nothing here raises for an error of a coordinator: errors are refusals in the answers.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from pykafka_broker.cluster.image import NO_LEADER
from pykafka_broker.coordinator.share.attempts import Attempts, after_lookup, after_refusal
from pykafka_broker.coordinator.share.core.batches import StateBatch
from pykafka_broker.coordinator.share.core.events import ReadResult, Refusal, StateResult, SummaryResult
from pykafka_broker.coordinator.share.core.state import NO_EPOCH
from pykafka_broker.coordinator.share.keys import coordinator_key
from pykafka_broker.coordinator.share.questions import (
    DELETE,
    INITIALIZE,
    READ,
    READ_SUMMARY,
    WRITE,
    Answer,
    Kind,
    Question,
)
from pykafka_broker.coordinator.share.remote_states import RemoteStates
from pykafka_broker.coordinator.share.service import ShareService
from pykafka_broker.machine.lines import Lines
from pykafka_broker.machine.scheduler import Scheduler
from pykafka_broker.machine.wait import Wait
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("kafka.server.share.persister.DefaultStatePersister")

#: The coordinator's id if there is none.
NO_COORDINATOR = NO_LEADER


class ShareMap(NamedTuple):
    """What the metadata says about share partitions."""

    node_id: int
    #: The broker that leads a share partition's part of `__share_group_state`; NO_COORDINATOR if none does.
    coordinator_of: Callable[[SharePartitionKey], int]
    #: The number of partitions of a topic; 0 if there is no such topic.
    partition_count: Callable[[bytes], int]
    #: Creates `__share_group_state` if it is missing; returns whether it exists.
    ensure_topic: Callable[[], Awaitable[bool]]


class Persister:
    """Event loop only."""

    def __init__(
        self, shares: ShareService, elsewhere: RemoteStates, where: ShareMap, scheduler: Scheduler
    ) -> None:
        self._shares = shares
        self._elsewhere = elsewhere
        self._where = where
        self._scheduler = scheduler
        #: The questions that are asked or wait for their turn.
        self._lines: Lines[SharePartitionKey] = Lines()
        #: The pauses of the questions that will be asked again.
        self._pauses: set[Wait] = set()

    async def initialize(self, key: SharePartitionKey, *, state_epoch: int, start_offset: int) -> StateResult:
        """Initialize the state of a share partition, also an existing one: without batches, from
        `start_offset`; -1 lets the leader choose it.
        """
        question = Question(key, state_epoch=state_epoch, start_offset=start_offset)
        return await self._ask_in_turn(INITIALIZE, question)

    async def read(self, key: SharePartitionKey, *, leader_epoch: int) -> ReadResult:
        """The state of a share partition. The leader's epoch is stored, and fences older leaders."""
        return await self._ask_in_turn(READ, Question(key, leader_epoch=leader_epoch))

    async def write(
        self,
        key: SharePartitionKey,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: tuple[StateBatch, ...],
    ) -> StateResult:
        """Apply changes to the state of a share partition; a start offset of -1 leaves it as it is."""
        question = Question(key, state_epoch, leader_epoch, start_offset, delivery_complete_count, batches)
        return await self._ask_in_turn(WRITE, question)

    async def delete(self, key: SharePartitionKey) -> StateResult:
        """Forget a share partition; it is no error if nothing is known of it."""
        return await self._ask_in_turn(DELETE, Question(key))

    async def read_summary(self, key: SharePartitionKey, *, leader_epoch: int = NO_EPOCH) -> SummaryResult:
        """The group's progress in a share partition, for administrators; fences no leader."""
        return await self._ask(READ_SUMMARY, Question(key, leader_epoch=leader_epoch))

    @property
    def questions_in_line(self) -> int:
        """The questions about single share partitions that are not answered yet."""
        return len(self._lines)

    def look_again(self) -> None:
        """Coordinators may have moved in the newest metadata: retry all waiting questions at once."""
        for pause in self._pauses:
            pause.end()

    # ---- asking ----

    async def _ask_in_turn(self, kind: Kind[Answer], question: Question) -> Answer:
        async with self._lines.turn(question.key):
            return await self._ask(kind, question)

    async def _ask(self, kind: Kind[Answer], question: Question) -> Answer:
        """Ask until there is an answer, or it is time to give up."""
        attempts = Attempts()
        while True:
            coordinator_id = await self._find(question.key)
            if coordinator_id == NO_COORDINATOR:
                decision = after_lookup(attempts)
            else:
                answer = await self._ask_once(coordinator_id, kind, question)
                refusal: Refusal | None = answer.refusal
                if refusal is None:
                    return answer
                decision = after_refusal(attempts, kind.deed, refusal)
            if isinstance(decision, Refusal):
                # A client may have named a partition that cannot be.
                level = logging.WARNING if decision.error is ErrorCode.INVALID_REQUEST else logging.ERROR
                key = coordinator_key(question.key)
                logger.log(level, "Unable to %s for key %s: %s", kind.deed, key, decision.message)
                return kind.refused(decision)
            if await self._pause(decision.pause_ms):
                attempts = decision.attempts

    async def _pause(self, duration_ms: int) -> bool:
        """Wait for `duration_ms`, or until coordinators may have moved; False in the latter case."""
        pause = Wait()
        self._pauses.add(pause)
        try:
            return not await pause.until(self._scheduler.call_at, self._scheduler.now_ms() + duration_ms)
        finally:
            self._pauses.discard(pause)

    async def _find(self, key: SharePartitionKey) -> int:
        coordinator_id = self._where.coordinator_of(key)
        if coordinator_id == NO_COORDINATOR and await self._where.ensure_topic():
            coordinator_id = self._where.coordinator_of(key)
        is_reachable = coordinator_id == self._where.node_id or self._elsewhere.is_reachable(coordinator_id)
        return coordinator_id if is_reachable else NO_COORDINATOR

    async def _ask_once(self, coordinator_id: int, kind: Kind[Answer], question: Question) -> Answer:
        if coordinator_id != self._where.node_id:
            return await self._elsewhere.ask(coordinator_id, kind, question)
        shares = self._shares
        try:
            await shares.loaded(question.key)
        except KafkaError as error:
            return kind.not_here(error)
        now_ms, count = shares.now_ms(), self._where.partition_count(question.key.topic_id)
        return await shares.answer(
            question.key,
            lambda token: kind.event(token, now_ms, question, count),
            refused=kind.not_here,
        )
