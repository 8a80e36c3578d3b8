"""Members of groups of both kinds, which read the ledger while nodes fail: each record reaches each group."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from contextlib import suppress

from confluent_kafka import KafkaException

from tests.torture.clients import QUIET, TOPIC, place_of
from tests.torture.history import Place
from tests.torture.users import ANYBODY, Users

KINDS = ("classic", "consumer")
MEMBERS = 2


class GroupReaders:
    """A group of each kind; `seen` are the places that its members have read."""

    def __init__(self, address: str, users: Users = ANYBODY) -> None:
        self._address = address
        self._users = users
        self.seen: dict[str, set[Place]] = {kind: set() for kind in KINDS}
        self._stop = threading.Event()
        self._errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(kind,)) for kind in KINDS for _ in range(MEMBERS)
        ]

    def __enter__(self) -> GroupReaders:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def missed(self, acknowledged: Collection[Place], patience_s: float) -> dict[str, list[Place]]:
        """What a group has not read, after it had that long without new records."""
        deadline = time.monotonic() + patience_s
        wanted = set(acknowledged)
        while any(wanted - seen for seen in self.seen.values()) and time.monotonic() < deadline:
            time.sleep(0.1)
        left = {kind: sorted(wanted - seen)[:10] for kind, seen in self.seen.items()}
        return {kind: places for kind, places in left.items() if places}

    def _run(self, kind: str) -> None:
        try:
            self._read(kind)
        except BaseException as error:
            self._errors.append(error)

    def _read(self, kind: str) -> None:
        settings = {"session.timeout.ms": 10_000} if kind == "classic" else {}
        consumer = self._users.consumer(
            "member",
            {
                "bootstrap.servers": self._address,
                "group.id": f"readers-{kind}",
                "group.protocol": kind,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 50,
                **settings,
                **QUIET,
            },
        )
        consumer.subscribe([TOPIC])
        while not self._stop.is_set():
            messages = consumer.consume(500, timeout=0.2)
            read = [message for message in messages if message.error() is None]
            self.seen[kind].update(place_of(message) for message in read)
            if read:
                # What is not committed is read again, by this member or by another one.
                with suppress(KafkaException):
                    consumer.commit(asynchronous=False)
        with suppress(KafkaException):
            consumer.close()
