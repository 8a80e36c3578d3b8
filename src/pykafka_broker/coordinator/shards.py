"""All shards of one coordinator on this node: one for each partition of its topic that this node leads.

A group, or a transactional id, lives in the shard of partition `abs(hash(id)) % partitions`, with Java's
hash, so that every broker agrees. A shard exists while this broker leads its partition:

    unload ◀── NOT_COORDINATOR ── load(): COORDINATOR_LOAD_IN_PROGRESS ── served

Before the topic exists every broker answers NOT_COORDINATOR.

Requests find their shard here. `answer` does not raise: a client's error is in the shard's answer, and
without a shard `refused` builds the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from typing import Any, Generic, Protocol, TypeVar, Union

from pykafka_broker.coordinator.partition_work import PartitionWork
from pykafka_broker.machine.shard import Prompt, Shard
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.java_hash import string_hash_abs
from pykafka_broker.system.named_tuple import NamedTuple

State = TypeVar("State")
StateOut = TypeVar("StateOut", covariant=True)
Event = TypeVar("Event")
Answer = TypeVar("Answer")

#: A load gives the event loop a turn after this many records.
RECORDS_PER_TURN = 2_000


class Loader(Protocol[StateOut]):
    """Reads a log from its start into a state."""

    end_offset: int

    def add(self, batches: Buffer) -> int:
        """Take in whole batches; returns how many records there were."""
        ...

    def digest(self, count: int) -> bool:
        """Decode about `count` of the records added; True once none is left. After that none may be added."""
        ...

    def state(self) -> StateOut:
        """The state that the log leads to."""
        ...


class LoadedPartition(NamedTuple, Generic[State]):
    """A partition that has been read to its end: the start of a shard."""

    partition: int
    leader_epoch: int
    state: State
    #: The log end offset.
    written: int
    #: Everything below this offset is committed.
    committed: int


class _Loading(Generic[State, Event]):
    """A partition whose log is being read, and the actions that wait for its shard.

    Without a `high_watermark` everything in the log counts as committed.
    """

    def __init__(self, leader_epoch: int, high_watermark: int | None) -> None:
        self.leader_epoch = leader_epoch
        self.has_high_watermark = high_watermark is not None
        self.high_watermark = high_watermark or 0
        self.afterwards: list[Callable[[Shard[State, Event]], None]] = []
        #: Done when the partition is served, or was unloaded.
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_high_watermark(self, offset: int) -> None:
        """Everything below `offset` is committed."""
        self.high_watermark = max(self.high_watermark, offset)


class Shards(Generic[State, Event]):
    """Routes questions to the shard of an id, and makes shards from logs.

    `new_loader()` reads a log; `new_shard(loaded)` makes a shard of it and tells it that it has been loaded.
    """

    def __init__(
        self,
        new_loader: Callable[[], Loader[State]],
        new_shard: Callable[[LoadedPartition[State]], Shard[State, Event]],
    ) -> None:
        #: Work that shards have started; it ends with its shard.
        self.work = PartitionWork()
        self._new_loader = new_loader
        self._new_shard = new_shard
        self._partition_count = 0
        self._partitions: dict[int, Union[Shard[State, Event], _Loading[State, Event]]] = {}

    # ---- questions ----

    def answer(
        self,
        key: str,
        event_with: Callable[[int], Event],
        *,
        refused: Callable[[KafkaError], Answer],
    ) -> Prompt[Answer] | Awaitable[Answer]:
        """Let the shard of an id answer the event that `event_with(token)` builds.

        `refused(error)` builds the answer if there is no such shard, or if its log refuses the records;
        `error` has the code for the client.
        """
        try:
            answer = self.shard_of(self.partition_for(key)).ask(event_with)
        except KafkaError as error:
            return Prompt(refused(as_answered(error)))
        return answer if isinstance(answer, Prompt) else _or_refused(answer, refused)

    async def list_all(self, event_with: Callable[[int], Event]) -> tuple[ErrorCode, list[Any]]:
        """Let every shard answer, each with lines of a list: the error, or all lines.

        While a partition is being read the list would not be complete: COORDINATOR_LOAD_IN_PROGRESS. A
        partition that moves away before it has answered is left out.
        """
        lines: list[Any] = []
        try:
            shards = self._all_loaded()
        except KafkaError as error:
            return error.code, []
        for shard in shards:
            try:
                lines += await shard.ask(event_with)
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_COORDINATOR:
                    return as_answered(error).code, []
        return ErrorCode.NONE, lines

    # ---- partitions ----

    def set_partition_count(self, count: int) -> None:
        """Say how many partitions the topic has; 0 while there is no such topic."""
        self._partition_count = count

    def partition_for(self, key: str) -> int:
        """The partition an id belongs to.

        Raises:
            KafkaError: NOT_COORDINATOR while there is no topic.

        """
        if not self._partition_count:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return string_hash_abs(key) % self._partition_count

    def load(
        self,
        partition: int,
        batches: Iterable[Buffer] | AsyncIterator[Buffer],
        *,
        leader_epoch: int,
        high_watermark: int | None = None,
    ) -> Coroutine[Any, Any, bool]:
        """Read the log of a partition, then serve it; requests get COORDINATOR_LOAD_IN_PROGRESS meanwhile.

        The awaited result is False if the partition was unloaded or loaded again meanwhile: this load then
        serves nothing, and errors of its log are ignored.

        `batches` yields buffers of whole record batches, from the log's start to its end. `high_watermark` is
        needed where the log's end may not be committed yet; answers then wait until it is.

        Raises:
            KafkaError, ProtocolError: the log cannot be understood; the partition is not served.

        """
        self.unload(partition)
        loading: _Loading[State, Event] = _Loading(leader_epoch, high_watermark)
        self._partitions[partition] = loading
        return self._load(partition, batches, loading)

    async def _load(
        self,
        partition: int,
        batches: Iterable[Buffer] | AsyncIterator[Buffer],
        loading: _Loading[State, Event],
    ) -> bool:
        loader = self._new_loader()
        try:
            unpaused = 0
            async for buffer in _each(batches):
                if loading.over.done():
                    return False
                unpaused += loader.add(buffer)
                if unpaused >= RECORDS_PER_TURN:
                    unpaused = 0
                    await let_others_run()
            while not (loading.over.done() or loader.digest(RECORDS_PER_TURN)):
                await let_others_run()
            if loading.over.done():
                return False
            written = loader.end_offset
            committed = loading.high_watermark if loading.has_high_watermark else written
            shard = self._new_shard(
                LoadedPartition(partition, loading.leader_epoch, loader.state(), written, committed)
            )
        except BaseException as error:
            if not loading.over.done():
                self.unload(partition)
            elif isinstance(error, Exception):
                return False
            raise
        self._partitions[partition] = shard
        loading.over.set_result(None)
        for action in loading.afterwards:
            action(shard)
        return True

    async def loaded(self, partition: int) -> None:
        """Return when this partition is not being loaded."""
        while isinstance(loading := self._partitions.get(partition), _Loading):
            await asyncio.shield(loading.over)

    def unload(self, partition: int) -> None:
        """Stop serving a partition: all waiting calls get NOT_COORDINATOR."""
        found = self._partitions.pop(partition, None)
        if isinstance(found, Shard):
            found.close(KafkaError(ErrorCode.NOT_COORDINATOR))
        elif found is not None:
            found.over.set_result(None)
        self.work.cancel(partition)

    def close(self) -> None:
        """Stop serving all partitions."""
        for partition in tuple(self._partitions):
            self.unload(partition)

    @property
    def loaded_partitions(self) -> frozenset[int]:
        """The partitions that are served."""
        return frozenset(p for p, shard in self._partitions.items() if isinstance(shard, Shard))

    def on_high_watermark(self, partition: int, offset: int) -> None:
        """Everything below `offset` of a partition is committed."""
        shard = self._partitions.get(partition)
        if isinstance(shard, Shard):
            shard.on_commit(offset)
        elif shard is not None:
            shard.on_high_watermark(offset)

    def for_each(self, action: Callable[[Shard[State, Event]], None]) -> None:
        """Call `action` with every shard: now, or at the end of its load."""
        for shard in tuple(self._partitions.values()):
            if isinstance(shard, Shard):
                action(shard)
            else:
                shard.afterwards.append(action)

    def shard_of(self, partition: int) -> Shard[State, Event]:
        """The shard of a partition.

        Raises:
            KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.

        """
        shard = self._partitions.get(partition)
        if isinstance(shard, Shard):
            return shard
        loading = shard is not None
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NOT_COORDINATOR)

    def _all_loaded(self) -> tuple[Shard[State, Event], ...]:
        """Every shard.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS if a partition is still being read.

        """
        shards = tuple(self._partitions.values())
        if any(not isinstance(shard, Shard) for shard in shards):
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return tuple(shard for shard in shards if isinstance(shard, Shard))


async def _or_refused(answer: Awaitable[Answer], refused: Callable[[KafkaError], Answer]) -> Answer:
    try:
        return await answer
    except KafkaError as error:
        return refused(as_answered(error))


_ANSWERED = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def as_answered(error: KafkaError) -> KafkaError:
    """The error that a coordinator's client gets for `error` of the log."""
    return KafkaError(_ANSWERED.get(error.code, error.code), error.message)


async def let_others_run() -> None:
    """Give the event loop a turn."""
    await asyncio.sleep(0)


async def _each(buffers: Iterable[Buffer] | AsyncIterator[Buffer]) -> AsyncIterator[Buffer]:
    if isinstance(buffers, AsyncIterator):
        async for buffer in buffers:
            yield buffer
    else:
        for buffer in buffers:
            yield buffer
