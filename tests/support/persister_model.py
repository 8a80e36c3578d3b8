"""A persister of share states under everything that can happen to it, by seed, beside a model that is too
simple to be wrong: the questions about each share partition in the order in which they came, and how often
each was asked in vain.

This node coordinates some share partitions, other brokers coordinate the rest. Callers ask and go away,
coordinators move, die and come back, answers are late, refuse, leave a partition out or get lost after the
deed is done. What must hold:

* A question about a share partition is not asked before the one before it is answered or given up.
* The coordinator of the newest metadata is asked, if it is alive, and one request of a kind at a time is on
  its way to it for each group, in which no share partition is twice.
* Between two attempts is the pause that is due, unless coordinators may have moved; then there is none.
* A caller is told what the coordinator said to this question, or that five attempts in a row were in vain.
* When all is well again every caller has an answer, and nobody stands in line.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from itertools import count
from random import Random
from typing import Any

from pykafka_broker.coordinator.share.core.events import ReadResult, SummaryResult
from pykafka_broker.coordinator.share.persister import NO_COORDINATOR, Persister, ShareMap
from pykafka_broker.coordinator.share.remote_states import RemoteStates
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.protocol.errors import ErrorCode, ProtocolError
from pykafka_broker.protocol.messages import delete_share_group_state as deleting
from pykafka_broker.protocol.messages import initialize_share_group_state as initializing
from pykafka_broker.protocol.messages import read_share_group_state as reading
from pykafka_broker.protocol.messages import read_share_group_state_summary as summing
from pykafka_broker.protocol.messages import write_share_group_state as writing
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from pykafka_broker.testing.clock import settle
from tests.support.share_coordinator import PARTITIONS, TOPIC, Coordinator

HERE, BROKERS = 0, (1, 2)
#: By whether this node coordinates them.
HERE_KEYS = [SharePartitionKey("here", TOPIC, partition) for partition in range(3)]
OTHER_KEYS = [SharePartitionKey(group, TOPIC, partition) for group in "gh" for partition in range(2)]
#: About these only summaries are asked, several at a time.
SUMMARY_KEYS = [SharePartitionKey("s", TOPIC, partition) for partition in range(2)]
PASSING = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
)
ATTEMPTS = 5
LOST = {OSError: ErrorCode.NETWORK_EXCEPTION, ProtocolError: ErrorCode.NETWORK_EXCEPTION}
LOST |= {TimeoutError: ErrorCode.REQUEST_TIMED_OUT}
MODULES = {
    initializing.InitializeShareGroupStateRequest: (initializing, "initialize"),
    reading.ReadShareGroupStateRequest: (reading, "read"),
    writing.WriteShareGroupStateRequest: (writing, "write"),
    deleting.DeleteShareGroupStateRequest: (deleting, "delete"),
    summing.ReadShareGroupStateSummaryRequest: (summing, "summary"),
}
STATE_EPOCH = 1
NO_SUMMARY = (0, 0, -1, -1)
#: What a coordinator has said, beside errors and contents.
DONE, LEFT_OUT = "done", "left out"


class Asked:
    """A question, and what became of it so far."""

    def __init__(self, key: SharePartitionKey, kind: str, marker: int, leader_epoch: int = -1) -> None:
        #: The marker is in the request, as an offset or an epoch, unless it deletes.
        self.key, self.kind, self.marker = key, kind, marker
        #: Of a write.
        self.leader_epoch = leader_epoch
        #: Where it is asked; what the model knows from the beginning is asked nowhere.
        self.task: asyncio.Task[Any]
        self.is_cancelled = False
        #: Attempts in vain before the one that runs: look-ups since a coordinator was found, and requests.
        self.lookups = self.requests = 0
        #: When it was last asked, or looked for in vain; None before.
        self.at_ms: int | None = None
        #: The last look-up has found a coordinator.
        self.has_found = False
        #: It was loading then, and still is.
        self.waits_for_load = False
        #: Coordinators may have moved since the last attempt.
        self.has_news = False
        #: What the coordinator has said last: an error, or the answer's content.
        self.told: Any = None

    def __repr__(self) -> str:
        return f"{self.kind} {self.marker} of {self.key}"

    @property
    def is_over(self) -> bool:
        return self.is_cancelled or self.task.done()

    def in_vain(self) -> tuple[int, int]:
        """The attempts in vain if the one that runs was one."""
        return (0, self.requests + 1) if self.has_found else (self.lookups + 1, self.requests)


class States:
    """What share coordinators know, too simple to be wrong. An answer is an error, or what it says."""

    def __init__(self) -> None:
        #: The start offset, and the epoch of the leader.
        self._by_key: dict[SharePartitionKey, tuple[int, int]] = {}
        #: The highest epoch of a leader, of those that were initialised and not deleted since.
        self._highest: dict[SharePartitionKey, int] = {}

    def take(self, asked: Asked) -> Any:
        key, marker = asked.key, asked.marker
        start_offset, leader_epoch = self._by_key.get(key, (-1, 0))
        match asked.kind:
            case "initialize":
                self._by_key[key] = marker, 0
                self._highest.setdefault(key, 0)
                return DONE
            case "delete":
                self._by_key.pop(key, None)
                self._highest.pop(key, None)
                return DONE
            case "summary":
                return (STATE_EPOCH, leader_epoch, start_offset, 0) if key in self._by_key else NO_SUMMARY
        if key not in self._by_key:
            return ErrorCode.INVALID_REQUEST
        if asked.kind == "read":
            self._by_key[key] = start_offset, marker
            self._highest[key] = marker
            return STATE_EPOCH, start_offset
        if asked.leader_epoch != -1 and asked.leader_epoch < self._highest[key]:
            return ErrorCode.FENCED_LEADER_EPOCH
        self._by_key[key] = marker, leader_epoch
        return DONE


class Brokers:
    """The other brokers: their answers are late, and at times wrong or lost."""

    def __init__(self, model: PersisterModel) -> None:
        self._model = model
        self.dead: set[int] = set()
        self.states = States()
        #: How often something goes wrong.
        self.trouble = 0.3
        self._asking: set[tuple[int, str, str]] = set()

    @property
    def is_busy(self) -> bool:
        """Whether answers are on their way."""
        return bool(self._asking)

    def is_reachable(self, broker_id: int) -> bool:
        return broker_id in BROKERS and broker_id not in self.dead

    async def ask(self, broker_id: int, request: Any, *, lowest_version: int = 0) -> Any:
        module, kind = MODULES[type(request)]
        random, exchange = self._model.random, (broker_id, kind, request.group_id)
        assert exchange not in self._asking, f"two requests at a time: {exchange}"
        self._asking.add(exchange)
        try:
            await self._model.clock.sleep(random.choice([0, 0, 1, 300, 1_500]))
            return self._answered(broker_id, module, kind, request)
        finally:
            self._asking.discard(exchange)

    def _answered(self, broker_id: int, module: Any, kind: str, request: Any) -> Any:
        random = self._model.random
        lost = random.choice(list(LOST)) if random.random() < self.trouble / 3 else None
        is_lost_before = random.random() < 0.5
        keys: set[SharePartitionKey] = set()
        results = []
        for topic in request.topics:
            found = []
            for each in topic.partitions:
                key = SharePartitionKey(request.group_id, topic.topic_id, each.partition)
                assert key not in keys, f"{key} is twice in a request"
                keys.add(key)
                asked = self._model.asked_by(key, kind, each)
                if lost is not None and is_lost_before:
                    asked.told = LOST[lost]
                    continue
                asked.told = self._told(broker_id, asked)
                if lost is not None:
                    asked.told = LOST[lost]
                elif asked.told is not LEFT_OUT:
                    found.append(partition_result(module, asked))
            name = type(request).__name__.removesuffix("Request").replace("ShareGroupState", "State")
            results.append(getattr(module, f"{name}Result")(topic_id=topic.topic_id, partitions=found))
        if lost is not None:
            raise lost("no answer")
        return getattr(module, type(request).__name__.replace("Request", "Response"))(results=results)

    def _told(self, broker_id: int, asked: Asked) -> Any:
        random = self._model.random
        if self._model.leaders[asked.key] != broker_id:
            return ErrorCode.NOT_COORDINATOR
        if random.random() < self.trouble:
            return random.choice(PASSING)
        if random.random() < self.trouble / 10:
            return LEFT_OUT
        return self.states.take(asked)


def partition_result(module: Any, asked: Asked) -> Any:
    """What the coordinator has said, as a part of a response."""
    said: dict[str, Any] = {}
    told = asked.told
    error = told if isinstance(told, ErrorCode) else ErrorCode.NONE
    if module is reading:
        state_epoch, start_offset = (0, 0) if error else told
        said = {"state_epoch": state_epoch, "start_offset": start_offset, "state_batches": []}
    if module is summing:
        names = "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count"
        said = dict(zip(names, NO_SUMMARY if error else told, strict=True))
    return module.PartitionResult(
        partition=asked.key.partition, error_code=int(error), error_message=None, **said
    )


class PersisterModel:
    """The node, the other brokers, the model, and the dice."""

    def __init__(self, seed: int, coordinator: Coordinator) -> None:
        self.random = Random(seed)
        self.coordinator = coordinator
        self.clock = coordinator.clock
        self.brokers = Brokers(self)
        self.leaders = dict.fromkeys(HERE_KEYS, HERE)
        self.leaders |= {key: self.random.choice(BROKERS) for key in OTHER_KEYS + SUMMARY_KEYS}
        self.has_topic = True
        #: The questions of each share partition that are not answered, in their order.
        self.lines: dict[SharePartitionKey, list[Asked]] = {key: [] for key in self.leaders}
        self.states_here = States()
        for marker, key in enumerate(SUMMARY_KEYS):
            self.brokers.states.take(Asked(key, "initialize", marker))
        #: What was seen, to know that the dice reach everything.
        self.seen: set[str] = set()
        self._markers = count(1)
        self._asked: dict[int, Asked] = {}
        self._partitions = {key: coordinator.service.partition_for(key) for key in HERE_KEYS}
        self._readers: set[asyncio.Task[bool]] = set()
        #: The load of each partition of this node's coordinator that is served or being loaded.
        self._loads: dict[int, asyncio.Task[bool]] = {}
        #: Nobody coordinates it, and the topic is there: the metadata is looked at once more.
        self._looks_again: SharePartitionKey | None = None
        timers = WallTimers(self.clock)
        self.persister = Persister(
            coordinator.service,
            RemoteStates(self.brokers, timers.now_ms),
            ShareMap(HERE, self.coordinator_of, lambda topic_id: 4, self.ensure_topic),
            timers,
        )

    @classmethod
    async def life(cls, seed: int, steps: int) -> PersisterModel:
        model = cls(seed, await Coordinator.serving())
        try:
            await model.run(steps)
        finally:
            await model.close()
        return model

    async def close(self) -> None:
        """Leave no task behind."""
        tasks = [*self._readers, *(asked.task for line in self.lines.values() for asked in line)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def run(self, steps: int) -> None:
        kinds = {
            self.ask: 40,
            self.time_passes: 30,
            self.a_coordinator_moves: 6,
            self.a_coordinator_is_missing: 4,
            self.a_broker_dies_or_comes_back: 4,
            self.news_of_coordinators: 5,
            self.a_partition_here_moves: 12,
            self.a_caller_goes_away: 3,
            self.trouble_changes: 3,
            self.the_topic_goes_or_comes: 2,
        }
        for step in self.random.choices(list(kinds), list(kinds.values()), k=steps):
            await step()
            await self.check()
        await self.all_is_well()

    # ---- what happens ----

    async def ask(self) -> None:
        key = self.random.choice(list(self.leaders))
        kinds = ["summary"] if key in SUMMARY_KEYS else ["initialize", "read", "write", "write", "delete"]
        leader_epoch = self.random.choice([-1, -1, -1, 0])
        asked = Asked(key, self.random.choice(kinds), next(self._markers), leader_epoch)
        self._asked[asked.marker] = asked
        self.lines[key].append(asked)
        asked.task = asyncio.ensure_future(self._question(asked))

    def _question(self, asked: Asked) -> Coroutine[Any, Any, Any]:
        persister, key, marker = self.persister, asked.key, asked.marker
        match asked.kind:
            case "initialize":
                return persister.initialize(key, state_epoch=STATE_EPOCH, start_offset=marker)
            case "read":
                return persister.read(key, leader_epoch=marker)
            case "write":
                return persister.write(
                    key,
                    state_epoch=-1,
                    leader_epoch=asked.leader_epoch,
                    start_offset=marker,
                    delivery_complete_count=0,
                    batches=(),
                )
            case "delete":
                return persister.delete(key)
        return persister.read_summary(key, leader_epoch=marker)

    async def time_passes(self) -> None:
        await self.clock.pass_time(self.random.choice([1, 100, 1_000, 2_000, 5_000, 20_000]))

    async def a_coordinator_moves(self) -> None:
        key = self.random.choice(OTHER_KEYS + SUMMARY_KEYS)
        self.leaders[key] = self.random.choice(BROKERS)

    async def a_coordinator_is_missing(self) -> None:
        self.leaders[self.random.choice(list(self.leaders))] = NO_COORDINATOR

    async def a_broker_dies_or_comes_back(self) -> None:
        self.brokers.dead ^= {self.random.choice(BROKERS)}

    async def news_of_coordinators(self) -> None:
        """Whatever waits for its next attempt makes it now."""
        # An answer is not told before those of all groups have come: nobody knows who waits meanwhile.
        while self.brokers.is_busy:
            await self.clock.pass_time(100)
            await self.check()
        waiting = [asked for asked in self.heads() if self.is_paused(asked)]
        for asked in waiting:
            asked.has_news = True
        self.persister.look_again()
        await settle(20)
        for asked in waiting:
            assert not asked.has_news, f"{asked} goes on waiting"
            self.seen.add("cut short")

    async def a_partition_here_moves(self) -> None:
        shards, partition = self.coordinator.shards, self.random.choice(list(self.coordinator.logs))
        shards.unload(partition)
        self._loads.pop(partition, None)
        if self.random.random() < 0.8:
            loading = shards.load(partition, self._read_slowly(partition), leader_epoch=0)
            self._loads[partition] = asyncio.ensure_future(loading)
            self._readers.add(self._loads[partition])

    async def _read_slowly(self, partition: int) -> AsyncIterator[bytes]:
        await self.clock.sleep(self.random.choice([0, 500, 4_000]))
        for batch in self.coordinator.left(partition):
            yield batch

    async def a_caller_goes_away(self) -> None:
        await settle(20)
        heads = self.heads()
        callers = [
            asked
            for line in self.lines.values()
            for asked in line
            # A deletion without a caller could not be told from another.
            if not asked.task.done() and not (asked.kind == "delete" and asked in heads)
        ]
        if callers:
            asked = self.random.choice(callers)
            asked.is_cancelled = True
            asked.task.cancel()
            await settle(20)
            self.seen.add("gone away")

    async def trouble_changes(self) -> None:
        self.brokers.trouble = self.random.choice([0.0, 0.0, 0.3, 0.9])

    async def the_topic_goes_or_comes(self) -> None:
        self.has_topic = not self.has_topic
        self.coordinator.shards.set_partition_count(PARTITIONS if self.has_topic else 0)

    async def all_is_well(self) -> None:
        self.has_topic, self.brokers.trouble, self.brokers.dead = True, 0.0, set()
        self.coordinator.shards.set_partition_count(PARTITIONS)
        for key, leader in self.leaders.items():
            if leader == NO_COORDINATOR:
                self.leaders[key] = HERE if key in HERE_KEYS else BROKERS[0]
        await self.coordinator.load_all()
        for _ in range(200):
            await self.clock.pass_time(2_000)
            await self.check()
        left = [asked for line in self.lines.values() for asked in line]
        assert not left, f"without an answer: {left}"
        assert self.persister.questions_in_line == 0

    # ---- what the persister asks of the metadata ----

    def coordinator_of(self, key: SharePartitionKey) -> int:
        """The newest metadata; what is looked for is a new attempt."""
        leader = self.leaders[key]
        is_second_look, self._looks_again = self._looks_again == key, None
        if leader == NO_COORDINATOR and self.has_topic and not is_second_look:
            self._looks_again = key
        if key not in SUMMARY_KEYS:
            self._attempted(self.head(key), leader, is_second_look=is_second_look)
        return leader

    async def ensure_topic(self) -> bool:
        """The topic is there, or cannot be created. Where it is, a leader is found soon."""
        key = self._looks_again
        if key is not None and self.random.random() < 0.5:
            self.leaders[key] = HERE if key in HERE_KEYS else self.random.choice(BROKERS)
        return self.has_topic

    def _attempted(self, asked: Asked, leader: int, *, is_second_look: bool) -> None:
        now_ms = self.clock.monotonic_ms()
        if not is_second_look and asked.at_ms is not None:
            if asked.has_found and asked.key not in HERE_KEYS:
                assert asked.told in PASSING, f"{asked} is asked again after {asked.told}"
            lookups, requests = asked.in_vain()
            attempts = lookups or requests
            assert attempts < ATTEMPTS, f"{asked} is asked too often"
            if not asked.has_news:
                pause_ms = 1_000 << attempts
                assert now_ms >= asked.at_ms + pause_ms, f"{asked} is asked too soon"
                asked.lookups, asked.requests = lookups, requests
                self.seen.add("in vain")
        asked.waits_for_load = asked.key in HERE_KEYS and self.has_topic and self.is_loading(asked.key)
        asked.has_news = False
        asked.told = None
        asked.at_ms = now_ms
        asked.has_found = leader == HERE or self.brokers.is_reachable(leader)

    # ---- what must hold ----

    def head(self, key: SharePartitionKey) -> Asked:
        """The question about a share partition whose turn it is."""
        return next(asked for asked in self.lines[key] if not asked.is_over)

    def heads(self) -> list[Asked]:
        found = []
        for key, line in self.lines.items():
            if key not in SUMMARY_KEYS and any(not asked.is_over for asked in line):
                found.append(self.head(key))
        return found

    def is_paused(self, asked: Asked) -> bool:
        """Whether the last attempt was in vain, and the next one is not due yet."""
        if not asked.has_found:
            return True
        return not asked.waits_for_load if asked.key in HERE_KEYS else asked.told in PASSING

    def is_loading(self, key: SharePartitionKey) -> bool:
        """Whether this node's coordinator of a share partition is being loaded."""
        load = self._loads.get(self._partitions[key])
        return load is not None and not load.done()

    def asked_by(self, key: SharePartitionKey, kind: str, partition: Any) -> Asked:
        """The question that has come to a broker. Whoever asked it waits for the answer, or has gone."""
        if kind == "delete":
            asked = self.head(key)
        else:
            asked = self._asked[
                partition.start_offset if kind in ("initialize", "write") else partition.leader_epoch
            ]
        assert (asked.key, asked.kind) == (key, kind), f"{asked} is asked as {kind} of {key}"
        if key not in SUMMARY_KEYS and not asked.is_cancelled:
            assert asked is self.head(key), f"{asked} is asked before {self.head(key)}"
        asked.at_ms = self.clock.monotonic_ms()
        return asked

    async def check(self) -> None:
        """Judge the answers that have come."""
        await settle(20)
        assert self._looks_again is None, f"{self._looks_again} is not looked for again"
        for asked in self.heads():
            asked.waits_for_load = asked.waits_for_load and self.is_loading(asked.key)
        for key, line in self.lines.items():
            over = [asked for asked in line if asked.is_over]
            if key not in SUMMARY_KEYS:
                first = next((at for at, asked in enumerate(line) if not asked.is_over), len(line))
                overtaken = [asked for asked in line[first:] if asked.is_over and not asked.is_cancelled]
                assert not overtaken, f"{line[first]} is overtaken by {overtaken}"
            for asked in over:
                line.remove(asked)
                if not asked.is_cancelled:
                    self.judge(asked)

    def judge(self, asked: Asked) -> None:
        """An answer is what the coordinator has said, or tells that all attempts were in vain."""
        assert asked.task.exception() is None, f"{asked}: {asked.task.exception()!r}"
        answer = asked.task.result()
        refusal = answer.refusal
        is_counted = asked.key not in SUMMARY_KEYS
        lookups, requests = asked.in_vain()
        if refusal is not None and "find coordinator" in refusal.message:
            assert refusal.error is ErrorCode.COORDINATOR_NOT_AVAILABLE, refusal
            assert not is_counted or lookups == ATTEMPTS, f"{asked} is given up too soon"
            self.seen.add("not found")
        elif refusal is not None and refusal.error in PASSING:
            assert asked.key in HERE_KEYS or asked.told is refusal.error, f"{asked}: {asked.told}, {refusal}"
            assert not is_counted or requests == ATTEMPTS, f"{asked} is given up too soon"
            self.seen.add("refused again and again")
        else:
            told = self.states_here.take(asked) if asked.key in HERE_KEYS else asked.told
            told = ErrorCode.UNKNOWN_SERVER_ERROR if told == LEFT_OUT else told
            answered = content_of(answer) if refusal is None else refusal.error
            assert answered == told, f"{asked}: {answered} instead of {told}"
            self.seen.add("refused" if refusal else "answered")


def content_of(answer: Any) -> Any:
    """What an answer says that is no refusal."""
    if isinstance(answer, ReadResult):
        assert not answer.batches
        return answer.state_epoch, answer.start_offset
    return tuple(answer[1:]) if isinstance(answer, SummaryResult) else DONE
