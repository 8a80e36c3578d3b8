"""The quorum of controllers: without a leader, nothing in the cluster changes, and no change becomes known. A
broker that has lost the quorum goes on telling clients the old leaders and replicas, and serves the
partitions that it leads. So its answers are reported with their age and source.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.quorum import LostQuorum, QuorumStatus, quorum_status
from pykafka_broker.doctor.findings import Finding, ok, problem
from pykafka_broker.doctor.reach import all_at_once, is_answered
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.system.named_tuple import NamedTuple

#: How long a controller may take to answer.
VOTER_WITHIN_S = 1.0


class Source(NamedTuple):
    """The broker that describes a cluster without a quorum: its address, and how much of the metadata log it
    has; -1 if it does not tell.
    """

    address: str
    metadata_offset: int = -1


def look(client: Client) -> QuorumStatus | LostQuorum | None:
    """The status of the quorum; None from a cluster that does not tell."""
    try:
        return quorum_status(client)
    except KafkaError:  # a cluster before KRaft, or a user who may not ask
        return None


def silent_voters(lost: LostQuorum, answering: Collection[int]) -> list[int] | None:
    """The controllers that do not answer from here and are not among the `answering` brokers; None if it is
    not known who they are.
    """
    if lost.voters is None:
        return None
    unknown = {node_id: addresses for node_id, addresses in lost.voters.items() if node_id not in answering}
    answers = all_at_once(
        lambda addresses: any(is_answered(address, VOTER_WITHIN_S) for address in addresses), unknown.values()
    )
    return sorted(node_id for node_id, answers_here in zip(unknown, answers, strict=True) if not answers_here)


def told_of_loss(lost: LostQuorum, source: Source, silent: Sequence[int] | None) -> str:
    """Sentences about a lost quorum: since when, by whom it is told, and who does not answer."""
    offset = f" (metadata offset {source.metadata_offset:,})" if source.metadata_offset >= 0 else ""
    text = f"No quorum: {_finding(lost, source)}. What it tells of brokers and topics is from "
    if lost.age_ms is None:
        text += f"before; how old it is, it does not tell{offset}."
    else:
        text += f"then{offset}."
    about_voters = _about_voters(lost, silent)
    return f"{text} {about_voters}" if about_voters else text


def why_nothing_changes(lost: LostQuorum, source: Source, silent: Sequence[int] | None) -> str:
    """Why a cluster without a quorum does not do what it was asked for, as the rest of a sentence, and what
    to do.
    """
    way = "Start them: more than half of the voters must run." if silent else ""
    meanwhile = ""
    if lost.age_ms is not None or lost.node_id is None:
        meanwhile = (
            f"`pykafka-broker cluster status -b {source.address}` shows what can be written meanwhile."
        )
    until = (
        "until one leads, nothing is created, changed or elected; "
        "a request without an answer may be carried out then"
    )
    told = (f"{_finding(lost, source)}: {until}.", _about_voters(lost, silent), way, meanwhile)
    return " ".join(filter(None, told))


def _finding(lost: LostQuorum, source: Source) -> str:
    if lost.age_ms is not None:
        return (
            f"no controller leads, and none has answered broker {lost.node_id} at {source.address} for "
            f"{lost.age_ms // 1_000:,} s"
        )
    node = "the broker" if lost.node_id is None else f"controller {lost.node_id}"
    return f"{node} at {source.address} finds no controller that leads"


def _about_voters(lost: LostQuorum, silent: Sequence[int] | None) -> str:
    """The voters that do not answer; or the controllers, if only these are known."""
    if lost.voters is None or silent is None:
        return ""
    nodes = "controllers" if lost.leader_epoch is None else "voters"
    known = ", ".join(map(str, sorted(lost.voters)))
    if not silent:
        return f"All {nodes} ({known}) answer from here: do they reach each other?"
    return f"Of the {nodes} ({known}) these do not answer from here: {', '.join(map(str, silent))}."


def judge(found: QuorumStatus | LostQuorum, source: Source, silent: Sequence[int] | None = None) -> Finding:
    """Whether a controller leads, as a broker finds it; if not, which voters are silent."""
    if isinstance(found, QuorumStatus):
        voters = ", ".join(map(str, found.voters))
        message = f"Node {found.leader_id} leads the quorum (voters {voters})."
        return ok("quorum", source.address, message)
    down = f" ({', '.join(map(str, silent))})" if silent else ""
    return problem(
        "quorum",
        source.address,
        f"{told_of_loss(found, source, silent)} Until one leads, no leader of a partition is elected, no "
        "topic created or changed, and no broker noticed that stops or comes back.",
        f"Start the controllers that are down{down}: more than half of the voters must run, and reach each "
        "other. Their logs say what they wait for.",
    )
