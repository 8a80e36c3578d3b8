"""The metadata quorum as one of its replicas sees it: who leads, who answers, and how far each is."""

from __future__ import annotations

from collections.abc import Callable

from pykafka_broker.machine.clock import Clock
from pykafka_broker.raft.core import describe as core
from pykafka_broker.raft.core import transitions
from pykafka_broker.raft.core.describe import QuorumStatus
from pykafka_broker.raft.core.messages import Destination
from pykafka_broker.raft.core.quorum import Address
from pykafka_broker.raft.core.state import RaftState


class QuorumView:
    """What one replica knows of the others, by its state and by when they have answered it."""

    def __init__(self, clock: Clock, state: Callable[[], RaftState | None]) -> None:
        self._clock = clock
        self._state = state
        #: When those of the others that answered the last request did so, by address; voters and bootstrap
        #: servers have few addresses.
        self._heard_ms: dict[Address, int] = {}
        #: `is_led` after the last step.
        self.was_led = False
        self._changed_ms = clock.monotonic_ms()

    def heard(self, other: Destination) -> None:
        """Note that another voter, or a bootstrap server, has answered."""
        self._heard_ms[other.address] = self._clock.monotonic_ms()

    def unheard(self, other: Destination) -> None:
        """Note that another voter, or a bootstrap server, has not answered the last request."""
        self._heard_ms.pop(other.address, None)

    def note_step(self) -> bool:
        """Note a step of the replica; return whether `was_led` has changed."""
        was_led, self.was_led = self.was_led, self.is_led
        if self.was_led is was_led:
            return False
        self._changed_ms = self._clock.monotonic_ms()
        return True

    @property
    def unchanged_ms(self) -> int:
        """How long `was_led` has been as it is."""
        return self._clock.monotonic_ms() - self._changed_ms

    @property
    def is_led(self) -> bool:
        """Whether this replica leads, or its leader answers it."""
        state = self._state()
        return state is not None and core.is_led(state, self._clock.monotonic_ms())

    @property
    def is_majority_gone(self) -> bool:
        """Whether the voters whose addresses do not refuse connections are no majority."""
        state = self._state()
        return state is not None and transitions.is_majority_gone(state)

    @property
    def others(self) -> tuple[Destination, ...]:
        """The other voters, or the bootstrap servers while the log names no voters."""
        state = self._state()
        return () if state is None else transitions.others(state)

    def silent(self, silence_ms: int) -> list[Destination]:
        """Those of the others that did not answer the last request, or were not heard for `silence_ms`."""
        earliest_ms = self._clock.monotonic_ms() - silence_ms
        heard_ms = self._heard_ms
        return [one for one in self.others if heard_ms.get(one.address, earliest_ms) <= earliest_ms]

    def describe(self) -> QuorumStatus | None:
        """The quorum with times of the wall clock; None on a replica that does not lead it."""
        state = self._state()
        if state is None:
            return None
        monotonic_ms = self._clock.monotonic_ms()
        status = core.describe(state, monotonic_ms)
        return None if status is None else core.with_times_later(status, self._clock.now_ms() - monotonic_ms)

    def describe_leaderless(self, silence_ms: int) -> QuorumStatus | None:
        """The quorum as this replica knew it `silence_ms` ago, with times of the wall clock.

        None if this replica leads, or its leader answers it.
        """
        state = self._state()
        if state is None or self.is_led:
            return None
        now_ms = self._clock.now_ms()
        return core.describe_leaderless(state, now_ms, now_ms - silence_ms)
