"""Families of listeners and connections, and of the event loop that serves them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

from pykafka_broker.metrics.family import Family, Pausing, Sample, labelled
from pykafka_broker.metrics.node_parts import NodeParts, Scrape
from pykafka_broker.network.connection import Connection
from pykafka_broker.system.processes import waited_for_core_ns

#: Connections that are looked at before the event loop runs other work.
CONNECTIONS_PER_SLICE = 500


def _connection_count(scrape: Scrape) -> Iterable[Sample]:
    for name, listener in list(scrape.node.listeners.listeners.items()):
        yield labelled(listener=name, networkProcessor=0), listener.connections


def _software(scrape: Scrape) -> Pausing:
    counts: Counter[tuple[str, str, str]] = Counter()
    for index, connection in enumerate(list(scrape.node.listeners.shared.connections), 1):
        if isinstance(connection, Connection):
            counts[(connection.listener_name, *connection.software)] += 1
        if index % CONNECTIONS_PER_SLICE == 0:
            yield None
    for (listener, name, version), count in counts.items():
        yield (
            labelled(
                clientSoftwareName=name, clientSoftwareVersion=version, listener=listener, networkProcessor=0
            ),
            count,
        )


def _counter(name: str, meaning: str) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        yield "", getattr(scrape.node.listeners.shared.counters, name)

    return Family(f"pykafka_broker_{name}_total", "counter", "", meaning, "", read)


def _idle(node: NodeParts) -> float:
    """The share of the time since the last scrape in which the event loop neither ran nor waited for a core.

    uvloop does not tell how long it waits for events.
    """
    busy_ns = time.thread_time_ns() + waited_for_core_ns()
    return max(0.0, 1.0 - node.rates.of("thread", busy_ns / 1e9))


def _idle_share(scrape: Scrape) -> Iterable[Sample]:
    yield "", round(scrape.once(_idle), 6)


FAMILIES = (
    Family(
        "kafka_server_socket_server_metrics_connection_count",
        "gauge",
        "listener networkProcessor",
        "Open connections of each listener.",
        "kafka.server:type=socket-server-metrics,listener=*,networkProcessor=*, connection-count",
        _connection_count,
    ),
    Family(
        "kafka_server_socket_server_metrics_connections_software",
        "gauge",
        "clientSoftwareName clientSoftwareVersion listener networkProcessor",
        "Open connections by the client's software (KIP-511); `unknown` until it has named itself.",
        "kafka.server:type=socket-server-metrics,clientSoftwareName=*,clientSoftwareVersion=*,listener=*,"
        "networkProcessor=*, connections",
        _software,
    ),
    Family(
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        "gauge",
        "",
        "The share of the time since the last scrape, from 0 to 1, in which the event loop neither ran nor "
        "waited for a core (known on Linux). A wait for a disk counts as idle.",
        "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
        _idle_share,
    ),
    Family(
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        "gauge",
        "",
        "The same: the event loop runs the handlers too.",
        "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
        _idle_share,
    ),
    _counter("bytes_received", "Bytes of Kafka's protocol from clients and other nodes."),
    _counter("bytes_sent", "Bytes of Kafka's protocol to them."),
    _counter("connections_opened", "Connections that speak Kafka's protocol."),
    _counter("connections_rejected", "Clients that were not let in."),
    _counter("connections_closed_idle", "Connections closed because they were idle."),
    _counter(
        "connections_closed_for_errors",
        "Connections closed because the peer broke the protocol, was too slow or failed to log in.",
    ),
    _counter("handler_failures", "Requests that failed for a reason that no client expects."),
)
