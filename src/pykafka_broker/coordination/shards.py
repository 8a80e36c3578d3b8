"""All shards of one coordinator on this node: one for each partition of its topic that is led here.

What belongs to the coordinator (a group, a transactional id) lives in the shard of partition
`abs(hash(id)) % partitions`, with Java's hash, so that every broker agrees. A shard exists while its
partition is led by this broker:

    unload ◀── NOT_COORDINATOR ── load(): COORDINATOR_LOAD_IN_PROGRESS ── served

Before the topic exists nobody is anything's coordinator: NOT_COORDINATOR.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar, Union

from pykafka_broker.machine.shard import Shard
from pykafka_broker.protocol.compile import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.java_hash import string_hash_abs

State = TypeVar("State")
StateOut = TypeVar("StateOut", covariant=True)
Event = TypeVar("Event")

#: A load gives the event loop a turn after this many records.
RECORDS_PER_TURN = 2_000


class Loader(Protocol[StateOut]):
    """Reads a log from its start into a state."""

    end_offset: int

    def add(self, batches: Buffer) -> int:
        """Take in whole batches; returns how many records there were."""
        ...

    def digest(self, count: int) -> bool:
        """Work on what was added for about `count` records; True once nothing is left. Then nothing may be
        added.
        """
        ...

    def state(self) -> StateOut:
        """What the log leads to."""
        ...


class _Loading(Generic[State, Event]):
    """A partition whose log is being read, and what its shard is to be told afterwards."""

    def __init__(self) -> None:
        self.high_watermark = 0
        self.afterwards: list[Callable[[Shard[State, Event]], None]] = []


class Shards(Generic[State, Event]):
    """Finds the shard of an id, and makes shards from logs.

    `new_loader()` reads a log; `new_shard(partition, state, written, committed)` makes a shard of what it
    found and tells it that it has been loaded.
    """

    def __init__(
        self,
        *,
        new_loader: Callable[[], Loader[State]],
        new_shard: Callable[[int, State, int, int], Shard[State, Event]],
    ) -> None:
        self._new_loader = new_loader
        self._new_shard = new_shard
        self._partition_count = 0
        self._partitions: dict[int, Union[Shard[State, Event], _Loading[State, Event]]] = {}

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

    async def load(
        self,
        partition: int,
        batches: Iterable[Buffer] | AsyncIterator[Buffer],
        *,
        high_watermark: int | None = None,
    ) -> None:
        """Serve a partition from now on, after reading its log.

        `batches` yields buffers of whole record batches, from the log's start to its end. `high_watermark` is
        needed where the log's end may not be committed yet; answers then wait until it is.

        Raises:
            KafkaError, ProtocolError: the log cannot be understood; the partition is not served.

        """
        self.unload(partition)
        loading: _Loading[State, Event] = _Loading()
        self._partitions[partition] = loading
        loader = self._new_loader()
        try:
            unpaused = 0
            async for buffer in _each(batches):
                if self._partitions.get(partition) is not loading:
                    return  # unloaded, or loaded once more, meanwhile
                unpaused += loader.add(buffer)
                if unpaused >= RECORDS_PER_TURN:
                    unpaused = 0
                    await let_others_run()
            while not loader.digest(RECORDS_PER_TURN):
                await let_others_run()
            state = loader.state()
        except BaseException:
            if self._partitions.get(partition) is loading:
                del self._partitions[partition]
            raise
        if self._partitions.get(partition) is not loading:
            return
        committed = loader.end_offset if high_watermark is None else high_watermark
        shard = self._new_shard(partition, state, loader.end_offset, max(committed, loading.high_watermark))
        self._partitions[partition] = shard
        for action in loading.afterwards:
            action(shard)

    def unload(self, partition: int) -> None:
        """Stop serving a partition: everybody who waits is told to look for the coordinator again."""
        shard = self._partitions.pop(partition, None)
        if isinstance(shard, Shard):
            shard.close(KafkaError(ErrorCode.NOT_COORDINATOR))

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
            shard.high_watermark = offset

    def for_each(self, action: Callable[[Shard[State, Event]], None]) -> None:
        """Do something with every shard: now, or, where the log is still being read, when that is done."""
        for shard in tuple(self._partitions.values()):
            if isinstance(shard, Shard):
                action(shard)
            else:
                shard.afterwards.append(action)

    def all_loaded(self) -> tuple[Shard[State, Event], ...]:
        """Every shard.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS if one is not ready, for then all would not be all.

        """
        shards = tuple(self._partitions.values())
        if any(not isinstance(shard, Shard) for shard in shards):
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return tuple(shard for shard in shards if isinstance(shard, Shard))

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

    def shard_for(self, key: str) -> Shard[State, Event]:
        """The shard of an id.

        Raises:
            KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.

        """
        return self.shard_of(self.partition_for(key))

    async def ask(self, key: str, event_with: Callable[[int], Event]) -> Any:
        """Let the shard of an id answer; `event_with(token)` builds the question.

        Raises:
            KafkaError: with the code a client is to see.

        """
        try:
            return await self.shard_for(key).ask(event_with)
        except KafkaError as error:
            raise as_answered(error) from None


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
    """What a client is told when the log says `error`: a client of the coordinator knows no log."""
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
