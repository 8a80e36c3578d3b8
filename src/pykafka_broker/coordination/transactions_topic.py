"""`__transaction_state`, where the transactions live."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.config import BrokerConfig
from pykafka_broker.coordination.coordinator_topic import CoordinatorTopic, ReadCold
from pykafka_broker.coordination.topic_creation import TopicCreation
from pykafka_broker.coordination.transactions import MarkerWriter, TransactionService, TransactionSettings
from pykafka_broker.coordinator.txn.state import TransactionConfig
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.replication.partition import Partition

TRANSACTIONS_TOPIC = "__transaction_state"
TRANSACTION_VERSION = "transaction.version"


def transaction_config(config: BrokerConfig, transaction_version: int) -> TransactionConfig:
    """The values the coordinator's core acts on."""
    return TransactionConfig(
        transaction_max_timeout_ms=config["transaction.max.timeout.ms"],
        transactional_id_expiration_ms=config["transactional.id.expiration.ms"],
        transaction_abort_timed_out_interval_ms=config[
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        ],
        transaction_remove_expired_interval_ms=config[
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        ],
        transaction_version=transaction_version,
    )


def transaction_settings(config: BrokerConfig) -> TransactionSettings:
    """The values the coordinator's service acts on."""
    return TransactionSettings(
        add_partitions_retry_backoff_ms=config["add.partitions.to.txn.retry.backoff.ms"],
        add_partitions_retry_backoff_max_ms=min(
            config["add.partitions.to.txn.retry.backoff.max.ms"], config["request.timeout.ms"]
        ),
    )


class TransactionsTopic(CoordinatorTopic):
    """Keeps a `TransactionService` and the partitions of `__transaction_state` together."""

    def __init__(
        self,
        config: BrokerConfig,
        creation: TopicCreation,
        timers: WallTimers,
        *,
        allocate_producer_id: Callable[[], Awaitable[int]],
        markers: MarkerWriter,
        read_cold: ReadCold,
    ) -> None:
        super().__init__(
            TRANSACTIONS_TOPIC,
            creation,
            timers,
            read_cold=read_cold,
            logger=logging.getLogger("kafka.coordinator.transaction.TransactionStateManager"),
        )
        self._config = config
        self._transaction_version = 0
        self.transactions = TransactionService(
            config=transaction_config(config, self._transaction_version),
            settings=transaction_settings(config),
            append=self.append,
            max_batch_bytes=self.max_batch_bytes,
            scheduler=timers,
            allocate_producer_id=allocate_producer_id,
            markers=markers,
        )

    @property
    def coordinator(self) -> TransactionService:
        return self.transactions

    async def load(self, partition: Partition, batches: AsyncIterator[bytes]) -> None:
        await self.transactions.load(
            partition.partition,
            batches,
            coordinator_epoch=partition.leader_epoch,
            high_watermark=partition.log.high_watermark,
        )

    def load_buffer_bytes(self) -> int:
        size: int = self._config["transaction.state.log.load.buffer.size"]
        return size

    def reconfigure(self, config: BrokerConfig) -> None:
        self._config = config
        self.transactions.config = transaction_config(config, self._transaction_version)
        self.transactions.settings = transaction_settings(config)

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        """Follow the topic's partition count, and the finalised level of the feature."""
        super().on_image(old, new)
        level = new.features.get(TRANSACTION_VERSION, 0)
        if level != self._transaction_version:
            self._transaction_version = level
            self.reconfigure(self._config)
