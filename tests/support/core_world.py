"""A coordinator's core with nothing around it: virtual time, recorded answers, an in-memory log.

It does what the shard's shell does, at once and without futures: it numbers the tokens, keeps the timers,
collects answers and records. Records pass through their bytes, as they would in a log. Work is not done by
itself: `work` holds what was started.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Generic, TypeVar

from pykafka_broker.machine.step import CancelTimer, Effect, Reply, SetTimer, Start, Step

START_MS = 1_000_000

State = TypeVar("State")
Config = TypeVar("Config")
Entry = TypeVar("Entry")


class CoreWorld(Generic[State, Config, Entry]):
    """The state of one shard, the time, the requests that wait, and the work that was started."""

    def __init__(self, config: Config, state: State) -> None:
        self.config = config
        self.state = state
        self.now_ms = START_MS
        self.timers: dict[Hashable, int] = {}
        self.answers: dict[int, Any] = {}
        self.log: list[Entry] = []
        self.last_effects: tuple[Effect, ...] = ()
        self.last_records: tuple[Entry, ...] = ()
        self.work: list[Any] = []
        self._tokens = 0

    # ---- what a core has of its own ----

    def step(self, event: Any) -> Step[State]:
        """The step that the core takes."""
        raise NotImplementedError

    def read_back(self, record: object) -> Entry:
        """A record as it is read from the log."""
        raise NotImplementedError

    def timer_fired(self, key: Hashable) -> object:
        """The event of a timer that fires now."""
        raise NotImplementedError

    # ---- driving ----

    def submit(self, event: Any) -> None:
        step = self.step(event)
        self.state = step.state
        self.last_effects = step.effects
        self.last_records = tuple(map(self.read_back, step.records))
        self.log.extend(self.last_records)
        for effect in step.effects:
            match effect:
                case Reply(token, result):
                    assert token not in self.answers, f"answered twice: {result}"
                    self.answers[token] = result
                case SetTimer(key, at_ms):
                    self.timers[key] = at_ms
                case CancelTimer(key):
                    self.timers.pop(key, None)
                case Start(work):
                    self.start(work)

    def start(self, work: Any) -> None:
        """Take note of work that the core has started."""
        self.work.append(work)

    def token(self) -> int:
        self._tokens += 1
        return self._tokens

    def advance(self, duration_ms: int) -> None:
        """Let time pass; timers fire in order, each at its own moment."""
        until_ms = self.now_ms + duration_ms
        while self.timers:
            key, at_ms = min(self.timers.items(), key=lambda timer: (timer[1], str(timer[0])))
            if at_ms > until_ms:
                break
            self.fire(key)
        self.now_ms = until_ms

    def fire(self, key: Hashable) -> None:
        """Let one timer fire, at its moment."""
        self.now_ms = max(self.now_ms, self.timers.pop(key))
        self.submit(self.timer_fired(key))

    def follow(self, other: CoreWorld[State, Config, Entry]) -> None:
        """Go on with the time, the log and the tokens of the broker that had the shard before."""
        self.now_ms, self.log, self._tokens = other.now_ms, list(other.log), other._tokens
