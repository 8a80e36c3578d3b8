"""The settings of the transaction coordinator, from the broker's configuration and the cluster's features."""

from __future__ import annotations

from pykafka_broker.config import BrokerConfig
from pykafka_broker.coordinator.transactions.core.state import TransactionConfig


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
