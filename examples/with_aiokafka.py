"""Write and read with aiokafka: `python examples/with_aiokafka.py [HOST:PORT]`."""

from __future__ import annotations

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


async def main(bootstrap: str = "127.0.0.1:9092") -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
    async with producer:
        # All three are on their way before the first is acknowledged.
        sent = [await producer.send("temperatures", value, key=b"kitchen") for value in (b"20", b"21", b"23")]
        written = await asyncio.gather(*sent)
    print([record.offset for record in written])  # [0, 1, 2]

    consumer = AIOKafkaConsumer(
        "temperatures",
        bootstrap_servers=bootstrap,
        group_id="thermostat",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with consumer, asyncio.timeout(60):
        records = [await anext(consumer) for _ in written]
        await consumer.commit()
    print([(record.key, record.value) for record in records][-1])  # (b'kitchen', b'23')


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
