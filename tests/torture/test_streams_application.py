"""The application of Kafka Streams tells why it has ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from pykafka_broker import Cluster
from tests.support.waiting import until
from tests.torture.clients import PATIENCE_S, QUIET, TOPIC, create_ledger
from tests.torture.streams_application import COPY, StreamsApplication


@pytest.mark.slow
def test_an_application_that_ends_shows_the_exception_that_ended_it(tmp_path: Path) -> None:
    with Cluster(nodes=1) as cluster:
        client: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap_servers, **QUIET}
        create_ledger(cluster.bootstrap_servers, partitions=1)
        with StreamsApplication(cluster.bootstrap_servers, tmp_path, 1) as application:
            no_record = ConfigEntry("max.message.bytes", "1", incremental_operation=AlterConfigOpType.SET)
            of_the_copy = ConfigResource(ResourceType.TOPIC, COPY, incremental_configs=[no_record])
            admin = AdminClient(client)  # which the result needs until it is there
            for altered in admin.incremental_alter_configs([of_the_copy]).values():
                altered.result(PATIENCE_S)
            producer = Producer(client)
            producer.produce(TOPIC, b"too large for the copy")
            assert producer.flush(PATIENCE_S) == 0
            until(lambda: application.end is not None, "it has ended", PATIENCE_S)
            assert application.end is not None
            _, log = application.end
    assert "RecordTooLargeException" in log
    assert "at org.apache.kafka.streams." in log
