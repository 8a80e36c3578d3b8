"""The settings of the transaction coordinator, from the broker's configuration and the cluster's features."""

from __future__ import annotations

from pykafka_broker.cluster.features import TRANSACTION_VERSION
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.config import BrokerConfig
from pykafka_broker.coordinator.transactions.core.state import TransactionConfig
from pykafka_broker.coordinator.transactions.service import TransactionService


class TransactionCoordinatorSettings:
    """Keeps a transaction service up to date with its settings."""

    def __init__(self, service: TransactionService, config: BrokerConfig) -> None:
        self._service = service
        self._config = config
        self._transaction_version = 0

    def load_buffer_bytes(self) -> int:
        """The bytes of a log to read at a time."""
        size: int = self._config["transaction.state.log.load.buffer.size"]
        return size

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply changed broker settings."""
        self._config = config
        self._service.config = transaction_config(config, self._transaction_version)

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        """Follow the finalised level of the feature."""
        level = new.features.get(TRANSACTION_VERSION, 0)
        if level != self._transaction_version:
            self._transaction_version = level
            self.reconfigure(self._config)


def transaction_config(config: BrokerConfig, transaction_version: int) -> TransactionConfig:
    """The values the coordinator acts on, at the finalised level of the feature."""
    return TransactionConfig(
        transaction_max_timeout_ms=config["transaction.max.timeout.ms"],
        transactional_id_expiration_ms=config["transactional.id.expiration.ms"],
        transaction_abort_timed_out_interval_ms=config[
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        ],
        transaction_remove_expired_interval_ms=config[
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        ],
        add_partitions_retry_backoff_ms=config["add.partitions.to.txn.retry.backoff.ms"],
        add_partitions_retry_backoff_max_ms=min(
            config["add.partitions.to.txn.retry.backoff.max.ms"], config["request.timeout.ms"]
        ),
        transaction_version=transaction_version,
    )
