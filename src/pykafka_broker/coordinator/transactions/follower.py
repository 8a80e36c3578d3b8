"""Keeps a transaction service up to date with the broker's configuration, and with the finalised level of
`transaction.version` in the cluster's metadata.
"""

from __future__ import annotations

from pykafka_broker.cluster.features import TRANSACTION_VERSION
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.config import BrokerConfig
from pykafka_broker.coordinator.transactions.service import TransactionService
from pykafka_broker.coordinator.transactions.settings import transaction_config


class TransactionFollower:
    """Keeps a transaction service's settings as configured."""

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
