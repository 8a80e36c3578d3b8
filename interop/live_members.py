"""Members of groups that send heartbeats from a thread of their own while a check takes its time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from interop.world import World
from pykafka_broker.client.blocking import Client
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

#: The longest wait for a member to have its assignment.
PATIENCE_S = 60
#: The time between two heartbeats.
BEAT_S = 1.0


class Life:
    """What a member and its check tell each other."""

    def __init__(self) -> None:
        self.has_assignment = threading.Event()
        self._is_over = threading.Event()

    def goes_on(self) -> bool:
        """Whether the check still needs the member, after the time between two heartbeats."""
        return not self._is_over.wait(BEAT_S)

    def end(self) -> None:
        """Let the member leave."""
        self._is_over.set()


@contextmanager
def member(world: World, live: Callable[[Client, Life], None]) -> Iterator[None]:
    """Run `live` in a thread, from the moment it has its assignment to the end of the check."""
    life = Life()

    def run() -> None:
        with Client(world.broker.address) as client:
            live(client, life)

    with ThreadPoolExecutor(1) as threads:
        living = threads.submit(run)
        try:
            assert life.has_assignment.wait(PATIENCE_S), living.exception(0) if living.done() else "no answer"
            yield
        finally:
            life.end()
            living.result()


def beat(client: Client, group: str, request: Any) -> Any:
    """Send a heartbeat to the coordinator of the group, once it has one.

    Raises:
        KafkaError: the heartbeat was refused.

    """

    def ask(node_id: int) -> Any:
        answer = client.send(request, node_id)
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code), answer.error_message)
        return answer

    return client.at_coordinator(group, ask)
