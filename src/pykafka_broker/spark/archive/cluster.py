"""The state of the archived topics, as the brokers describe it.

They are reached without TLS and SASL, as this package's client has neither.
"""

from __future__ import annotations

from collections.abc import Collection

from pykafka_broker import __version__
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.connection import Identity
from pykafka_broker.client.offsets import LATEST, list_offsets
from pykafka_broker.spark.checkpoint.files import Offsets
from pykafka_broker.spark.checkpoint.topics import Topic, look, topic_ids

TIMEOUT_S = 30.0
_ARCHIVER = Identity("pykafka-broker-spark", __version__, kind="archive")


class Cluster:
    """The brokers; each question has a connection of its own, for between two of them minutes may pass."""

    __slots__ = ("_bootstrap_servers",)

    def __init__(self, bootstrap_servers: str) -> None:
        """Raises ValueError: the bootstrap servers are no addresses."""
        self._bootstrap_servers = bootstrap_servers

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        """Those of the topics that exist; KafkaError or OSError where they cannot be asked for."""
        with self._client() as client:
            return look(client, names)

    def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        """The ids of those that exist; raises the errors of `topics`."""
        with self._client() as client:
            return topic_ids(client, names)

    def ends(self, partitions: Collection[tuple[str, int]]) -> Offsets:
        """The log ends of partitions that exist; raises the errors of `topics`."""
        with self._client() as client:
            return list_offsets(client, dict.fromkeys(partitions, LATEST), missing_ok=True)

    def _client(self) -> Client:
        return Client(self._bootstrap_servers, TIMEOUT_S, identity=_ARCHIVER)
