"""Three nodes in this process, each killed once while records are written: `python examples/cluster.py`."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from pykafka_broker import Cluster

SAFE = {"default.replication.factor": 3, "min.insync.replicas": 2}


async def main() -> None:
    async with Cluster(nodes=3, overrides=SAFE) as cluster:
        bootstrap = cluster.bootstrap_servers
        # Idempotent: with acks=all, and a record that is sent again is written once.
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True) as producer:
            for node in cluster.node_ids:
                await producer.send_and_wait("orders", b"before")
                await cluster.kill(node)
                await producer.send_and_wait("orders", b"after")
                await cluster.start(node)
                await cluster.wait_until_in_sync("orders")
        consumer = AIOKafkaConsumer("orders", bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        async with consumer, asyncio.timeout(60):
            values = [(await anext(consumer)).value for _ in range(2 * len(cluster.node_ids))]
        print(values.count(b"before"), values.count(b"after"))  # 3 3


if __name__ == "__main__":
    asyncio.run(main())
