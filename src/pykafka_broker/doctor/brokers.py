"""The addresses that brokers advertise, which clients use for everything but their first request.

A client asks its bootstrap server for the cluster's metadata and from then on connects to the advertised
addresses in it. If these do not lead to the brokers from where the client is, it gets metadata, and then
waits for the leader of a partition until its own time-out, often 60 s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pykafka_broker.client.blocking import Client, Tls
from pykafka_broker.client.core.connection import check
from pykafka_broker.doctor.findings import Finding, ok, problem, warning
from pykafka_broker.doctor.reach import (
    Address,
    Answer,
    Kind,
    StartingBroker,
    about_answer,
    all_at_once,
    probe,
    shown,
)
from pykafka_broker.doctor.topics import BROKER
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.system.host_text import is_loopback
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterResponse

NO_CONTROLLER = -1
#: The key of the API, and its first version that tells of fenced brokers.
DESCRIBE_CLUSTER, FENCED_SINCE = 60, 2
#: Connects to the brokers at an address, given it and the seconds that they may take to answer.
Connect = Callable[[str, float], Client]


class Cluster(NamedTuple):
    """The cluster as described by one answer to Metadata."""

    cluster_id: str
    controller_id: int
    #: Node id -> the address it advertises to this listener.
    brokers: Mapping[int, Address]


class Standing(NamedTuple):
    """A broker, as its own metadata shows it."""

    #: None if the broker's id cannot be told.
    node_id: int | None
    #: Whether it is among the registered brokers; None where that cannot be told.
    is_registered: bool | None = None
    is_fenced: bool = False


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
    known = sorted(cluster.brokers.items())
    found = all_at_once(lambda broker: _found(broker[1], client.timeout_s, connect, tls), known)
    return cluster, {node_id: advertised for (node_id, _), advertised in zip(known, found, strict=True)}


def _found(address: Address, timeout_s: float, connect: Connect, tls: Tls | None) -> Advertised:
    answer = probe(address, timeout_s, tls)
    if answer.kind is not Kind.KAFKA:
        return Advertised(answer)
    try:
        with connect(shown(address), timeout_s) as client:
            return Advertised(answer, client.metadata([]).cluster_id or "")
    except (OSError, KafkaError, ProtocolError) as error:
        return Advertised(Answer(Kind.CLOSES, str(error)))


def answering(cluster: Cluster, found: Mapping[int, Advertised]) -> set[int]:
    """The brokers that answer at the addresses that they advertise."""
    return {node_id for node_id, advertised in found.items() if _answers(advertised, cluster)}


def tells_fenced(client: Client) -> bool:
    """Whether DescribeCluster tells fenced brokers, as since Apache Kafka 4.0."""
    _, newest = client.connection().versions.get(DESCRIBE_CLUSTER, (0, -1))
    return newest >= FENCED_SINCE


def registered(client: Client) -> DescribeClusterResponse:
    """The cluster with its registered brokers, the fenced ones among them where `tells_fenced`.

    Raises:
        KafkaError: the brokers are older than Apache Kafka 2.8.
    """
    from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterRequest

    answer: DescribeClusterResponse = client.send(
        DescribeClusterRequest(
            include_cluster_authorized_operations=False, include_fenced_brokers=tells_fenced(client)
        )
    )
    check(answer.error_code, answer.error_message)
    return answer


def standing(client: Client) -> Standing:
    """The broker at the other end, and whether it is registered and unfenced.

    A broker describes only its own configuration (KIP-133), which tells its node id.

    Raises:
        KafkaError: the broker is too old, or does not tell this client.
    """
    from pykafka_broker.protocol.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
    )

    brokers = {broker.broker_id: broker for broker in registered(client).brokers}
    resources = [
        DescribeConfigsResource(
            resource_type=BROKER, resource_name=str(broker_id), configuration_keys=["node.id"]
        )
        for broker_id in sorted(brokers)
    ]
    results = client.send(DescribeConfigsRequest(resources=resources)).results
    for result in results:
        if not result.error_code:
            node_id = int(result.resource_name)
            return Standing(node_id, is_registered=True, is_fenced=brokers[node_id].is_fenced)
    are_others = all(result.error_code == ErrorCode.INVALID_REQUEST for result in results)
    return Standing(None, is_registered=False if are_others and tells_fenced(client) else None)


def known_at(client: Client) -> dict[Address, int]:
    """The registered brokers by the address that they advertise; none where that is not told."""
    try:
        return {(broker.host, broker.port): broker.broker_id for broker in registered(client).brokers}
    except (OSError, KafkaError, ProtocolError):
        return {}


def judge_address(
    address: Address,
    answer: Answer,
    reached: Address,
    known: Mapping[Address, int],
    listener: str = "",
    starting: StartingBroker | None = None,
) -> Finding:
    """Explain an answer at one of several bootstrap addresses, where a broker was reached at another one.

    Args:
        address: The bootstrap address.
        answer: The answer there.
        reached: The address of the broker that was reached.
        known: The brokers that the reached broker knows, by their addresses.
        listener: As in `about_answer`.
        starting: As in `about_answer`.
    """
    finding = about_answer(address, answer, listener, starting)
    if answer.kind not in _DOWN or starting is not None:
        return finding
    node_id = next((known[at] for at in known if _is_same(at, address)), None)
    if node_id is None:
        return finding._replace(
            message=f"{finding.message} The broker at {shown(reached)} knows no broker at this address.",
            remedy=finding.remedy
            if answer.kind in _HANGS
            else "Leave the address out of the bootstrap servers, unless a broker of this cluster is to be "
            "there: one that was unregistered registers again when it is restarted.",
        )
    return finding._replace(
        message=f"{finding.message} It is the address of broker {node_id}, as the broker at {shown(reached)} "
        "tells; clients go on with the other addresses.",
        remedy=finding.remedy
        if answer.kind in _HANGS
        else f"Is broker {node_id} running? Start it again as it was started before, or look at its log.",
    )


def _is_same(one: Address, other: Address) -> bool:
    """Whether two addresses are the same as far as this machine is concerned."""
    return one == other or (one[1] == other[1] and is_loopback(one[0]) and is_loopback(other[0]))


def judge_standing(bootstrap: Address, found: Standing) -> Finding | None:
    """A broker that answers but is not registered, or is fenced; None if it is neither, or does not tell."""
    where = shown(bootstrap)
    if found.is_registered is False:
        return problem(
            "brokers",
            where,
            f"The broker at {where} is not registered: it leads no partition, its replicas do not count as "
            "in sync, and clients are not told of it. It was unregistered while it ran, or another broker "
            "has its node.id.",
            "Restart it, and it registers again; or stop it, if it is to go.",
        )
    if found.is_fenced:
        return problem(
            "brokers",
            where,
            f"Broker {found.node_id} at {where} is fenced: it leads no partition, and clients are not told "
            "of it.",
            "It is starting or stopping, or the active controller does not hear from it: look at its log.",
        )
    return None


def judge(
    bootstrap: Address, cluster: Cluster, found: Mapping[int, Advertised], protocol: str = "PLAINTEXT"
) -> list[Finding]:
    """Judge the advertised addresses for a client with this bootstrap address and security protocol."""
    if not cluster.brokers:
        return [
            problem(
                "brokers",
                shown(bootstrap),
                f"{shown(bootstrap)} knows no broker, not even itself.",
                "It is still starting, or it is fenced by the controller or unregistered: look at its log.",
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
            # Other brokers share the host of the one that answered, but not its port.
            reached = bootstrap if len(cluster.brokers) == 1 else (bootstrap[0], address[1])
            return warning(
                "brokers",
                subject,
                f"Broker {node_id} advertises {where}, which every machine takes for itself: it works from "
                "this machine only.",
                _advertise(reached, protocol),
            )
        return ok("brokers", subject, f"Broker {node_id} advertises {where}, and answers there.")
    # If no broker answers as advertised, the one that answers at the bootstrap address is among them, and it
    # is not down.
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


#: The answers of an address whose broker may hang, or be down.
_HANGS = frozenset({Kind.CLOSES, Kind.SILENT})
_DOWN = _HANGS | {Kind.REFUSED, Kind.TIMED_OUT, Kind.UNREACHABLE}


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
