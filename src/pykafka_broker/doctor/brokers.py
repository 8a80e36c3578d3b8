"""The addresses that brokers advertise, which clients use for everything but their first request.

A client asks its bootstrap server for the cluster's metadata and from then on connects to the advertised
addresses in it. If these do not lead to the brokers from where the client is, it gets metadata, and then
waits for the leader of a partition until its own time-out, often 60 s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pykafka_broker.client.blocking import Client, Tls
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


def look(
    client: Client, connect: Connect = Client, tls: Tls | None = None
) -> tuple[Cluster, dict[int, Advertised]]:
    """Ask for the brokers, and ask each of them, with the TLS of the client."""
    metadata = client.metadata([])
    cluster = Cluster(
        metadata.cluster_id or "",
        metadata.controller_id,
        {broker.node_id: (broker.host, broker.port) for broker in metadata.brokers},
    )
    return cluster, {
        node_id: _found(address, client.timeout_s, connect, tls)
        for node_id, address in sorted(cluster.brokers.items())
    }


def _found(address: Address, timeout_s: float, connect: Connect, tls: Tls | None) -> Advertised:
    answer = probe(address, timeout_s, tls)
    if answer.kind is not Kind.KAFKA:
        return Advertised(answer)
    try:
        with connect(shown(address), timeout_s) as client:
            return Advertised(answer, client.metadata([]).cluster_id or "")
    except (OSError, KafkaError, ProtocolError) as error:
        return Advertised(Answer(Kind.CLOSES, str(error)))


def judge(
    bootstrap: Address, cluster: Cluster, found: Mapping[int, Advertised], protocol: str = "PLAINTEXT"
) -> list[Finding]:
    """Judge the advertised addresses for a client that came by this bootstrap address, with this security
    protocol.
    """
    if not cluster.brokers:
        return [
            problem(
                "brokers",
                shown(bootstrap),
                f"{shown(bootstrap)} knows no broker, not even itself.",
                "It is still starting, or it is fenced by the controller: look at its log.",
            )
        ]
    findings = [_about(bootstrap, cluster, node_id, found, protocol) for node_id in sorted(cluster.brokers)]
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


def _about(
    bootstrap: Address, cluster: Cluster, node_id: int, found: Mapping[int, Advertised], protocol: str
) -> Finding:
    address = cluster.brokers[node_id]
    where = shown(address)
    subject = f"broker {node_id}"
    answer = found[node_id].answer
    if _answers(found[node_id], cluster):
        if is_loopback(address[0]) and not is_loopback(bootstrap[0]):
            # Other brokers have the host in common with the one that answered, but not its port.
            reached = bootstrap if len(cluster.brokers) == 1 else (bootstrap[0], address[1])
            return warning(
                "brokers",
                subject,
                f"Broker {node_id} advertises {where}, which every machine takes for itself: it works from "
                "this machine only.",
                _advertise(reached, protocol),
            )
        return ok("brokers", subject, f"Broker {node_id} advertises {where}, and answers there.")
    # Where no broker answers as advertised, the one at the bootstrap address does not either: it is not down.
    if answer.kind in _DOWN and any(_answers(other, cluster) for other in found.values()):
        return problem(
            "brokers",
            subject,
            f"Broker {node_id} does not answer at {where}, {_reason(answer)}. Clients that need it wait "
            "until another takes its place, or they time out.",
            "Is it running? Start it, or look at its log. If it runs, clients do not reach it by the address "
            "that it advertises (advertised.listeners).",
        )
    remedy = _advertise(bootstrap, protocol) if len(cluster.brokers) == 1 else _advertise_its_own(protocol)
    if answer.kind is Kind.KAFKA:
        return problem(
            "brokers",
            subject,
            f"Broker {node_id} advertises {where}, where a broker of another cluster answers: "
            f"{found[node_id].cluster_id or 'unknown'} instead of {cluster.cluster_id}.",
            remedy,
        )
    return problem(
        "brokers",
        subject,
        f"Broker {node_id} advertises {where}, {_reason(answer)}. Clients get metadata from "
        f"{shown(bootstrap)} and then wait for {where} until they time out, often after 60 s.",
        remedy,
    )


#: How an address answers, or does not, whose broker may be down or hang.
_DOWN = frozenset({Kind.REFUSED, Kind.TIMED_OUT, Kind.UNREACHABLE, Kind.CLOSES, Kind.SILENT})


def _answers(found: Advertised, cluster: Cluster) -> bool:
    return found.answer.kind is Kind.KAFKA and found.cluster_id == cluster.cluster_id


def _reason(answer: Answer) -> str:
    """Why an address does not lead to its broker, as the rest of a sentence that names the address."""
    return {
        Kind.UNKNOWN_HOST: "a host name that is not known here",
        Kind.REFUSED: "where no process listens",
        Kind.TIMED_OUT: "which does not answer from here",
        Kind.UNREACHABLE: f"which cannot be reached from here ({answer.detail})",
        Kind.TLS: "where TLS is spoken, on a listener for plain text",
        Kind.PLAIN_TEXT: "where TLS is not spoken",
        Kind.UNTRUSTED: f"where a certificate is shown that is not trusted ({answer.detail})",
        Kind.NO_AGREEMENT: f"which does not agree on TLS ({answer.detail})",
        Kind.HTTP: "where a web server answers",
        Kind.OTHER: "where something else than Kafka answers",
        Kind.CLOSES: "which closes the connection",
        Kind.SILENT: "which accepts the connection and does not answer",
    }[answer.kind]


def _advertise(bootstrap: Address, protocol: str) -> str:
    return (
        "Have the broker advertise an address that its clients reach, for instance the one that answered "
        "now:\n"
        f"  advertised.listeners={protocol}://{shown(bootstrap)}\n"
        f"in a container KAFKA_ADVERTISED_LISTENERS={protocol}://{shown(bootstrap)}, and restart it. Clients "
        "in different networks need a listener each."
    )


def _advertise_its_own(protocol: str) -> str:
    return (
        "Have the broker advertise an address of its own that its clients reach:\n"
        f"  advertised.listeners={protocol}://HOST:PORT\n"
        f"in a container KAFKA_ADVERTISED_LISTENERS={protocol}://HOST:PORT, and restart it. Clients in "
        "different networks need a listener each."
    )
