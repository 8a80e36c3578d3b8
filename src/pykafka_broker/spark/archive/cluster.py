"""The state of the archived topics, as the brokers describe it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pykafka_broker import __version__
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import Identity
from pykafka_broker.client.offsets import LATEST, list_offsets
from pykafka_broker.spark.checkpoint.files import Offsets
from pykafka_broker.spark.checkpoint.topics import Topic, look, topic_ids
from pykafka_broker.spark.security import OPEN, secured

TIMEOUT_S = 30.0
_ARCHIVER = Identity("pykafka-broker-spark", __version__, kind="archive")


class Cluster:
    """Asks the brokers. Each question has its own connection, because minutes may pass between two."""

    __slots__ = ("_bootstrap_servers", "_identity")

    def __init__(self, bootstrap_servers: str, security: Mapping[str, str] = OPEN) -> None:
        """`security` are properties of Kafka's clients.

        Raises:
            ValueError: the bootstrap servers are no addresses.
            SparkError: there is no such security.
        """
        self._bootstrap_servers = bootstrap_servers
        self._identity = secured(_ARCHIVER, security)

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        """The topics that exist. Raises KafkaError if one cannot be read now, OSError if no broker
        answers.
        """
        with self._client() as client:
            return look(client, names)

    def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        """The ids of the topics that exist; raises the errors of `topics`."""
        with self._client() as client:
            return topic_ids(client, names)

    def ends(self, partitions: Collection[tuple[str, int]]) -> Offsets:
        """The log ends of partitions that exist; raises the errors of `topics`."""
        with self._client() as client:
            return list_offsets(client, dict.fromkeys(partitions, LATEST), missing_ok=True)

    def _client(self) -> Client:
        return Client(self._bootstrap_servers, TIMEOUT_S, identity=self._identity)
