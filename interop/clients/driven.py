"""Clients of other languages: a small driver program for each, asked over its stdin and stdout.

One JSON object a line. A driver is started with the bootstrap address as its argument, on a secured
listener with its login beside it (`Login.for_driver`), and first says what it is:

    {"version": "2.2.4", "ops": ["produce", "read", ...], "features": ["range", ...], "strategies": [...]}

Then it is asked, and answers in any order, each answer with the id of its question:

    {"id": 7, "op": "end", "topic": "t", "partition": 0}
    {"id": 7, "ok": 42}                                          done
    {"id": 7, "refused": 3, "text": "unknown topic"}             the broker answered with an error code
    {"id": 7, "failed": "..."}                                   anything else went wrong

The ops are the methods of `Client` and their arguments by name. Bytes are base64, a record is
`{"value", "key", "headers": [[name, value]], "timestamp_ms", "partition", "offset"}`. A group member is named
by its asker: `member.open` (with the arguments of `Client.member` and the id `member`), then `member.poll`
(`timeout_ms`), `member.assignment`, `member.commit` and `member.close`. `consumer_member.open` is a member
with the consumer protocol. `share_member.open` is one of a share group, then `share_member.poll` (its records
have a `delivery_count`), `share_member.acknowledge` (`partition`, `offset`, `how`), `share_member.commit` and
`share_member.close`. So is a producer with a transactional id: `transactions.open` (with the arguments
of `Client.transactions` and the id `producer`), then `transactions.begin`, `transactions.send`,
`transactions.commit`, `transactions.abort` and `transactions.close`.

At the end of its stdin a driver exits at once without leaving its groups: a killed test is a killed client.
"""

from __future__ import annotations

import base64
import itertools
import json
import queue
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from interop.clients.client import (
    Acknowledgement,
    Client,
    ClusterView,
    GroupView,
    Member,
    Record,
    Refused,
    ShareMember,
    Transactions,
)
from interop.clients.login import Login

TIMEOUT_S = 90.0
START_TIMEOUT_S = 30.0


class ToolchainMissingError(Exception):
    """The driver cannot be built or run on this machine; the message says what is missing."""


class DriverError(Exception):
    """The driver failed, ended or did not answer: a fault of the driver or of its client."""


def encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def to_json(record: Record) -> dict[str, Any]:
    return {
        "value": encoded(record.value),
        "key": encoded(record.key),
        "headers": [[name, encoded(value)] for name, value in record.headers],
        "timestamp_ms": record.timestamp_ms,
        "partition": record.partition,
    }


def to_record(found: Mapping[str, Any]) -> Record:
    return Record(
        value=decoded(found["value"]),
        key=decoded(found["key"]),
        headers=tuple((name, decoded(value)) for name, value in found["headers"]),
        timestamp_ms=found["timestamp_ms"],
        partition=found["partition"],
        offset=found["offset"],
        delivery_count=found.get("delivery_count"),
    )


class Driver:
    """A driver process; any thread may ask."""

    def __init__(self, command: Sequence[str], bootstrap: str, login: Login | None = None) -> None:
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the driver
        self.process = subprocess.Popen(
            [*command, bootstrap, *([login.for_driver()] if login else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            bufsize=1,
        )
        self._numbers = itertools.count(1)
        self._writing = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self.hello: dict[str, Any] = {}
        said_hello = threading.Event()
        self.listener = threading.Thread(target=self._listen, args=(said_hello,), daemon=True)
        self.listener.start()
        if not said_hello.wait(START_TIMEOUT_S) or not self.hello:
            words = self.last_words()
            self.close()
            raise DriverError(f"{command[0]} did not say what it is: {words}")

    def _listen(self, said_hello: threading.Event) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if not self.hello:
                self.hello = message
                said_hello.set()
            elif waiting := self._waiting.pop(message["id"], None):
                waiting.put(message)
        said_hello.set()
        for waiting in list(self._waiting.values()):
            waiting.put({"failed": f"the driver ended: {self.last_words()}"})

    def last_words(self) -> str:
        self.log.seek(0)
        return self.log.read()[-2000:].decode(errors="replace")

    def ask(self, op: str, timeout_s: float = TIMEOUT_S, **arguments: Any) -> Any:
        number = next(self._numbers)
        answered: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._waiting[number] = answered
        question = json.dumps({"id": number, "op": op, **arguments})
        assert self.process.stdin is not None
        try:
            with self._writing:
                self.process.stdin.write(question + "\n")
                self.process.stdin.flush()
            answer = answered.get(timeout=timeout_s)
        except (queue.Empty, OSError) as error:
            self._waiting.pop(number, None)
            raise DriverError(f"no answer to {op} within {timeout_s:g} s; {self.last_words()}") from error
        if "refused" in answer:
            raise Refused(answer["refused"], answer.get("text", ""))
        if "failed" in answer:
            raise DriverError(f"{op}: {answer['failed']}")
        return answer.get("ok")

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.listener.join()
        self.process.stdout.close()
        self.log.close()


class DrivenMember(Member):
    def __init__(self, driver: Driver, member: int) -> None:
        self.driver, self.member = driver, member

    def poll(self, timeout_s: float) -> list[Record]:
        polled = self.driver.ask("member.poll", member=self.member, timeout_ms=int(timeout_s * 1000))
        return [to_record(found) for found in polled]

    def assignment(self) -> frozenset[int]:
        return frozenset(self.driver.ask("member.assignment", member=self.member))

    def commit(self) -> None:
        self.driver.ask("member.commit", member=self.member)

    def close(self) -> None:
        self.driver.ask("member.close", member=self.member)


class DrivenShareMember(ShareMember):
    def __init__(self, driver: Driver, member: int) -> None:
        self.driver, self.member = driver, member

    def poll(self, timeout_s: float) -> list[Record]:
        polled = self.driver.ask("share_member.poll", member=self.member, timeout_ms=int(timeout_s * 1000))
        return [to_record(found) for found in polled]

    def acknowledge(self, record: Record, how: Acknowledgement) -> None:
        self.driver.ask(
            "share_member.acknowledge",
            member=self.member,
            partition=record.partition,
            offset=record.offset,
            how=how,
        )

    def commit(self) -> None:
        self.driver.ask("share_member.commit", member=self.member)

    def close(self) -> None:
        self.driver.ask("share_member.close", member=self.member)


class DrivenTransactions(Transactions):
    def __init__(self, driver: Driver, producer: int) -> None:
        self.driver, self.producer = driver, producer

    def begin(self) -> None:
        self.driver.ask("transactions.begin", producer=self.producer)

    def send(self, topic: str, records: Sequence[Record]) -> None:
        sent = [to_json(record) for record in records]
        self.driver.ask("transactions.send", producer=self.producer, topic=topic, records=sent)

    def commit(self) -> None:
        self.driver.ask("transactions.commit", producer=self.producer)

    def abort(self) -> None:
        self.driver.ask("transactions.abort", producer=self.producer)

    def close(self) -> None:
        self.driver.ask("transactions.close", producer=self.producer)


class DrivenClient(Client):
    """A client in another language. Which one it is, is all that a subclass says (`drivers.py`)."""

    _members = itertools.count(1)
    _producers = itertools.count(1)
    #: Abilities that a driver has when it has the op that opens what they are about.
    OPENED_BY = MappingProxyType(
        {
            "member": "member.open",
            "consumer_member": "consumer_member.open",
            "share_member": "share_member.open",
            "transactions": "transactions.open",
        }
    )

    def __init__(self, bootstrap: str, login: Login | None = None) -> None:
        super().__init__(bootstrap, login)
        self.driver = Driver(self.command(), bootstrap, login)
        hello = self.driver.hello
        self.version = hello["version"]
        self.features = frozenset(hello["features"])
        self.strategies = tuple(hello["strategies"])
        self.ops = frozenset(hello["ops"])

    @classmethod
    def command(cls) -> list[str]:
        """The command line of the driver, built first where that is needed; else ToolchainMissingError."""
        raise NotImplementedError

    def can(self, ability: str) -> bool:
        op = self.OPENED_BY.get(ability, ability)
        return op in self.ops or op in self.features

    def close(self) -> None:
        self.driver.close()

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        sent = [to_json(record) for record in records]
        offsets: list[int] = self.driver.ask(
            "produce", topic=topic, records=sent, codec=codec, acks=acks, idempotent=idempotent
        )
        return offsets

    def read(
        self,
        topic: str,
        partitions: Sequence[int] = (0,),
        *,
        start: int | None = None,
        fetch_bytes: int | None = None,
        committed: bool = False,
    ) -> list[Record]:
        found = self.driver.ask(
            "read",
            topic=topic,
            partitions=list(partitions),
            start=start,
            fetch_bytes=fetch_bytes,
            committed=committed,
        )
        return sorted(map(to_record, found), key=lambda record: (record.partition, record.offset))

    def read_out_of_range(self, topic: str, offset: int, reset: str) -> int | None:
        found: int | None = self.driver.ask("read_out_of_range", topic=topic, offset=offset, reset=reset)
        return found

    def beginning(self, topic: str, partition: int = 0) -> int:
        return int(self.driver.ask("beginning", topic=topic, partition=partition))

    def end(self, topic: str, partition: int = 0) -> int:
        return int(self.driver.ask("end", topic=topic, partition=partition))

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        found: int | None = self.driver.ask(
            "offset_at", topic=topic, timestamp_ms=timestamp_ms, partition=partition
        )
        return found

    def member(
        self,
        group: str,
        topic: str,
        *,
        instance_id: str | None = None,
        session_timeout_ms: int = 6000,
        strategy: str = "range",
    ) -> Member:
        number = next(self._members)
        self.driver.ask(
            "member.open",
            member=number,
            group=group,
            topic=topic,
            instance_id=instance_id,
            session_timeout_ms=session_timeout_ms,
            strategy=strategy if strategy != "range" or self.can("range") else self.strategies[0],
        )
        return DrivenMember(self.driver, number)

    def consumer_member(
        self,
        group: str,
        subscription: str,
        *,
        instance_id: str | None = None,
        assignor: str | None = None,
    ) -> Member:
        number = next(self._members)
        self.driver.ask(
            "consumer_member.open",
            member=number,
            group=group,
            topic=subscription,
            instance_id=instance_id,
            assignor=assignor,
        )
        return DrivenMember(self.driver, number)

    def share_member(
        self, group: str, topic: str, *, explicit: bool = False, max_records: int = 500
    ) -> ShareMember:
        number = next(self._members)
        self.driver.ask(
            "share_member.open",
            member=number,
            group=group,
            topic=topic,
            explicit=explicit,
            max_records=max_records,
        )
        return DrivenShareMember(self.driver, number)

    def transactions(self, transactional_id: str, *, timeout_ms: int = 60_000) -> Transactions:
        number = next(self._producers)
        self.driver.ask(
            "transactions.open", producer=number, transactional_id=transactional_id, timeout_ms=timeout_ms
        )
        return DrivenTransactions(self.driver, number)

    def copy(
        self, transactional_id: str, group: str, source: str, target: str, *, count: int, commit: bool
    ) -> None:
        self.driver.ask(
            "copy",
            transactional_id=transactional_id,
            group=group,
            source=source,
            target=target,
            count=count,
            commit=commit,
        )

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        found: int | None = self.driver.ask("committed", group=group, topic=topic, partition=partition)
        return found

    def commit_metadata(self, group: str, topic: str, offset: int, metadata: str) -> str:
        return str(
            self.driver.ask("commit_metadata", group=group, topic=topic, offset=offset, metadata=metadata)
        )

    def cluster(self) -> ClusterView:
        seen = self.driver.ask("cluster")
        brokers = frozenset((node, address) for node, address in seen["brokers"])
        return ClusterView(seen["cluster_id"], seen["controller_id"], brokers)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        configs: Mapping[str, str] | None = None,
        replication_factor: int = 1,
    ) -> None:
        self.driver.ask(
            "create_topic",
            name=name,
            partitions=partitions,
            configs=dict(configs or {}),
            replication_factor=replication_factor,
        )

    def topics(self) -> set[str]:
        return set(self.driver.ask("topics"))

    def partitions(self, topic: str) -> int:
        return int(self.driver.ask("partitions", topic=topic))

    def delete_topic(self, name: str) -> None:
        self.driver.ask("delete_topic", name=name)

    def add_partitions(self, topic: str, total: int) -> None:
        self.driver.ask("add_partitions", topic=topic, total=total)

    def config(self, topic: str) -> dict[str, tuple[str, bool]]:
        found = self.driver.ask("config", topic=topic)
        return {key: (value, is_default) for key, (value, is_default) in found.items()}

    def set_config(self, topic: str, key: str, value: str) -> None:
        self.driver.ask("set_config", topic=topic, key=key, value=value)

    def set_group_config(self, group: str, key: str, value: str) -> None:
        self.driver.ask("set_group_config", group=group, key=key, value=value)

    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        self.driver.ask("delete_records", topic=topic, before=before, partition=partition)

    def groups(self) -> set[str]:
        return set(self.driver.ask("groups"))

    def group(self, group: str) -> GroupView:
        seen = self.driver.ask("group", group=group)
        return GroupView(seen["state"], seen["members"])

    def delete_group(self, group: str) -> None:
        self.driver.ask("delete_group", group=group)

    def delete_offset(self, group: str, topic: str, partition: int = 0) -> None:
        self.driver.ask("delete_offset", group=group, topic=topic, partition=partition)
