"""The quorum of controllers: without a leader nothing about the cluster changes any more, nor becomes known.

A broker that has lost the quorum goes on telling clients the leaders and replicas of before, and serves those
that it leads itself.
"""

from __future__ import annotations

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.quorum import QuorumStatus, quorum_status
from pykafka_broker.doctor.findings import Finding, ok, problem
from pykafka_broker.protocol.errors import KafkaError


def look(client: Client) -> tuple[bool, QuorumStatus | None]:
    """Whether the cluster tells about its quorum, and what its leader tells, None if there is no leader."""
    try:
        return True, quorum_status(client)
    except KafkaError:  # a cluster before KRaft, or a user who may not ask
        return False, None


def judge(found: QuorumStatus | None, where: str) -> Finding:
    """Whether a controller leads, as the broker at an address finds it."""
    if found is not None:
        voters = ", ".join(map(str, found.voters))
        return ok("quorum", where, f"Node {found.leader_id} leads the quorum (voters {voters}).")
    return problem(
        "quorum",
        where,
        f"No quorum: the broker at {where} finds no controller that leads. No leader is elected, no topic "
        "created or changed, no broker noticed that stops or comes back; what is known of brokers and topics "
        "is from before.",
        "Start the controllers that are down: more than half of the voters must run, and reach each other. "
        "Their logs say what they wait for.",
    )
