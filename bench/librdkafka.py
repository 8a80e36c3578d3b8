"""The load generator for machines without Go: librdkafka, same commands and output as bench/load/main.go.

The records are librdkafka's business, but Python makes and counts them one by one: with small records the
limit is this program, not the broker, and the table says that librdkafka put the load on. It tells the p99 of
its requests for each second and broker: the highest of these counts, which is no less than that of the load.
"""

from __future__ import annotations

import argparse
import json
import time

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, Producer, TopicPartition

PRODUCER = {
    "linger.ms": 5,
    "batch.size": 1_000_000,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 1 << 20,
    "compression.type": "none",
}


def reached(options: argparse.Namespace) -> dict[str, str]:
    """How the brokers are reached: with TLS where an authority is given."""
    tls = {"security.protocol": "ssl", "ssl.ca.location": options.ca} if options.ca else {}
    return {"bootstrap.servers": options.brokers, **tls}


def produce(options: argparse.Namespace) -> dict[str, float]:
    acks = {"acks": 1} if options.acks == "1" else {"acks": "all", "enable.idempotence": True}
    p99_us: list[int] = []

    def told(statistics: str) -> None:
        p99_us.append(max(broker["rtt"]["p99"] for broker in json.loads(statistics)["brokers"].values()))

    statistics = {"statistics.interval.ms": 1_000, "stats_cb": told}
    producer = Producer({**PRODUCER, **acks, **reached(options), **statistics})
    producer.list_topics(timeout=30)
    value = bytes(range(256)) * (options.size // 256 + 1)
    value = value[: options.size]
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: object) -> None:
        if error is not None:
            failed.append(error)

    started = time.perf_counter()
    for sent in range(options.records):
        while True:
            try:
                producer.produce(options.topic, value, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
        if sent % 1000 == 0:
            producer.poll(0)
    left = producer.flush(600)
    seconds = time.perf_counter() - started
    if failed or left:
        raise SystemExit(f"{len(failed)} records failed, {left} were not sent: {failed[:1]}")
    seconds_told = len(p99_us)
    while len(p99_us) == seconds_told:  # until the last second is told
        producer.poll(0.1)
    return {
        "records": options.records,
        "bytes": options.records * options.size,
        "seconds": seconds,
        "p99_ms": max(p99_us) / 1e3,
    }


def assigned(options: argparse.Namespace, offset: int) -> Consumer:
    consumer = Consumer(
        {
            **reached(options),
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.max.bytes": 64 << 20,
            "max.partition.fetch.bytes": 16 << 20,
            "fetch.wait.max.ms": 500,
        }
    )
    partitions = consumer.list_topics(options.topic, timeout=30).topics[options.topic].partitions
    consumer.assign([TopicPartition(options.topic, p, offset) for p in partitions])
    return consumer


def consume(options: argparse.Namespace) -> dict[str, float]:
    consumer = assigned(options, OFFSET_BEGINNING)
    records = size = 0
    started = time.perf_counter()
    while records < options.records:
        for message in consumer.consume(10_000, timeout=30):
            if message.error():
                raise SystemExit(str(message.error()))
            records += 1
            size += len(message.value() or b"")
    seconds = time.perf_counter() - started
    consumer.close()
    return {"records": records, "bytes": size, "seconds": seconds}


def echo(options: argparse.Namespace) -> dict[str, float]:
    producer = Producer({**PRODUCER, "linger.ms": 0, "enable.idempotence": True, **reached(options)})
    consumer = assigned(options, OFFSET_END)
    value = b"x" * options.size

    def there(timeout_s: float) -> bool:
        return consumer.poll(timeout_s) is not None

    # The consumer starts at the end: records sent before it found the end are not its business.
    joined = False
    while not joined:
        producer.produce(options.topic, value)
        producer.flush()
        joined = there(0.2)
    while there(0.2):
        pass
    took: list[float] = []
    warm_up = options.records // 10
    for turn in range(options.records + warm_up):
        sent = time.perf_counter()
        producer.produce(options.topic, value)
        producer.poll(0)
        if not there(30):
            raise SystemExit("a record did not arrive within 30 s")
        if turn >= warm_up:
            took.append((time.perf_counter() - sent) * 1e6)
    producer.flush()
    consumer.close()
    took.sort()
    last = len(took) - 1
    return {
        "records": len(took),
        "p50_us": took[last // 2],
        "p99_us": took[int(last * 0.99)],
        "max_us": took[-1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Put load on a Kafka broker with librdkafka")
    parser.add_argument("command", choices=["produce", "consume", "echo"])
    parser.add_argument("-brokers", default="127.0.0.1:9092")
    parser.add_argument("-topic", default="bench")
    parser.add_argument("-records", type=int, default=1_000_000)
    parser.add_argument("-size", type=int, default=100)
    parser.add_argument("-acks", default="all")
    parser.add_argument("-ca")
    options = parser.parse_args()
    print(json.dumps({"produce": produce, "consume": consume, "echo": echo}[options.command](options)))


if __name__ == "__main__":
    main()
