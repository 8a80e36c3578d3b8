"""The histories of brokers, from their metrics listeners on loopback addresses.

A broker says over Kafka's API, DescribeConfigs, on which addresses its metrics listeners are: that needs the
login and the permission that the cluster asks for. The history itself has no login, so that only loopback
addresses serve it, and only those are asked. The answer names its cluster and its broker: at the same address
of another machine another node may listen.
"""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlencode, urlsplit

from pykafka_broker.cli.explain.explanation import Fact
from pykafka_broker.client.blocking import Client
from pykafka_broker.doctor.topics import BROKER, configs
from pykafka_broker.machine.history import Kind
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.system.host_text import is_loopback
from pykafka_broker.system.named_tuple import NamedTuple

KEY = "metrics.listeners"
#: The time for an answer of this machine, and its most bytes.
WITHIN_S = 3.0
MOST_BYTES = 4 * 1024 * 1024


class NodeHistory(NamedTuple):
    """What one broker tells."""

    node_id: int
    now: list[Fact]
    history: list[Fact]


class Histories(NamedTuple):
    """What all brokers tell, and why others do not."""

    nodes: list[NodeHistory]
    missing: list[str]


class _Untold(Exception):
    """A broker does not tell its history; the text says why."""


def histories(client: Client, kind: Kind, name: str) -> Histories:
    """Ask every broker of the cluster."""
    metadata = client.metadata([])
    found = Histories([], [])
    for broker in sorted(metadata.brokers, key=lambda broker: broker.node_id):
        try:
            found.nodes.append(_history(client, metadata.cluster_id or "", broker.node_id, kind, name))
        except _Untold as error:
            found.missing.append(f"broker {broker.node_id} {error}.")
    return found


def _history(client: Client, cluster_id: str, node_id: int, kind: Kind, name: str) -> NodeHistory:
    try:
        told = configs(client, BROKER, str(node_id), KEY, node_id=node_id)
    except (KafkaError, OSError) as error:
        raise _Untold(f"does not tell its {KEY}: {error}") from None
    urls = [url.strip() for url in told.get(KEY, "").split(",")]
    urls = [url for url in urls if is_loopback(urlsplit(url).hostname or "")]
    if not urls:
        raise _Untold("tells of no metrics listener on a loopback address, such as `start --metrics` opens")
    answer = _ask(urls[0], kind, name)
    if (answer.get("cluster_id"), answer.get("node_id")) != (cluster_id, node_id):
        raise _Untold(f"is not the one at {urls[0]} of this machine: ask on the machine of the broker")
    now = [Fact(each["text"], each["remedy"], node_id) for each in answer["now"]]
    history = [
        Fact(each["text"], each["remedy"], node_id, each["first_ms"], each["last_ms"], each["times"])
        for each in answer["history"]
    ]
    return NodeHistory(node_id, now, history)


def _ask(url: str, kind: Kind, name: str) -> dict[str, Any]:
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port or 80, timeout=WITHIN_S)
    try:
        connection.request("GET", "/explain?" + urlencode({"kind": kind.value, "name": name}))
        response = connection.getresponse()
        body = response.read(MOST_BYTES)
        if response.status != 200:
            raise _Untold(f"answers {response.status} at {url}")
        answer = json.loads(body)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _Untold(f"does not answer at {url} of this machine ({error}): ask on its machine") from None
    finally:
        connection.close()
    if not isinstance(answer, dict):
        raise _Untold(f"answers no explanation at {url}")
    return answer
