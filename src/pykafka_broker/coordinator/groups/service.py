"""The group coordinator as handlers see it: each event goes to the shard of its group's partition of
`__consumer_offsets`.

A handler builds the event of its request with the token that `answer` gives it, the time from `now_ms` and,
for members that may need an id, a `new_uuid`. Nothing here raises for an error of the client: errors are
`ErrorCode`s in the answers, and `refusals.py` has the answers where no shard takes the event.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from pykafka_broker.coordinator.batches import CoordinatorLog
from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.consumer.turn import ResolveRegexes
from pykafka_broker.coordinator.groups.core.events import Event
from pykafka_broker.coordinator.groups.core.loading import Loader
from pykafka_broker.coordinator.groups.core.share.events import ShareWork
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.topics import NO_TOPICS, TopicDirectory
from pykafka_broker.coordinator.groups.core.transitions import refused_event, transition
from pykafka_broker.coordinator.groups.counts import Counts
from pykafka_broker.coordinator.groups.decision_texts import decisions, group_of
from pykafka_broker.coordinator.groups.regexes import DescribableTopics, resolve
from pykafka_broker.coordinator.groups.share_work import ShareWorker
from pykafka_broker.coordinator.groups.writing import write
from pykafka_broker.coordinator.markers import Marker
from pykafka_broker.coordinator.shards import LoadedPartition, Shards, as_answered
from pykafka_broker.machine.history import Tell, unheard
from pykafka_broker.machine.scheduler import Scheduler
from pykafka_broker.machine.shard import NO_TOKEN, Prompt, Shard, ShardCore, ShardPorts
from pykafka_broker.machine.step import Reply, Start, Step
from pykafka_broker.machine.threads import RunBlocking
from pykafka_broker.machine.turns import Turns
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.repeated_lines import RepeatedLines
from pykafka_broker.system.wording import cut

logger = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")
offset_logger = logging.getLogger("org.apache.kafka.coordinator.group.OffsetMetadataManager")

#: Offset commits of one client that is not a member are logged once in this time.
COMMIT_LINES_MS = 600_000

Answer = TypeVar("Answer")
GroupShard = Shard[Groups, Event]


class GroupService:
    """Routes events to the groups coordinated here.

    `new_uuid` makes the text of a random UUID. `run_blocking` runs a function off the event loop.
    `describable` returns those matching topics that a member may describe. `share_worker` does what share
    groups ask for. `tell` takes what has been decided on members.
    """

    def __init__(
        self,
        config: GroupCoordinatorConfig,
        log: CoordinatorLog,
        scheduler: Scheduler,
        *,
        new_uuid: Callable[[], str],
        run_blocking: RunBlocking,
        describable: DescribableTopics,
        share_worker: ShareWorker,
        tell: Tell = unheard,
    ) -> None:
        #: The lines about commits without a member; consumers without a group protocol commit all the time.
        self.commit_lines = RepeatedLines(offset_logger, scheduler.now_ms, COMMIT_LINES_MS)
        #: May be replaced at any time; applies from the next event on.
        self.config = config
        self.counts = Counts()
        self.now_ms = scheduler.now_ms
        self.new_uuid = new_uuid
        #: Loads and unloads partitions.
        self.shards: Shards[Groups, Event] = Shards(Loader, self._new_shard)
        self._log = log
        self._scheduler = Turns(scheduler)
        self._run_blocking = run_blocking
        self._describable = describable
        self._share_worker = share_worker
        self._tell = tell
        self._topics: TopicDirectory = NO_TOPICS

    # ---- requests ----

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that a group belongs to.

        Raises:
            KafkaError: NOT_COORDINATOR while there is no topic.

        """
        return self.shards.partition_for(group_id)

    def answer(
        self, group_id: str, event_with: Callable[[int], Event], *, refused: Callable[[KafkaError], Answer]
    ) -> Prompt[Answer] | Awaitable[Answer]:
        """Let the shard of a group answer the event that `event_with(token)` builds; see `Shards.answer`.

        Offsets may be those of a group with an empty id.
        """
        return self.shards.answer(group_id, event_with, refused=refused)

    def answer_named(
        self, group_id: str, event_with: Callable[[int], Event], *, refused: Callable[[KafkaError], Answer]
    ) -> Prompt[Answer] | Awaitable[Answer]:
        """The same for events that need the name of a group; without one every broker answers
        INVALID_GROUP_ID.
        """
        if not group_id:
            return Prompt(refused(KafkaError(ErrorCode.INVALID_GROUP_ID)))
        return self.answer(group_id, event_with, refused=refused)

    async def answer_anywhere(self, event_with: Callable[[int], Event]) -> Any:
        """Answer an event that needs only topics and share coordinators, no group; every broker can.

        The event runs on an empty state of its own, and can start only work of share groups.
        """
        state = Groups.empty()._replace(topics=self._topics)
        event = event_with(NO_TOKEN)
        while True:
            [effect] = transition(state, event, self.config).effects
            if isinstance(effect, Reply):
                return effect.result
            assert isinstance(effect, Start) and isinstance(effect.work, ShareWork), effect
            event = await self._share_worker.outcome_of(effect.work)

    def rebalance_timeout_ms(self, group_id: str) -> int | None:
        """The longest rebalance timeout of the members of a classic group; None if no such group is here."""
        try:
            groups = self.shards.shard_of(self.partition_for(group_id)).state.groups
        except KafkaError:
            return None
        group = groups.get(group_id)
        return group.rebalance_timeout_ms if isinstance(group, ClassicGroup) else None

    async def list_all(self, event_with: Callable[[int], Event]) -> tuple[ErrorCode, list[Any]]:
        """Let every shard list its groups; see `Shards.list_all`."""
        return await self.shards.list_all(event_with)

    async def complete_transaction(self, partition: int, marker: Marker) -> ErrorCode:
        """Write a transaction's marker into a partition of `__consumer_offsets`."""
        try:
            error: ErrorCode = await self.shards.shard_of(partition).ask(
                lambda token: events.CompleteTransaction(token, marker)
            )
        except KafkaError as failure:
            # A transaction coordinator knows partitions and leaders, but not group coordinators.
            if failure.code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
            return failure.code
        return error

    # ---- the cluster's topics ----

    def set_topics(self, topics: TopicDirectory, changed: frozenset[str], *, has_new_topics: bool) -> None:
        """The cluster's topics have changed, at least those in `changed`."""
        self._topics = topics
        event = events.TopicsChanged(topics, changed, has_new_topics)
        self.shards.for_each(lambda shard: shard.tell(event))

    def forget_topics(self, deleted: Iterable[tuple[str, bytes]]) -> None:
        """Forget the offsets of deleted topics, given as (name, topic id)."""
        event = events.TopicsDeleted(tuple(deleted), self.now_ms())

        def tell(shard: GroupShard) -> None:
            try:
                shard.tell(event)
            except KafkaError:
                # Not worth failing a metadata update for: unread offsets expire, and a topic id tells old
                # from new.
                return

        self.shards.for_each(tell)

    # ---- shards ----

    def _new_shard(self, loaded: LoadedPartition[Groups]) -> GroupShard:
        partition = loaded.partition
        shard: GroupShard = Shard(
            loaded.state,
            ShardCore(self._transition, events.TimerFired, _refused_event),
            ShardPorts(
                append=partial(self._append, partition),
                scheduler=self._scheduler,
                start=lambda work: self._start(partition, work),
                installed=self._installed,
            ),
            written=loaded.written,
            committed=loaded.committed,
            commit_timeout_ms=self.config.offsets_commit_timeout_ms,
        )
        shard.tell(events.TopicsChanged(self._topics, frozenset(), False))
        shard.tell(events.Loaded(self.now_ms()))
        return shard

    def _transition(self, state: Groups, event: Event) -> Step[Groups]:
        return transition(state, event, self.config)

    def _installed(self, before: Groups, event: Event, step: Step[Groups]) -> None:
        self.counts.count_commit(event, step.records)
        group_id = None if step.state.groups is before.groups else group_of(event)
        if group_id is None:
            return
        self.counts.count_rebalance(before.groups.get(group_id), event, step.state.groups.get(group_id))
        for decision in decisions(before, event, step.state, self.config):
            self._tell(decision)
            logger.info("Group %s: %s", cut(group_id), cut(decision.text))

    def _append(self, partition: int, records: tuple[object, ...]) -> int:
        codec = self.config.offsets_topic_compression_codec
        return write(self._log, partition, records, now_ms=self.now_ms(), codec=codec)

    def _start(self, partition: int, work: object) -> None:
        if isinstance(work, ShareWork):
            self.shards.work.start(partition, self._do_share_work(partition, work))
            return
        assert isinstance(work, ResolveRegexes), work
        self.shards.work.start(partition, self._resolve(partition, work, self._topics))

    async def _do_share_work(self, partition: int, work: ShareWork) -> None:
        event = await self._share_worker.outcome_of(work)
        try:
            self.shards.shard_of(partition).tell(event)
        except KafkaError as error:
            # The partition cannot be written: the group will ask again for states not known to exist.
            logger.warning("Share group %s could not be told of an outcome: %s", event.group_id, error)

    async def _resolve(self, partition: int, work: ResolveRegexes, topics: TopicDirectory) -> None:
        resolved = await resolve(work, topics, self._run_blocking, self._describable)
        event = events.RegexesResolved(
            self.now_ms(), work.group_id, work.started_ms, topics.version, resolved
        )
        try:
            self.shards.shard_of(partition).tell(event)
        except KafkaError as error:
            # The partition is served by another broker: a later heartbeat will ask there.
            logger.warning("The topics of group %s could not be stored: %s", work.group_id, error)


def _refused_event(event: Event, error: KafkaError) -> Event | None:
    return refused_event(event, as_answered(error))
