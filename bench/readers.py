"""Reading a topic in Python, each way in a process of its own, with what it took in processor time.

    python -m bench.readers arrow 127.0.0.1:9092 topic 1000000 [folder]

Each client hands out the records in the largest portions that it has, and nothing is done with them. The time
counts from the first request of the client on, without the start of the interpreter and the imports. For
`kafka-dump-log`, which is a program, all of it counts.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

PORTION = 10_000
FETCH_BYTES = 8 << 20


def arrow(address: str, topic: str, _folder: str) -> Callable[[int], None]:
    from pykafka_broker.arrow import read_topic

    def read(records: int) -> None:
        assert sum(batch.num_rows for batch in read_topic(topic, address)) == records

    return read


def arrow_folder(_address: str, topic: str, folder: str) -> Callable[[int], None]:
    from pykafka_broker.arrow import read_folder

    def read(records: int) -> None:
        assert sum(batch.num_rows for batch in read_folder(folder, topic)) == records

    return read


def confluent(address: str, topic: str, _folder: str) -> Callable[[int], None]:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    def read(records: int) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "bench-readers",
                "enable.auto.commit": False,
                "fetch.message.max.bytes": FETCH_BYTES,
                "queued.min.messages": 1_000_000,
                "queued.max.messages.kbytes": 256 << 10,
                "enable.metrics.push": False,
                "log_level": 0,
            }
        )
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
        while records > 0:
            records -= len(consumer.consume(PORTION, 1.0))
        consumer.close()

    return read


def kafka_python(address: str, topic: str, _folder: str) -> Callable[[int], None]:
    from kafka import KafkaConsumer, TopicPartition

    def read(records: int) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=address, fetch_max_bytes=FETCH_BYTES, max_partition_fetch_bytes=FETCH_BYTES
        )
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        while records > 0:
            records -= sum(map(len, consumer.poll(1000, max_records=PORTION).values()))
        consumer.close()

    return read


def aiokafka(address: str, topic: str, _folder: str) -> Callable[[int], None]:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    partitions = partition_count(address, topic)

    async def consume(records: int) -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=address, fetch_max_bytes=FETCH_BYTES, max_partition_fetch_bytes=FETCH_BYTES
        )
        await consumer.start()
        try:
            consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
            await consumer.seek_to_beginning()
            while records > 0:
                found = await consumer.getmany(timeout_ms=1000, max_records=PORTION)
                records -= sum(map(len, found.values()))
        finally:
            await consumer.stop()

    return lambda records: asyncio.run(consume(records))


def dump_log(_address: str, topic: str, folder: str) -> Callable[[int], None]:
    """Apache Kafka's own tool, with its records thrown away."""
    from pathlib import Path

    from pykafka_broker.testing.apache.tools import command

    files = ",".join(str(path) for path in sorted(Path(folder).glob(f"{topic}-*/*.log")))

    def read(_records: int) -> None:
        tool = command("org.apache.kafka.tools.DumpLogSegments", "--print-data-log", "--files", files)
        subprocess.run(tool, stdout=subprocess.DEVNULL, check=True)

    return read


def partition_count(address: str, topic: str) -> int:
    """How many partitions the topic has."""
    from pykafka_broker.client.blocking import Client

    with Client(address) as client:
        return len(client.leaders(topic))


READERS = {
    reader.__name__: reader for reader in (arrow, arrow_folder, confluent, aiokafka, kafka_python, dump_log)
}


def processor_seconds() -> float:
    """What this process and its children have used."""
    used = getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)
    return sum(each.ru_utime + each.ru_stime for each in used)


def measured(reader: str, address: str, topic: str, records: int, folder: str) -> dict[str, float]:
    """Records a second, and a second of processor time, of a reader in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.readers", reader, address, topic, str(records), folder],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"reading with {reader} failed: {done.stderr.strip()[-2000:]}")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> None:
    name, address, topic, records, folder = sys.argv[1:]
    read = READERS[name](address, topic, folder)
    used, began = processor_seconds(), time.perf_counter()
    read(int(records))
    seconds, used = time.perf_counter() - began, processor_seconds() - used
    print(json.dumps({"per_s": int(records) / seconds, "per_core": int(records) / used}))


if __name__ == "__main__":
    main()
