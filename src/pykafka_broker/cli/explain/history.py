"""The histories of brokers, from their metrics listeners on loopback addresses.

A broker says over Kafka's API, DescribeConfigs, on which addresses its metrics listeners are: that needs the
login and the permission that the cluster asks for. The history itself has no login, so that only loopback
addresses serve it, and only those are asked. The answer names its cluster and its broker: at the same address
of another machine another node may listen. A console in the process of a broker reads its history directly,
and shows it to users who may describe the configs of the broker.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

from pykafka_broker.cli.configs import BROKER, Resource, config_entries
from pykafka_broker.cli.explain.explanation import Fact
from pykafka_broker.client.blocking import Client
from pykafka_broker.machine.history import Kind
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.system.host_text import is_loopback
from pykafka_broker.system.named_tuple import NamedTuple

KEY = "metrics.listeners"
#: How long to wait for silent brokers of this machine, all together; and the most bytes of an answer.
WITHIN_S = 3.0
MOST_BYTES = 4 * 1024 * 1024


class NodeHistory(NamedTuple):
    """What one broker tells."""

    node_id: int
    now: list[Fact]
    history: list[Fact]


class OwnHistory(NamedTuple):
    """The history of the broker in this process."""

    node_id: int
    #: What its metrics listener would answer. Raises TimeoutError if that takes longer than `WITHIN_S`.
    tell: Callable[[Kind, str], dict[str, Any]]


class Histories(NamedTuple):
    """What all brokers tell, and why others do not."""

    nodes: list[NodeHistory]
    missing: list[str]


class Untold(Exception):
    """A broker does not tell its history; the text says why."""


def histories(client: Client, kind: Kind, name: str, own: OwnHistory | None = None) -> Histories:
    """Ask every broker of the cluster, but that of `own` only whether the user may see its history."""
    brokers = BrokerHistories(client, own)
    found = Histories([], [])
    for node_id in brokers.node_ids:
        try:
            found.nodes.append(brokers.history(node_id, kind, name))
        except Untold as error:
            found.missing.append(f"broker {node_id} {error}.")
    return found


class BrokerHistories:
    """The histories of the brokers of a cluster, which all together take at most `WITHIN_S`."""

    def __init__(self, client: Client, own: OwnHistory | None = None) -> None:
        metadata = client.metadata([])
        self.node_ids = sorted(broker.node_id for broker in metadata.brokers)
        self._client = client
        self._cluster_id = metadata.cluster_id
        self._own = own
        self._left_s = WITHIN_S
        self._listeners: dict[int, list[str]] = {}

    def history(self, node_id: int, kind: Kind, name: str) -> NodeHistory:
        """What one of them tells.

        Raises:
            Untold: it does not.
        """
        if node_id not in self._listeners:
            self._listeners[node_id] = _listeners(self._client, node_id)
        if self._own is not None and self._own.node_id == node_id:
            return _history(node_id, _of_own(self._own, kind, name))
        url = _on_loopback(self._listeners[node_id])
        began_s = time.monotonic()
        try:
            answer = _ask(url, kind, name, self._left_s)
        finally:
            self._left_s -= time.monotonic() - began_s
        if (answer.get("cluster_id"), answer.get("node_id")) != (self._cluster_id, node_id):
            raise Untold(f"is not the one at {url} of this machine: ask on the machine of the broker")
        return _history(node_id, answer)


def _of_own(own: OwnHistory, kind: Kind, name: str) -> dict[str, Any]:
    try:
        return own.tell(kind, name)
    except TimeoutError:
        raise Untold(f"has not told its history within {WITHIN_S:.0f} s") from None


def _listeners(client: Client, node_id: int) -> list[str]:
    """The URLs of a broker's metrics listeners, which it tells those who may see its history."""
    try:
        broker = Resource(BROKER, str(node_id))
        told = config_entries(client, broker, documentation=False, keys=[KEY])
    except (KafkaError, OSError) as error:
        raise Untold(f"does not tell its {KEY}: {error}") from None
    return [url.strip() for entry in told for url in (entry.value or "").split(",")]


def _on_loopback(urls: list[str]) -> str:
    """The first URL on a loopback address: where a broker serves its history."""
    for url in urls:
        if is_loopback(urlsplit(url).hostname or ""):
            return url
    raise Untold("tells of no metrics listener on a loopback address, such as `start --metrics` opens")


def _history(node_id: int, answer: dict[str, Any]) -> NodeHistory:
    try:
        now = [Fact(each["text"], each["remedy"], node_id) for each in answer["now"]]
        history = [
            Fact(each["text"], each["remedy"], node_id, each["first_ms"], each["last_ms"], each["times"])
            for each in answer["history"]
        ]
    except (KeyError, TypeError):
        raise Untold("tells its history in the words of another version") from None
    return NodeHistory(node_id, now, history)


def _ask(url: str, kind: Kind, name: str, within_s: float) -> dict[str, Any]:
    if within_s <= 0:
        raise Untold(f"is not asked: the brokers before it took {WITHIN_S:g} s")
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=within_s)
    try:
        connection.request("GET", "/explain?" + urlencode({"kind": kind.value, "name": name}))
        response = connection.getresponse()
        body = response.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            raise Untold(f"answers more than {MOST_BYTES} bytes at {url}")
        if response.status != 200:
            raise Untold(f"answers {response.status} at {url}")
        answer = json.loads(body)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Untold(f"does not answer at {url} of this machine ({error}): ask on its machine") from None
    finally:
        connection.close()
    if not isinstance(answer, dict):
        raise Untold(f"answers no explanation at {url}")
    return answer
