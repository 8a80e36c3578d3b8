"""The shards of the group coordinator: each holds the groups of one partition of `__consumer_offsets`.

This is where questions find their shard. Nothing raises for what a client did, or for a shard that is not
here: every question says what it is answered then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable
from functools import partial
from typing import Any, TypeVar

from pykafka_broker.coordination.batches import Append, MaxBatchBytes
from pykafka_broker.coordination.groups.progress import log_progress
from pykafka_broker.coordination.groups.regexes import RegexResolver, RunBlocking
from pykafka_broker.coordination.groups.writing import write
from pykafka_broker.coordination.shards import Shards, as_answered
from pykafka_broker.coordinator.group import deletion, events
from pykafka_broker.coordinator.group.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.group.consumer.turn import ResolveRegexes
from pykafka_broker.coordinator.group.events import Event
from pykafka_broker.coordinator.group.loading import Loader
from pykafka_broker.coordinator.group.state import Groups
from pykafka_broker.coordinator.group.topics import NO_TOPICS, TopicDirectory
from pykafka_broker.coordinator.group.transitions import transition
from pykafka_broker.machine.scheduler import Scheduler
from pykafka_broker.machine.shard import Prompt, Shard, ShardCore, ShardPorts
from pykafka_broker.machine.step import Step
from pykafka_broker.machine.turns import Turns
from pykafka_broker.protocol.errors import KafkaError

Answer = TypeVar("Answer")
GroupShard = Shard[Groups, Event]


class GroupShards(Shards[Groups, Event]):
    """All shards of groups on this broker."""

    def __init__(
        self,
        *,
        config: GroupCoordinatorConfig,
        append: Append,
        max_batch_bytes: MaxBatchBytes,
        scheduler: Scheduler,
        run_blocking: RunBlocking,
    ) -> None:
        super().__init__(new_loader=Loader, new_shard=self._new_group_shard)
        #: May be replaced at any time; holds for the next event.
        self.config = config
        self.append = append
        self._max_batch_bytes = max_batch_bytes
        self.now_ms = scheduler.now_ms
        self._scheduler = Turns(scheduler)
        self._topics: TopicDirectory = NO_TOPICS
        self._regexes = RegexResolver(run_blocking, self.now_ms)

    def answer(
        self,
        group_id: str,
        question: Callable[[int], Event],
        *,
        refused: Callable[[KafkaError], Answer],
    ) -> Prompt[Answer] | Awaitable[Answer]:
        """Let the shard of a group answer `question(token)`.

        `refused(error)` is the answer where there is no such shard, or its log takes nothing in; the error
        has the code a client is to see.
        """
        try:
            answer = self.shard_for(group_id).ask(question)
        except KafkaError as error:
            return Prompt(refused(as_answered(error)))
        return answer if isinstance(answer, Prompt) else _or_refused(answer, refused)

    def set_topics(self, topics: TopicDirectory, changed: frozenset[str], *, has_new_topics: bool) -> None:
        """The cluster's topics have changed, those named `changed` at least."""
        self._topics = topics
        event = events.TopicsChanged(topics, changed, has_new_topics)
        self.for_each(lambda shard: shard.tell(event))

    def forget_topics(self, deleted: Iterable[tuple[str, bytes]]) -> None:
        """Topics, given as (name, topic id), are gone, and so are the offsets committed to them."""
        event = events.TopicsDeleted(tuple(deleted), self.now_ms())

        def tell(shard: GroupShard) -> None:
            try:
                shard.tell(event)
            except KafkaError:
                # Not worth failing a metadata update for: unread offsets expire, and a topic id tells old
                # from new.
                return

        self.for_each(tell)

    def close(self) -> None:
        super().close()
        self._regexes.close()

    def _new_group_shard(self, partition: int, state: Groups, written: int, committed: int) -> GroupShard:
        shard: GroupShard = Shard(
            state,
            ShardCore(self._transition, _timer_event, _refused_event),
            ShardPorts(
                append=partial(self._write, partition),
                scheduler=self._scheduler,
                start=lambda work: self._start(partition, work),
            ),
            written=written,
            committed=committed,
            commit_timeout_ms=self.config.offsets_commit_timeout_ms,
        )
        shard.tell(events.TopicsChanged(self._topics, frozenset(), False))
        shard.tell(events.Loaded(self.now_ms()))
        return shard

    def _transition(self, state: Groups, event: Event) -> Step[Groups]:
        step = transition(state, event, self.config)
        if step.state.groups is not state.groups:
            log_progress(state, event, step.state)
        return step

    def _write(self, partition: int, records: tuple[object, ...]) -> int:
        return write(
            self.append,
            partition,
            records,
            now_ms=self.now_ms(),
            codec=self.config.offsets_topic_compression_codec,
            max_bytes=self._max_batch_bytes(partition),
        )

    def _start(self, partition: int, work: Any) -> None:
        assert isinstance(work, ResolveRegexes), work
        self._regexes.start(work, self._topics, lambda event: self.shard_of(partition).tell(event))


async def _or_refused(answer: Awaitable[Answer], refused: Callable[[KafkaError], Answer]) -> Answer:
    try:
        return await answer
    except KafkaError as error:
        return refused(as_answered(error))


def _refused_event(event: Event, error: KafkaError) -> Event | None:
    """An assignment and a deletion have others than their senders waiting for them."""
    if (
        isinstance(event, events.TimerFired)
        and isinstance(event.key, tuple)
        and event.key[0] == deletion.TIMER
    ):
        return events.DeletionRefused(event.key[1], event.now_ms, error)
    if not isinstance(event, events.SyncGroup):
        return None
    return events.AssignmentRefused(event.token, event.now_ms, event.group_id, as_answered(error).code)


def _timer_event(key: Hashable, now_ms: int) -> Event:
    return events.TimerFired(key, now_ms)
