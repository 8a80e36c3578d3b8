"""One secured node of each kind: what TLS costs beside plain text, also on either event loop, and what ACLs
cost one record.

The node has a listener for each: `PLAINTEXT`, and `TLS` with the certificate of an authority made for the
run, on the curve P-256. Client and node settle on the cipher.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from bench import bare_tls, load, pinger
from bench.cluster import JVM_OPTIONS, START_TIMEOUT_S
from bench.process import cpu_seconds, touch_memory
from pykafka_broker.testing.apache.nodes import Node, Software
from pykafka_broker.testing.processes import free_port
from pykafka_broker.tls.authority import Authority

HOST = "127.0.0.1"
TOPIC = "bench-secured"
PARTITIONS = 4
RECORD_BYTES = 1_000
GB, MB = 1_000_000_000, 1_000_000
#: Of which one allows what is measured.
ACLS = 100_000
#: As many as Apache Kafka takes in one request without a limit of its own being near.
ACLS_OF_A_REQUEST = 2_000
PATIENCE_S = 120
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:CN={HOST}",
}


@dataclass(frozen=True)
class Secured:
    """A node that runs; `certificate` is its key and certificate, by which it is its own super user."""

    node: Node
    plain: str
    tls: str
    nodes: str
    authority: str
    certificate: str

    def admin(self) -> AdminClient:
        """An administrator with the rights of the node."""
        return AdminClient(
            {
                "bootstrap.servers": self.nodes,
                "security.protocol": "ssl",
                "ssl.ca.location": self.authority,
                "ssl.certificate.location": self.certificate,
                "ssl.key.location": self.certificate,
                "enable.metrics.push": False,
                "log_level": 0,
            }
        )

    def processor_seconds(self) -> float:
        return cpu_seconds(self.node.pid)


@contextlib.contextmanager
def secured(
    software: Software, more: Mapping[str, str] | None = None, kind: type[Node] = Node
) -> Iterator[Secured]:
    """A node of this class with a topic, started with `more` properties."""
    with tempfile.TemporaryDirectory(prefix="bench-secured-") as folder:
        path = Path(folder)
        authority = Authority.new(datetime.now(UTC), days=1)
        issued = authority.for_server([HOST])
        (path / "ca.pem").write_bytes(authority.own.certificate_pem)
        (path / "node.pem").write_bytes(issued.key_pem + issued.certificate_pem)
        node = kind(
            1,
            software,
            "broker,controller",
            controller_port=free_port(),
            properties={},
            folder=path,
            format_options=("--standalone",),
        )
        node.jvm_options = JVM_OPTIONS
        node.start_timeout_s = START_TIMEOUT_S
        tls, nodes = (f"{HOST}:{free_port()}" for _ in range(2))
        listeners = {
            "PLAINTEXT": (node.address, "PLAINTEXT"),
            "TLS": (tls, "SSL"),
            "NODES": (nodes, "SSL"),
            "CONTROLLER": (node.controller_address, "SSL"),
        }
        node.properties |= {
            "controller.quorum.bootstrap.servers": node.controller_address,
            "listeners": ",".join(f"{name}://{address}" for name, (address, _) in listeners.items()),
            "listener.security.protocol.map": ",".join(f"{name}:{to}" for name, (_, to) in listeners.items()),
            "inter.broker.listener.name": "NODES",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(path / "node.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(path / "ca.pem"),
            "listener.name.nodes.ssl.client.auth": "required",
            "listener.name.controller.ssl.client.auth": "required",
            **(more or {}),
        }
        with node:
            running = Secured(node, node.address, tls, nodes, str(path / "ca.pem"), str(path / "node.pem"))
            admin = running.admin()
            for created in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
                created.result(PATIENCE_S)
            yield running


# -- TLS -------------------------------------------------------------------------------------------------


def tls_produce(software: Software, scale: float) -> dict[str, float]:
    """Records of 1 KB with acks=all, first in plain text, then with TLS."""
    records = scaled(2_000_000, scale)
    with secured(software) as broker:
        # The same load once before, for compilers and page cache.
        for address, options in ways(broker):
            load.run("produce", address, TOPIC, records // 5, size=RECORD_BYTES, **options)
        return beside_plain_text(broker, "produce", records)


def tls_consume(software: Software, scale: float) -> dict[str, float]:
    """The records of one topic, read in plain text, then with TLS; they are in the page cache."""
    records = scaled(2_000_000, scale)
    with secured(software) as broker:
        touch_memory(broker.node.folder, int(records * RECORD_BYTES * 1.2))
        load.run("produce", broker.plain, TOPIC, records, size=RECORD_BYTES)
        for address, options in ways(broker):
            load.run("consume", address, TOPIC, records // 5, size=RECORD_BYTES, **options)
        return beside_plain_text(broker, "consume", records)


def ways(broker: Secured) -> tuple[tuple[str, dict[str, str]], ...]:
    """The addresses in plain text and with TLS, each with what the load generator needs for it."""
    return (broker.plain, {}), (broker.tls, {"ca": broker.authority})


def beside_plain_text(broker: Secured, what: str, records: int) -> dict[str, float]:
    """The figures with TLS. `share` is what is left of the payload that a second of the broker's processor
    moves in plain text; `of_possible` is that as a part of what would be left if TLS cost only what it costs
    by itself.
    """
    (_, plain_cpu), (mb_s, cpu) = [moved(broker, what, records, *way) for way in ways(broker)]
    cost = bare_tls.cipher()
    by_itself = cost.decrypt if what == "produce" else cost.encrypt
    return {
        "mb_s": mb_s,
        "cpu": cpu,
        "share": plain_cpu / cpu,
        "of_possible": (plain_cpu + by_itself) / cpu,
    }


def moved(
    broker: Secured, what: str, records: int, address: str, options: Mapping[str, str]
) -> tuple[float, float]:
    """The payload in MB a second, and the broker's processor seconds for each GB of it."""
    payload = records * RECORD_BYTES
    if what == "produce":
        touch_memory(broker.node.folder, int(payload * 1.2))
    before = broker.processor_seconds()
    result = load.run(what, address, TOPIC, records, size=RECORD_BYTES, **options)
    used = broker.processor_seconds() - before
    return payload / result["seconds"] / MB, used / (payload / GB)


class OnAsyncio(Node):
    """One of ours that runs on asyncio's own event loop, as where uvloop cannot be imported."""

    def command(self) -> list[str]:
        python, _, module, *arguments = super().command()
        run = f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
        return [python, "-c", f"import runpy, sys; sys.modules['uvloop'] = None; {run}", *arguments]


def tls_loops(software: Software, scale: float) -> dict[str, float]:
    """Records of 1 KB, produced and consumed with TLS, by one of our nodes on uvloop and by one on asyncio's
    own event loop. Apache Kafka has neither, and no figures.
    """
    figures: dict[str, float] = {}
    if software == "apache":
        return figures
    records = scaled(1_000_000, scale)
    for loop, kind in (("uvloop", Node), ("asyncio", OnAsyncio)):
        with secured(software, kind=kind) as broker:
            _, tls = ways(broker)
            for what in ("produce", "consume"):
                # The same load once before, for the page cache.
                load.run(what, tls[0], TOPIC, records // 5, size=RECORD_BYTES, **tls[1])
                _, figures[f"{what}_{loop}"] = moved(broker, what, records, *tls)
    return figures


# -- ACLs ------------------------------------------------------------------------------------------------


def acls(software: Software, scale: float) -> dict[str, float]:
    """One record at a time, which an ACL allows: where that is the only one, and beside 100,000 others of
    other users and topics, a tenth of them for prefixes.
    """
    count = scaled(ACLS, scale)
    pings = scaled(20_000, scale)
    with secured(software, AUTHORIZER) as broker:
        admin = broker.admin()
        create(admin, [allow(TOPIC, "User:ANONYMOUS")])
        pinger.one_at_a_time(broker.plain, TOPIC, pings)
        alone = pinger.one_at_a_time(broker.plain, TOPIC, pings)
        others = [
            allow(f"other-{n}", f"User:user-{n % 1_000}", is_prefix=n % 10 == 0) for n in range(count - 1)
        ]
        for start in range(0, len(others), ACLS_OF_A_REQUEST):
            create(admin, others[start : start + ACLS_OF_A_REQUEST])
        beside = pinger.one_at_a_time(broker.plain, TOPIC, pings)
    return {
        "p50_us": beside["p50_us"],
        "p99_us": beside["p99_us"],
        "ratio": beside["p50_us"] / alone["p50_us"],
    }


def allow(topic: str, principal: str, *, is_prefix: bool = False) -> AclBinding:
    """An ACL by which a principal may write to a topic, or to all with this prefix."""
    pattern = ResourcePatternType.PREFIXED if is_prefix else ResourcePatternType.LITERAL
    permission = AclPermissionType.ALLOW
    return AclBinding(ResourceType.TOPIC, topic, pattern, principal, "*", AclOperation.WRITE, permission)


def create(admin: AdminClient, bindings: list[AclBinding]) -> None:
    for created in admin.create_acls(bindings, request_timeout=PATIENCE_S).values():
        created.result(PATIENCE_S)


def scaled(count: int, scale: float) -> int:
    return max(1_000, int(count * scale))


SecuredRow = Callable[[Software, float], dict[str, float]]

#: The rows by their names in the table.
ROWS: dict[str, SecuredRow] = {row.__name__: row for row in (tls_produce, tls_consume, tls_loops, acls)}
