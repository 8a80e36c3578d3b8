"""The addresses that brokers advertise, which clients use for everything but their first request.

A client asks its bootstrap server for the cluster's metadata and from then on connects to the advertised
addresses in it. If these do not lead to the brokers from where the client is, it gets metadata, and then
waits for the leader of a partition until its own time-out, often 60 s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pykafka_broker.client.blocking import Client
from pykafka_broker.doctor.findings import Finding, ok, problem, warning
from pykafka_broker.doctor.reach import Address, Answer, Kind, is_loopback, probe, shown
from pykafka_broker.protocol.errors import KafkaError, ProtocolError
from pykafka_broker.system.named_tuple import NamedTuple

NO_CONTROLLER = -1
#: Connects to the brokers at an address; they may take so many seconds to answer.
Connect = Callable[[str, float], Client]


class Cluster(NamedTuple):
    """The cluster as described by one answer to Metadata."""

    cluster_id: str
    controller_id: int
    #: Node id -> the address it advertises to this listener.
    brokers: Mapping[int, Address]


class Advertised(NamedTuple):
    """The answer at the address that a broker advertises."""

    answer: Answer
    #: The cluster that answers there; "" where none does.
    cluster_id: str = ""


def look(client: Client, connect: Connect = Client) -> tuple[Cluster, dict[int, Advertised]]:
    """Ask for the brokers, and ask each of them."""
    metadata = client.metadata([])
    cluster = Cluster(
        metadata.cluster_id or "",
        metadata.controller_id,
        {broker.node_id: (broker.host, broker.port) for broker in metadata.brokers},
    )
    return cluster, {
        node_id: _found(address, client.timeout_s, connect)
        for node_id, address in sorted(cluster.brokers.items())
    }


def _found(address: Address, timeout_s: float, connect: Connect) -> Advertised:
    answer = probe(address, timeout_s)
    if answer.kind is not Kind.KAFKA:
        return Advertised(answer)
    try:
        with connect(shown(address), timeout_s) as client:
            return Advertised(answer, client.metadata([]).cluster_id or "")
    except (OSError, KafkaError, ProtocolError) as error:
        return Advertised(Answer(Kind.CLOSES, str(error)))


def judge(bootstrap: Address, cluster: Cluster, found: Mapping[int, Advertised]) -> list[Finding]:
    """Judge the advertised addresses for a client that came by this bootstrap address."""
    if not cluster.brokers:
        return [
            problem(
                "brokers",
                shown(bootstrap),
                f"{shown(bootstrap)} knows no broker, not even itself.",
                "It is still starting, or it is fenced by the controller: look at its log.",
            )
        ]
    findings = [_about(bootstrap, cluster, node_id, found[node_id]) for node_id in sorted(cluster.brokers)]
    if cluster.controller_id == NO_CONTROLLER:
        findings.append(
            problem(
                "brokers",
                cluster.cluster_id,
                "The cluster has no active controller: topics cannot be created, leaders not elected.",
                "Start the missing controllers: more than half of controller.quorum.voters must run.",
            )
        )
    return findings


def _about(bootstrap: Address, cluster: Cluster, node_id: int, found: Advertised) -> Finding:
    address = cluster.brokers[node_id]
    where = shown(address)
    subject = f"broker {node_id}"
    if found.answer.kind is Kind.KAFKA and found.cluster_id == cluster.cluster_id:
        if is_loopback(address[0]) and not is_loopback(bootstrap[0]):
            return warning(
                "brokers",
                subject,
                f"Broker {node_id} advertises {where}, which every machine takes for itself: it works from "
                "this machine only.",
                _advertise(bootstrap),
            )
        return ok("brokers", subject, f"Broker {node_id} advertises {where}, and answers there.")
    if found.answer.kind is Kind.KAFKA:
        return problem(
            "brokers",
            subject,
            f"Broker {node_id} advertises {where}, where a broker of another cluster answers: "
            f"{found.cluster_id or 'unknown'} instead of {cluster.cluster_id}.",
            _advertise(bootstrap),
        )
    reasons = {
        Kind.UNKNOWN_HOST: "a host name that is not known here",
        Kind.REFUSED: "where no process listens",
        Kind.TIMED_OUT: "which does not answer from here",
        Kind.UNREACHABLE: f"which cannot be reached from here ({found.answer.detail})",
        Kind.TLS: "where TLS is spoken, on a listener for plain text",
        Kind.HTTP: "where a web server answers",
        Kind.OTHER: "where something else than Kafka answers",
        Kind.CLOSES: "which closes the connection",
        Kind.SILENT: "which accepts the connection and does not answer",
    }
    return problem(
        "brokers",
        subject,
        f"Broker {node_id} advertises {where}, {reasons[found.answer.kind]}. Clients get metadata from "
        f"{shown(bootstrap)} and then wait for {where} until they time out, often after 60 s.",
        _advertise(bootstrap),
    )


def _advertise(bootstrap: Address) -> str:
    return (
        "Have the broker advertise an address that its clients reach, for instance the one that answered "
        "now:\n"
        f"  advertised.listeners=PLAINTEXT://{shown(bootstrap)}\n"
        f"in a container KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{shown(bootstrap)}, and restart it. Clients "
        "in different networks need a listener each."
    )
