"""kcat: librdkafka on the command line. A process for each thing that is asked."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError

from interop.clients.client import Client, Member, Record, Refused
from interop.clients.driven import ToolchainMissingError
from interop.clients.login import Login

TIMEOUT_S = 60.0

#: The line that a consumer prints for a record: partition, offset, timestamp, the lengths of key and value
#: (-1: null), then both as they are, and the headers.
FORMAT = "%p %o %T %K %S %k%s%h\n"
PREFIX = re.compile(rb"(\d+) (\d+) (-?\d+) (-?\d+) (-?\d+) ")

#: librdkafka's words for the broker's error codes, which are all that kcat prints.
CODES = {KafkaError(code).str(): code for code in range(1, 130)}


def refusal(printed: str) -> Refused:
    found = [code for words, code in CODES.items() if words in printed]
    # Its own: it has lost the broker.
    return Refused(found[0] if found else -1, printed.strip())


def records(printed: bytes) -> Iterator[tuple[Record, int]]:
    """Every record that is there in full, and where it ends."""
    at = 0
    while prefix := PREFIX.match(printed, at):
        partition, offset, timestamp, key_length, value_length = map(int, prefix.groups())
        key_end = prefix.end() + max(key_length, 0)
        value_end = key_end + max(value_length, 0)
        at = printed.find(b"\n", value_end) + 1
        if not at:
            return
        pairs = [pair.partition(b"=") for pair in printed[value_end : at - 1].split(b",") if pair]
        record = Record(
            value=None if value_length < 0 else printed[key_end:value_end],
            key=None if key_length < 0 else printed[prefix.end() : key_end],
            headers=tuple((name.decode(), value) for name, _, value in pairs),
            timestamp_ms=timestamp,
            partition=partition,
            offset=offset,
        )
        yield record, at


class KcatMember(Member):
    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.arrived = threading.Condition()
        self.printed = b""
        self.partitions: frozenset[int] = frozenset()
        self.threads = [threading.Thread(target=read) for read in (self._read_records, self._read_news)]
        for thread in self.threads:
            thread.start()

    def _read_records(self) -> None:
        assert self.process.stdout is not None
        while piece := self.process.stdout.read1(1 << 16):  # type: ignore[attr-defined]
            with self.arrived:
                self.printed += piece
                self.arrived.notify()

    def _read_news(self) -> None:
        """`% Group g rebalanced (memberid m): assigned: t [0], t [1]`, of a cooperative assignor `% Group g
        rebalanced: incremental assignment of 2 partition(s) (...): t [0], t [1]`; and the same with "revoke".
        """
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if b"rebalanced" in line:
                named = frozenset(int(number) for number in re.findall(rb"\[(\d+)\]", line))
                self.partitions = self.partitions - named if b"revoke" in line else self.partitions | named

    def poll(self, timeout_s: float) -> list[Record]:
        with self.arrived:
            if not self.printed:
                self.arrived.wait(timeout_s)
            found = list(records(self.printed))
            if found:
                self.printed = self.printed[found[-1][1] :]
            return [record for record, _ in found]

    def assignment(self) -> frozenset[int]:
        return self.partitions

    def commit(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.process.terminate()
        self.process.wait(TIMEOUT_S)
        for thread in self.threads:
            thread.join()
        self.process.stdout.close()
        self.process.stderr.close()


class Kcat(Client):
    name = "kcat"
    strategies = ("roundrobin", "cooperative-sticky")
    features = frozenset({"ordered_headers", "append_time", "idempotent", "range", "isolation", "stable_end"})

    def __init__(self, bootstrap: str, login: Login | None = None) -> None:
        super().__init__(bootstrap, login)
        self.program = shutil.which("kcat")
        if self.program is None:
            raise ToolchainMissingError("no kcat on the path (Debian: apt-get install kcat)")
        about = subprocess.run([self.program, "-V"], capture_output=True, text=True, check=True).stdout
        version = re.search(r"Version (\S+) .*librdkafka (\S+)", about)
        assert version is not None
        self.version = f"{version[1]} (librdkafka {version[2]})"

    def close(self) -> None:
        """Nothing stays open between two questions."""

    def command(self, *arguments: str, **settings: object) -> list[str]:
        options = [f"-X{key.replace('_', '.')}={value}" for key, value in settings.items()]
        if self.login:
            options += [f"-X{key}={value}" for key, value in self.login.for_librdkafka().items()]
        assert self.program is not None
        return [self.program, "-b", self.bootstrap, *options, *arguments]

    def run(self, *arguments: str, stdin: bytes = b"", **settings: object) -> tuple[bytes, str]:
        """Its output on stdout and on stderr."""
        done = subprocess.run(
            self.command(*arguments, **settings),
            input=stdin,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        told = done.stderr.decode(errors="replace")
        if done.returncode != 0:
            raise refusal(told)
        return done.stdout, told

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        settings = {
            "acks": acks,
            "enable_idempotence": str(idempotent).lower(),
            "message_max_bytes": 4 << 20,
            "message_timeout_ms": 30_000,
            "topic_metadata_refresh_interval_ms": 100,
        }
        offsets: list[int] = []
        for run in self.runs(records):
            first = run[0]
            arguments = [*("-P", "-t", topic, "-p", str(first.partition), "-z", codec, "-v", "-v", "-v")]
            arguments += [f"-H{name}={(value or b'').decode()}" for name, value in first.headers]
            if first.value is None:
                arguments += ["-Z"]
            if first.key is not None and first.value:
                arguments += ["-k", first.key.decode()]
            with tempfile.NamedTemporaryFile() as file:
                if len(run) > 1:
                    stdin = b"".join((record.value or b"") + b"\n" for record in run)
                elif first.value:
                    # A file is one message, even with line ends in it.
                    stdin = b""
                    Path(file.name).write_bytes(first.value)
                    arguments += [file.name]
                else:
                    # An empty line would be no message: it takes a key.
                    assert first.key is not None
                    stdin = first.key + b":\n"
                    arguments += ["-K:"]
                _, told = self.run(*arguments, stdin=stdin, **settings)
            answered = [int(offset) for offset in re.findall(r"\(offset (-?\d+)\)", told)]
            offsets += answered if len(answered) == len(run) else [-1] * len(run)
        return offsets

    @staticmethod
    def runs(records: Sequence[Record]) -> Iterator[list[Record]]:
        """Records that one process can send: lines of text that differ in nothing else, or one alone."""
        run: list[Record] = []
        for record in records:
            alike = run and all(
                (one.key, one.headers, one.partition) == (run[0].key, run[0].headers, run[0].partition)
                and one.value
                and b"\n" not in one.value
                and len(one.value) < 1000
                for one in (run[-1], record)
            )
            if run and not alike:
                yield run
                run = []
            run.append(record)
        if run:
            yield run

    def read(
        self,
        topic: str,
        partitions: Sequence[int] = (0,),
        *,
        start: int | None = None,
        fetch_bytes: int | None = None,
        committed: bool = False,
    ) -> list[Record]:
        settings: dict[str, Any] = {
            "isolation_level": "read_committed" if committed else "read_uncommitted",
            # It finds an end when a fetch has waited in vain.
            "fetch_wait_max_ms": 50,
        }
        if fetch_bytes is not None:
            settings |= {
                "fetch_message_max_bytes": fetch_bytes,
                "fetch_max_bytes": fetch_bytes,
                "message_max_bytes": 1000,
            }
        found: list[Record] = []
        first = "beginning" if start is None else str(start)
        for partition in partitions:
            printed, _ = self.run(
                *("-C", "-t", topic, "-p", str(partition), "-o", first, "-e", "-q", "-f", FORMAT), **settings
            )
            found += [record for record, _ in records(printed)]
        return found

    def read_out_of_range(self, topic: str, offset: int, reset: str) -> int | None:
        try:
            printed, told = self.run(
                *("-C", "-t", topic, "-p", "0", "-o", str(offset), "-e", "-f", FORMAT),
                auto_offset_reset={"none": "error"}.get(reset, reset),
            )
        except Refused as refused:
            if "out of range" in str(refused):
                return None
            raise
        for record, _ in records(printed):
            return record.offset
        end = re.search(r"Reached end of topic .* at offset (\d+)", told)
        assert end is not None, told
        return int(end[1])

    def _query(self, topic: str, partition: int, timestamp_ms: int) -> int:
        printed, _ = self.run("-Q", "-t", f"{topic}:{partition}:{timestamp_ms}")
        found = re.search(rb"\[(\d+)\] offset (-?\d+)", printed)
        if found is None:
            raise refusal(printed.decode())
        return int(found[2])

    def beginning(self, topic: str, partition: int = 0) -> int:
        return self._query(topic, partition, -2)

    def end(self, topic: str, partition: int = 0) -> int:
        return self._query(topic, partition, -1)

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        found = self._query(topic, partition, timestamp_ms)
        return None if found < 0 else found

    def member(
        self,
        group: str,
        topic: str,
        *,
        instance_id: str | None = None,
        session_timeout_ms: int = 6000,
        strategy: str = "range",
    ) -> Member:
        static = {} if instance_id is None else {"group_instance_id": instance_id}
        # It would outlive us: nothing that it reads or writes ends with us.
        kcat = self.command(
            *("-G", group, "-u", "-f", FORMAT, topic),
            auto_offset_reset="earliest",
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=500,
            partition_assignment_strategy=strategy,
            **static,
        )
        return KcatMember(["setpriv", "--pdeathsig", "KILL", *kcat])

    def metadata(self, *arguments: str) -> dict[str, Any]:
        printed, _ = self.run("-L", "-J", *arguments)
        found: dict[str, Any] = json.loads(printed)
        return found

    def topics(self) -> set[str]:
        return {topic["topic"] for topic in self.metadata()["topics"]}

    def partitions(self, topic: str) -> int:
        (found,) = self.metadata("-t", topic)["topics"]
        return len(found["partitions"])
