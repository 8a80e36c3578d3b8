"""The controller is told in which log directories replicas are."""

from __future__ import annotations

from typing import Any

from pykafka_broker.controller.core.events import DirectoryAssignment
from pykafka_broker.log.disk.directories import LogDirs
from pykafka_broker.membership.replica_places import ReplicaPlaces
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.testing.clock import VirtualClock
from pykafka_broker.testing.memory_files import MemoryFiles

LOST = DirectoryAssignment(b"t" * 16, 0, b"d" * 16)


class Controller:
    """Notes what it is told; an error stays until it is taken away."""

    def __init__(self) -> None:
        self.error: KafkaError | None = None
        self.assignments: list[tuple[DirectoryAssignment, ...]] = []

    async def ask(self, event: Any, timeout_ms: int | None = None) -> tuple[ErrorCode, ...]:
        self.assignments.append(event.assignments)
        if self.error is not None:
            raise self.error
        return (ErrorCode.NONE,) * len(event.assignments)


async def test_the_places_of_replicas_are_said_until_they_are_noted() -> None:
    clock, controller = VirtualClock(), Controller()
    dirs = LogDirs(MemoryFiles(), ["/data", "/more"])
    places = ReplicaPlaces(controller, 1, lambda: 7, dirs, lambda: [LOST], clock)
    controller.error = KafkaError(ErrorCode.REQUEST_TIMED_OUT)

    places.report_places()
    await clock.pass_time(300)
    controller.error = None
    await clock.pass_time(10_000)

    assert controller.assignments == [(LOST,)] * 4  # at once, and after 100, 300 and 700 ms
    await places.stop()
    places.report_places()  # the metadata has changed once more
    await clock.pass_time(10_000)
    assert len(controller.assignments) == 4
    assert clock.pending_timers == 0
