"""The shell around a pure core: it appends the records of a transition, waits for the commit, then answers.

A core is a function `transition(state, event) -> Step`. The shell owns everything that a core must not know:
the log (`append`), the commit offset, the waiting callers (futures, which the core knows as integer tokens),
and the timers. A shard has no task and no queue: a transition runs inside the call that submits its event, so
an idle shard costs nothing but a small object.

The guarantees of the shell, which its tests check:

* A failed append installs nothing. The next state exists only after its records are in the log. The caller
  gets the error, and all others keep waiting. A timer whose append failed is delivered again after
  `TIMER_RETRY_MS`. If several callers wait for the same records, `refused_event` tells the core that the
  records were refused, and the core answers.
* An answer never overtakes an earlier write. A reply waits until everything appended before it, by any
  caller, has been committed, even if its own transition wrote nothing: no caller reads state that may still
  be lost.
* If a commit does not come within `commit_timeout_ms`, the answers that wait for it fail with
  REQUEST_TIMED_OUT; their writes may still succeed. Replies that a core itself delays (a parked JoinGroup)
  are not affected.
* Work that a core starts waits for the commit too, without a time-out, because its records may still be lost.
* Timers belong to the installed state, not to the commit: they are set and cancelled at once.
* Setting the wall clock moves neither a timer nor a time-out: both count from the moment they were set.

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
#: The pause before a timer is delivered again if its records could not be appended.
TIMER_RETRY_MS = 500


class Prompt(Generic[Result]):
    """An answer that is ready at once: `await` does not wait, and plain functions can read `result()`."""

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
    """Only the sender of `event` waits for its records."""


def _unheeded(before: Any, event: Any, step: Step[Any]) -> None:
    """The `installed` of a shard whose steps are not followed."""


class ShardCore(NamedTuple, Generic[State, Event]):
    """The pure core that a shard runs.

    `timer_event(key, now_ms)` builds the event that tells the core that a timer has fired.
    `refused_event(event, error)` builds the event that tells the core that the records of `event` are not in
    the log. It returns None if only the sender of `event` waits for them; the sender gets the error.
    """

    transition: Callable[[State, Event], Step[State]]
    timer_event: Callable[[Hashable, int], Event]
    refused_event: Callable[[Event, KafkaError], Event | None] = _never_refused


class ShardPorts(NamedTuple):
    """The log, the timers and the work that a shard uses.

    `append(records)` appends the records as one atomic write and returns the log end offset after them. It
    may raise, and it may call `on_commit` before it returns (a log without followers commits at once).
    `start(work)` begins work for the core; it must not call back before it returns.
    `installed(before, event, step)` is told of each step whose records are in the log.
    """

    append: Callable[[tuple[object, ...]], int]
    scheduler: Scheduler
    start: Callable[[object], None] | None = None
    installed: Callable[[Any, Any, Step[Any]], None] = _unheeded


class Shard(Generic[State, Event]):
    """One core, one log, and the callers that wait for answers.

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
        self._append, self._scheduler, self._start, self._installed = ports
        self._written = written
        self._committed = committed
        self._commit_timeout_ms = commit_timeout_ms
        self._parked: deque[_Parked] = deque()
        self._commit_check: Handle | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._timers: dict[Hashable, _Timer] = {}
        self._last_token = 0
        #: The token of the call of `ask` under way, until it is answered.
        self._asking = NO_TOKEN
        self._prompt_answer: object = None
        self._closed: Exception | None = None

    @property
    def waiting_count(self) -> int:
        """The number of callers that have not been answered yet."""
        return len(self._waiting)

    def left_ms(self, key: Hashable) -> int | None:
        """How long until the timer of `key` is due; None if it does not run."""
        timer = self._timers.get(key)
        return None if timer is None else max(0, timer.due_ms - self._scheduler.monotonic_ms())

    def ask(self, event_with: Callable[[int], Event]) -> Answer:
        """Submit an event that gets an answer, often at once; `event_with(token)` builds the event."""
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
        """Submit an event; if `append` fails, this raises its error and nothing has changed."""
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
        before, self.state = self.state, step.state
        self._installed(before, event, step)
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
        """Everything below `offset` is committed: send the answers that waited for it, in order."""
        if offset <= self._committed:
            return
        self._committed = offset
        while self._parked and self._parked[0].offset <= offset:
            self._perform(self._parked.popleft().effect)

    def close(self, error: Exception) -> None:
        """Answer every waiting caller with `error`, drop the timers, and refuse later events with `error`.

        Used when the partition moves away or its log has failed. The next owner decides on records that were
        appended but not committed.
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
        timeout_ms = self._commit_timeout_ms
        due_ms = self._scheduler.monotonic_ms() + timeout_ms
        self._parked.append(_Parked(self._written, effect, due_ms))
        if self._commit_check is None and isinstance(effect, Reply):
            self._commit_check = self._call_in(timeout_ms, self._fail_overdue)

    def _fail_overdue(self) -> None:
        self._commit_check = None
        now_ms = self._scheduler.monotonic_ms()
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
            self._commit_check = self._call_in(due_ms - now_ms, self._fail_overdue)

    def _call_in(self, delay_ms: int, callback: Callable[[], None]) -> Handle:
        return self._scheduler.call_at(self._scheduler.now_ms() + delay_ms, callback)

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
        if answer is None or answer.done():  # the caller has gone and cancelled its future
            return
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)

    # Heartbeats move timers a little further, thousands of times a second. So a later deadline is only noted:
    # the scheduled handle fires at the old deadline, sees the new one and is scheduled again.

    def _set_timer(self, key: Hashable, at_ms: int) -> None:
        due_ms = self._scheduler.monotonic_ms() + at_ms - self._scheduler.now_ms()
        timer = self._timers.get(key)
        if timer is not None:
            timer.at_ms, timer.due_ms = at_ms, due_ms
            if timer.armed_ms <= due_ms:
                return
            timer.handle.cancel()
        self._arm(key, at_ms, due_ms)

    def _arm(self, key: Hashable, at_ms: int, due_ms: int) -> None:
        timer = _Timer(at_ms, due_ms)
        self._timers[key] = timer
        delay_ms = due_ms - self._scheduler.monotonic_ms()
        timer.handle = self._call_in(delay_ms, lambda: self._on_timer(key, timer))

    def _cancel_timer(self, key: Hashable) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.handle.cancel()

    def _on_timer(self, key: Hashable, timer: _Timer) -> None:
        if self._timers.get(key) is not timer:
            return
        if timer.due_ms > timer.armed_ms:
            self._arm(key, timer.at_ms, timer.due_ms)
            return
        del self._timers[key]
        now_ms = max(self._scheduler.now_ms(), timer.at_ms)
        try:
            self.tell(self._timer_event(key, now_ms))
        except Exception as error:
            # The state is unchanged, so the timer is still due; no caller waits for its outcome.
            self._arm(key, now_ms + TIMER_RETRY_MS, self._scheduler.monotonic_ms() + TIMER_RETRY_MS)
            if not isinstance(error, KafkaError):
                raise


class _Parked(NamedTuple):
    """An effect that waits until everything below `offset` is committed, or until `due_ms` (monotonic)."""

    offset: int
    effect: Reply | Start
    due_ms: int


class _Timer:
    """When a key is due: `at_ms` as its core said, which is `due_ms` of the monotonic clock.

    The scheduled call comes at `armed_ms` of that clock, never later than `due_ms`.
    """

    __slots__ = ("armed_ms", "at_ms", "due_ms", "handle")

    handle: Handle

    def __init__(self, at_ms: int, due_ms: int) -> None:
        self.at_ms = at_ms
        self.armed_ms = self.due_ms = due_ms
