"""The users as whom the clients of the torture come, for clusters that ask for none.

writer      writes the ledger, and to nodes that are cut off
reader      reads it, and commits as the bookkeepers
member      reads it in the groups
teller      writes the transfers
auditor     reads them in the end
clerk       creates and deletes topics, and looks at their replicas
spark       reads the ledger as a query of Spark
copyist     copies it as an application of Kafka Streams
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from pykafka_broker.client.blocking import BlockingConnection
from pykafka_broker.client.core.addresses import parse_address


class Users:
    """Makes the clients of each user, who is nobody here."""

    def producer(self, _user: str, settings: Mapping[str, Any]) -> Producer:
        """A producer with these settings of librdkafka."""
        return Producer(dict(settings))

    def consumer(self, _user: str, settings: Mapping[str, Any]) -> Consumer:
        """A consumer with these settings."""
        return Consumer(dict(settings))

    def admin(self, _user: str, settings: Mapping[str, Any]) -> AdminClient:
        """An administrator with these settings."""
        return AdminClient(dict(settings))

    def connection(self, _user: str, address: str) -> BlockingConnection:
        """A connection to one broker. Raises as `BlockingConnection`."""
        return BlockingConnection(parse_address(address))

    def of_java(self, _user: str) -> Mapping[str, str]:
        """The settings of a client in Java that make it this user's."""
        return {}


ANYBODY = Users()
