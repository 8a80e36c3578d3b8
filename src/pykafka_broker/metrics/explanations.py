"""What a node tells about one thing: its newest decisions, and what it sees now, as plain data for JSON.

    history    the decisions (`machine/history.py`), the oldest first
    now        what only this node knows: for whom a group waits and who comes and goes, how far followers
               are behind, what requests of a client wait for, and who is a super user

Sentences have the actor first; `remedy` says what to do next, "" if nothing is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.fetching.replica import replica_id_of
from pykafka_broker.coordinator.groups.present import Moment, behind, comings, members
from pykafka_broker.machine.history import Kind
from pykafka_broker.metrics.node_parts import BrokerParts, NodeParts
from pykafka_broker.network.connection import Connection
from pykafka_broker.network.unanswered import subjects
from pykafka_broker.protocol.messages.fetch import FetchRequest
from pykafka_broker.protocol.messages.produce import ProduceRequest
from pykafka_broker.replication.core.access import limit_of_fetch
from pykafka_broker.replication.lagging import LAGS, progress_of
from pykafka_broker.system.wording import counted, duration

if TYPE_CHECKING:
    from pykafka_broker.network.answers import Slot
    from pykafka_broker.replication.leading_replica import LeadingReplica

#: The most that an answer tells of: requests that wait, partitions of each, members of a group.
MOST_REQUESTS, MOST_PARTITIONS, MOST_MEMBERS = 20, 5, 20
#: The most decisions on a group that are counted.
MOST_COUNTED = 1_000

Told = tuple[str, str]


def explained(node: NodeParts, kind: Kind, name: str) -> dict[str, Any]:
    """The answer about the thing of this kind and name."""
    now: Iterator[Told] = iter(())
    if node.broker is not None and kind is Kind.PARTITION:
        now = _followers(node, node.broker, name)
    elif node.broker is not None and kind is Kind.GROUP:
        now = _group(node, node.broker, name)
    elif kind is Kind.REQUEST:
        now = chain(_super_user(node, name), _waiting(node, name))
    return {
        "cluster_id": node.metadata.image.cluster_id,
        "node_id": node.config.node_id,
        "now": [{"text": text, "remedy": remedy} for text, remedy in now],
        "history": [entry._asdict() for entry in node.history.about(kind, name)],
    }


# ---- groups ----


def _group(node: NodeParts, broker: BrokerParts, name: str) -> Iterator[Told]:
    def span_of(topic: str, number: int) -> tuple[int, int] | None:
        partition = broker.replicas.hosted(topic, number)
        if partition is None:
            return None
        return partition.log.state.log_start_offset, partition.log.state.high_watermark

    service = broker.coordinators.groups
    for partition in service.shards.loaded_partitions:
        shard = service.shards.shard_of(partition)
        if name in shard.state.groups:
            at = Moment(shard.state, name, service.config, node.clock.now_ms(), shard.left_ms)
            history = node.history.about(Kind.GROUP, name, MOST_COUNTED)
            yield from comings(history, at.now_ms)
            yield from islice(members(at), MOST_MEMBERS)
            yield from islice(behind(at, span_of, history), MOST_MEMBERS)


# ---- followers ----


def _followers(node: NodeParts, broker: BrokerParts, name: str) -> Iterator[Told]:
    topic, _, number = name.rpartition("-")
    led = broker.replicas.led(topic, int(number)) if number.isdecimal() else None
    if led is None or led.leadership is None:
        return
    leadership, now_ms = led.leadership, node.clock.monotonic_ms()
    for replica_id in leadership.followers:
        if replica_id not in leadership.isr.committed:
            yield progress_of(leadership, replica_id, led.log.state.log_end_offset, now_ms), LAGS


# ---- requests ----


def _super_user(node: NodeParts, name: str) -> Iterator[Told]:
    rules = node.config.authorizer
    principal = name if ":" in name else f"User:{name}"
    if rules is not None and principal in rules.super_users:
        text = (
            f"{principal} is a super user of node {node.config.node_id}: it may do everything, without ACLs."
        )
        yield text, ""


def _waiting(node: NodeParts, name: str) -> Iterator[Told]:
    left = MOST_REQUESTS
    for connection in node.listeners.shared.connections:
        if not isinstance(connection, Connection):
            continue
        for slot in connection.answers.waiting:
            ctx = slot.context
            if name in (ctx.client_id, ctx.principal, ctx.principal.partition(":")[2]):
                if not left:
                    return
                left -= 1
                yield _request(node, slot)


def _request(node: NodeParts, slot: Slot) -> Told:
    request, ctx = slot.request, slot.context
    began = f" ({duration((perf_counter_ns() - slot.began_ns) // 1_000_000)} so far)" if slot.began_ns else ""
    what = f"{slot.route.name} v{slot.route.version} of {ctx.in_words} waits{began}"
    if isinstance(request, FetchRequest) and node.broker is not None:
        return _fetch(node, node.broker, request, what)
    named = subjects(request, node.listeners.shared.knowledge)
    if isinstance(request, ProduceRequest):
        return (
            f"{what} until the replicas in sync have its records, at most {duration(request.timeout_ms)}: "
            f"{named}.",
            "`pykafka-broker explain partition` says which replicas lag.",
        )
    return f"{what}{f' for {named}' if named else ''}.", ""


def _fetch(node: NodeParts, broker: BrokerParts, request: FetchRequest, what: str) -> Told:
    """A parked fetch, and for the first of its partitions why there is nothing to read."""
    if request.session_id:
        session = broker.sessions.partitions_of(request.session_id)
        wanted = [(one.topic, one.partition, one.fetch_offset) for one in session]
    else:
        name_of = node.listeners.shared.knowledge.topic_name
        wanted = [
            (topic.topic or name_of(topic.topic_id), each.partition, each.fetch_offset)
            for topic in request.topics
            for each in topic.partitions
        ]
    found = []
    for topic, partition, offset in wanted[:MOST_PARTITIONS]:
        led = broker.replicas.led(topic, partition) if topic else None
        if led is not None:
            found.append(_why_nothing(led, request, offset))
    text = (
        f"{what} until {counted(request.min_bytes, 'byte')} can be read (fetch.min.bytes) from "
        f"{counted(len(wanted), 'partition')}, at most {duration(request.max_wait_ms)} (fetch.max.wait.ms)."
    )
    return " ".join([text, *(text for text, _ in found)]), " ".join(
        dict.fromkeys(remedy for _, remedy in found if remedy)
    )


def _why_nothing(led: LeadingReplica, request: FetchRequest, offset: int) -> Told:
    state, name = led.log.state, led.log.name
    limit = state.limit_offset(limit_of_fetch(replica_id_of(request), request.isolation_level))
    if limit > offset:
        count = counted(limit - offset, "record")
        return f"{name} has {count} from offset {offset}, which are fewer bytes.", ""
    end, high_watermark = state.log_end_offset, state.high_watermark
    if limit < high_watermark:
        return (
            f"{name} has records up to {high_watermark}, but from {limit} on they may belong to an "
            "open transaction.",
            "The transaction has to end: `pykafka-broker doctor` names it.",
        )
    # Followers read records that are not committed.
    if limit < end and led.leadership is not None:
        return (
            f"{name} has records up to {end}, but those from {high_watermark} on are not committed: not all "
            f"replicas in sync {list(led.leadership.isr.committed)} have them.",
            f"`pykafka-broker explain partition {name}` says which replicas lag.",
        )
    return f"{name} has no record from offset {offset} on.", ""
