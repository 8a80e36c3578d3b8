"""The same log, cleaned by Apache Kafka and by us: the same bytes, but for the time in delete horizons.

Apache writes it, with everything its producer can do (codecs, idempotence, transactions of both outcomes,
tombstones, few and many records a batch), and is stopped. One copy is cleaned by Apache, one by us.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from pykafka_broker.log.cleaner.process import CleaningProcess
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.directories import LogDirs
from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.log.manager.settings import LogWorkers
from pykafka_broker.machine.clock import SystemClock
from pykafka_broker.protocol.records.batch import iter_batches, read_records
from pykafka_broker.testing.apache.broker import ApacheBroker
from tests.log.logs import one_pool

TOPICS = ("plain", "gzip", "snappy", "lz4", "zstd", "idempotent", "transactional", "append-time")
SEGMENT_MS = 1_000_000
KEYS = 25
PATIENCE_S = 120


def write(address: str) -> None:
    """Batches whose timestamps are far enough apart for a segment to have twenty of them."""
    admin = AdminClient({"bootstrap.servers": address})
    settings = {"cleanup.policy": "compact", "segment.ms": str(SEGMENT_MS), "min.cleanable.dirty.ratio": "0"}
    topics = [NewTopic(name, 1, 1, config=settings) for name in TOPICS[:-1]]
    settings = {**settings, "message.timestamp.type": "LogAppendTime", "segment.ms": "1500"}
    topics.append(NewTopic(TOPICS[-1], 1, 1, config=settings))
    for created in admin.create_topics(topics).values():
        created.result(60)
    for topic in TOPICS:
        write_topic(address, topic)


def write_topic(address: str, topic: str) -> None:
    options: dict[str, Any] = {"bootstrap.servers": address, "linger.ms": 1000}
    if topic in ("gzip", "snappy", "lz4", "zstd"):
        options["compression.type"] = topic
    if topic == "idempotent":
        options["enable.idempotence"] = True
    if topic == "transactional":
        options["transactional.id"] = "writer"
    producer = Producer(options)
    if topic == "transactional":
        producer.init_transactions(60)
    number = 0
    for batch in range(60):
        if topic == "transactional":
            producer.begin_transaction()
        for _ in range(1 + batch % 7):
            number += 1
            producer.produce(
                topic,
                key=b"key-%d" % (number * 7 % KEYS) * (1 + number % 3),
                value=None if number % 11 == 0 else b"value-%d" % number,
                headers=[("number", b"%d" % number)] if number % 4 == 0 else None,
                timestamp=1_700_000_000_000 + batch * SEGMENT_MS // 20 + number,
            )
        assert producer.flush(60) == 0
        if topic == "transactional":
            if batch % 3 == 1:
                producer.abort_transaction(60)
            else:
                producer.commit_transaction(60)
        if topic == "append-time":
            time.sleep(0.06)


def wait_for(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def clean_as_apache(data_dir: Path, folder: Path) -> None:
    checkpoint = data_dir / "cleaner-offset-checkpoint"
    with ApacheBroker({"log.cleaner.backoff.ms": "200"}, folder):
        wait_for(
            lambda: checkpoint.exists() and all(f"\n{topic} 0 " in checkpoint.read_text() for topic in TOPICS)
        )


async def clean_as_we_do(data_dir: Path, topics: Collection[str]) -> None:
    config = LogConfig(cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0)
    files = OsFileSystem()
    manager = LogManager(
        files,
        LogDirs(files, [str(data_dir)]),
        one_pool(asyncio.to_thread),
        clock=SystemClock(),
        workers=LogWorkers(new_cleaner=CleaningProcess),
    )
    manager.dirs.lock()
    await manager.open_all(lambda topic: config if topic in topics else LogConfig())
    for log in manager:
        log.state.advance_high_watermark(log.state.log_end_offset)
    manager.cleaner.tick(0)
    await asyncio.wait(list(manager.cleaner._rounds))
    await manager.close()


def timeless(log: Path) -> list[tuple[Any, ...]]:
    """Everything in a log but the delete horizons, and what follows from them."""
    found: list[tuple[Any, ...]] = []
    data = log.read_bytes()
    for at, header in iter_batches(data):
        batch = data[at : at + header.size_in_bytes]
        if header.has_delete_horizon:
            header = header._replace(base_timestamp=0, crc=0, batch_length=0)
            found.append((header, list(read_records(batch))))
        else:
            found.append((header, batch if not header.attributes & 7 else list(read_records(batch))))
    return found


def comparable(entry: tuple[Any, ...]) -> tuple[Any, ...]:
    """Without what another implementation of a codec makes of the same records."""
    header, content = entry
    return (header._replace(crc=0, batch_length=0) if header.attributes & 7 else header), content


def aborted(log: Path) -> bytes:
    """Its index of aborted transactions; a missing file is an empty one."""
    index = log.with_suffix(".txnindex")
    return index.read_bytes() if index.exists() else b""


async def test_apache_and_we_leave_the_same_bytes(kafka_jars: Path, tmp_path: Path) -> None:
    with ApacheBroker({"log.cleaner.enable": "false"}, tmp_path / "apache") as apache:
        await asyncio.to_thread(write, apache.address)
    shutil.copytree(tmp_path / "apache" / "data", tmp_path / "ours")
    await asyncio.to_thread(clean_as_apache, tmp_path / "apache" / "data", tmp_path / "apache")
    await clean_as_we_do(tmp_path / "ours", TOPICS)

    compared = 0
    for topic in TOPICS:
        theirs, ours = tmp_path / "apache" / "data" / f"{topic}-0", tmp_path / "ours" / f"{topic}-0"
        names = sorted(path.name for path in theirs.glob("*.log"))
        assert names == sorted(path.name for path in ours.glob("*.log"))
        assert len(names) > 1
        for name in names:
            expected = [comparable(entry) for entry in timeless(theirs / name)]
            assert [comparable(entry) for entry in timeless(ours / name)] == expected, (topic, name)
            compared += len(expected)
            assert aborted(ours / name) == aborted(theirs / name)
    assert compared > 150
    checkpoint = (tmp_path / "apache" / "data" / "cleaner-offset-checkpoint").read_text().splitlines()[2:]
    cleaned = [line for line in checkpoint if line.split()[0] in TOPICS]
    assert sorted((tmp_path / "ours" / "cleaner-offset-checkpoint").read_text().splitlines()[2:]) == sorted(
        cleaned
    )
