"""The shell around a pure core: it appends the records of a transition, waits for the commit, then answers.

A core is a function `transition(state, event) -> Step`. The shell owns everything a core must not know: the
log (`append`), the commit offset, the callers that wait (futures, which the core knows as integer tokens),
and the timers. There is no task and no queue behind a shard: a transition runs inside the call that submits
its event, so an idle shard costs nothing and fifty of them cost fifty small objects.

The guarantees of the shell, which its tests check:

* A failed append installs nothing. The next state exists only after its records are in the log; the caller
  gets the error, all others keep waiting as before, and a timer whose append failed is delivered again a
  little later. Where others wait for the same records, `refused_event` tells the core that they were
  refused, and the core answers.
* An answer never overtakes an earlier write. A reply waits until everything appended before it, by any
  caller, has been committed, even when its own transition wrote nothing: no caller reads state that may still
  be lost.
* A commit that does not come fails the answers that wait for it after `commit_timeout_ms` with
  REQUEST_TIMED_OUT: their writes may still succeed. Replies that a core holds back itself (a parked
  JoinGroup) are not affected.
* Work that a core starts waits for the commit too, however long that takes: it never begins on the strength
  of records that may still be lost.
* Timers belong to the installed state, not to the commit: they are set and cancelled at once.

The owner rebuilds durable state: it folds `replay` over the log, builds the shard with the result and tells
it an event of its own ("loaded") so that the core can set its timers.

Single-threaded: every method is called on the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Hashable
from typing import Any, Generic, TypeVar, Union

from pykafka_broker.machine.scheduler import Handle, Scheduler
from pykafka_broker.machine.step import Reply, SetTimer, Start, Step
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.named_tuple import NamedTuple

State = TypeVar("State")
Event = TypeVar("Event")
Result = TypeVar("Result")

#: Tokens begin with 1.
NO_TOKEN = 0
#: The wait before a timer is delivered again when its records could not be appended.
TIMER_RETRY_MS = 500


class Prompt(Generic[Result]):
    """An answer that was there when it was asked for: `await` returns at once, and plain functions can read
    `result()`.
    """

    __slots__ = ("_result",)

    def __init__(self, result: Result) -> None:
        self._result = result

    def result(self) -> Result:
        return self._result

    def done(self) -> bool:
        return True

    def __await__(self) -> Generator[Any, Any, Result]:
        yield from ()
        return self._result


#: The result of `ask`: an answer that is ready, or a future for it.
Answer = Union[Prompt[Any], "asyncio.Future[Any]"]


def _failed(error: Exception) -> asyncio.Future[Any]:
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    answer.set_exception(error)
    return answer


def _never_refused(event: Any, error: KafkaError) -> None:
    """No caller but the sender of `event` waits for its records."""


class ShardCore(NamedTuple, Generic[State, Event]):
    """The pure core that a shard runs.

    `timer_event(key, now_ms)` builds the event that tells the core a timer has fired.
    `refused_event(event, error)` builds the event that tells the core that the records of `event` are not in
    the log; None where only the sender waits for them, who gets the error.
    """

    transition: Callable[[State, Event], Step[State]]
    timer_event: Callable[[Hashable, int], Event]
    refused_event: Callable[[Event, KafkaError], Event | None] = _never_refused


class ShardPorts(NamedTuple):
    """The log, the timers and the other work that a shard acts on.

    `append(records)` puts the records into the log as one atomic write and returns the log end offset after
    them; it may raise, and it may call `on_commit` before it returns (a log without followers commits at
    once). `start(work)` begins the work that a core has asked for; it must not call back before it returns.
    """

    append: Callable[[tuple[object, ...]], int]
    scheduler: Scheduler
    start: Callable[[object], None] | None = None


class Shard(Generic[State, Event]):
    """One core, one log, and the callers who wait for an answer.

    The log ends at `written` when the shard takes over, and is committed up to `committed`.
    """

    def __init__(
        self,
        state: State,
        core: ShardCore[State, Event],
        ports: ShardPorts,
        *,
        written: int = 0,
        committed: int = 0,
        commit_timeout_ms: int = 5_000,
    ) -> None:
        self.state = state
        self._transition, self._timer_event, self._refused_event = core
        self._append, self._scheduler, self._start = ports
        self._written = written
        self._committed = committed
        self._commit_timeout_ms = commit_timeout_ms
        self._parked: deque[_Parked] = deque()
        self._commit_check: Handle | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._timers: dict[Hashable, _Timer] = {}
        self._last_token = 0
        #: The token of the question that is being asked, until it is answered.
        self._asking = NO_TOKEN
        self._prompt_answer: object = None
        self._closed: Exception | None = None

    @property
    def waiting_count(self) -> int:
        """The number of callers that have not been answered yet."""
        return len(self._waiting)

    def ask(self, event_with: Callable[[int], Event]) -> Answer:
        """Submit an event that wants an answer; `event_with(token)` builds it; often answered at once."""
        self._last_token = token = self._last_token + 1
        self._asking = token
        try:
            self.tell(event_with(token))
        except Exception as error:
            self._asking = NO_TOKEN
            return _failed(error)
        if not self._asking:
            result = self._prompt_answer
            return _failed(result) if isinstance(result, Exception) else Prompt(result)
        self._asking = NO_TOKEN
        if self._closed is not None:
            return _failed(self._closed)
        answer = self._waiting[token] = asyncio.get_running_loop().create_future()
        return answer

    def tell(self, event: Event) -> None:
        """Submit an event; raises the error of a failed `append`, and then nothing has happened."""
        if self._closed is not None:
            raise self._closed
        step = self._transition(self.state, event)
        if step.records:
            try:
                self._written = self._append(step.records)
            except KafkaError as error:
                refused = self._refused_event(event, error)
                if refused is None:
                    raise
                self.tell(refused)
                return
        self.state = step.state
        for effect in step.effects:
            if isinstance(effect, (Reply, Start)):
                if self._parked or self._written > self._committed:
                    self._park(effect)
                elif isinstance(effect, Reply):
                    self._answer(effect.token, effect.result)
                else:
                    self._perform(effect)
            elif isinstance(effect, SetTimer):
                self._set_timer(effect.key, effect.at_ms)
            else:
                self._cancel_timer(effect.key)

    def on_commit(self, offset: int) -> None:
        """Everything below `offset` is committed: let the answers go that waited for it, in order."""
        if offset <= self._committed:
            return
        self._committed = offset
        while self._parked and self._parked[0].offset <= offset:
            self._perform(self._parked.popleft().effect)

    def close(self, error: Exception) -> None:
        """Answer every caller that waits with `error`, drop the timers, and refuse later events with it.

        Used when the partition moves away or its log has failed: records appended but not committed are
        then for the next owner to decide.
        """
        if self._closed is not None:
            return
        self._closed = error
        for timer in self._timers.values():
            timer.handle.cancel()
        self._timers.clear()
        self._parked.clear()
        if self._commit_check is not None:
            self._commit_check.cancel()
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            if not answer.done():
                answer.set_exception(error)

    def _park(self, effect: Reply | Start) -> None:
        due_ms = self._scheduler.now_ms() + self._commit_timeout_ms
        self._parked.append(_Parked(self._written, effect, due_ms))
        if self._commit_check is None and isinstance(effect, Reply):
            self._commit_check = self._scheduler.call_at(due_ms, self._fail_overdue)

    def _fail_overdue(self) -> None:
        self._commit_check = None
        now_ms = self._scheduler.now_ms()
        waiting, self._parked = self._parked, deque()
        for parked in waiting:
            if isinstance(parked.effect, Reply) and parked.due_ms <= now_ms:
                self._answer(parked.effect.token, KafkaError(ErrorCode.REQUEST_TIMED_OUT))
            else:
                self._parked.append(parked)
        due_ms = min(
            (parked.due_ms for parked in self._parked if isinstance(parked.effect, Reply)), default=None
        )
        if due_ms is not None:
            self._commit_check = self._scheduler.call_at(due_ms, self._fail_overdue)

    def _perform(self, effect: Reply | Start) -> None:
        if isinstance(effect, Start):
            assert self._start is not None, effect
            self._start(effect.work)
            return
        self._answer(effect.token, effect.result)

    def _answer(self, token: int, result: object) -> None:
        if token == self._asking:
            self._asking = NO_TOKEN
            self._prompt_answer = result
            return
        answer = self._waiting.pop(token, None)
        if answer is None or answer.done():  # a caller that went away has cancelled its future
            return
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)

    # A heartbeat moves the same timer a little further, thousands of times a second. So a later deadline is
    # only noted: the handle that is already scheduled fires at the old one, sees the new one and goes to
    # sleep again.

    def _set_timer(self, key: Hashable, at_ms: int) -> None:
        timer = self._timers.get(key)
        if timer is not None:
            timer.due_ms = at_ms
            if timer.armed_ms <= at_ms:
                return
            timer.handle.cancel()
        self._arm(key, at_ms)

    def _arm(self, key: Hashable, at_ms: int) -> None:
        timer = _Timer(at_ms)
        self._timers[key] = timer
        timer.handle = self._scheduler.call_at(at_ms, lambda: self._on_timer(key, timer))

    def _cancel_timer(self, key: Hashable) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.handle.cancel()

    def _on_timer(self, key: Hashable, timer: _Timer) -> None:
        if self._timers.get(key) is not timer:
            return
        if timer.due_ms > timer.armed_ms:
            self._arm(key, timer.due_ms)
            return
        del self._timers[key]
        now_ms = max(self._scheduler.now_ms(), timer.due_ms)
        try:
            self.tell(self._timer_event(key, now_ms))
        except Exception as error:
            # The state is as before, so the timer is as due as before; no caller waits for its outcome.
            self._arm(key, now_ms + TIMER_RETRY_MS)
            if not isinstance(error, KafkaError):
                raise


class _Parked(NamedTuple):
    """An effect that waits until everything below `offset` is committed, or until `due_ms`."""

    offset: int
    effect: Reply | Start
    due_ms: int


class _Timer:
    """When a key is due, and when its scheduled call will look (never later than that)."""

    __slots__ = ("armed_ms", "due_ms", "handle")

    handle: Handle

    def __init__(self, at_ms: int) -> None:
        self.armed_ms = self.due_ms = at_ms
