"""The checks in their order; each uses the findings of those before it, and is left out without them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from pykafka_broker.cli.cluster import Cluster
from pykafka_broker.cli.doctor import disks, groups, share_groups
from pykafka_broker.cli.group_state import SHARE
from pykafka_broker.cli.share_group_state import ShareGroup
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import ClientSecurity
from pykafka_broker.client.core.metadata import NO_LEADER
from pykafka_broker.client.quorum import QUORUM_WITHIN_S, LostQuorum, QuorumStatus
from pykafka_broker.doctor import brokers, quorum, reach, topics
from pykafka_broker.doctor.findings import Finding, Level, skipped
from pykafka_broker.doctor.reach import Address, Answer, Kind, shown
from pykafka_broker.doctor.refusals import Refusal, guarded
from pykafka_broker.doctor.starting import starting_at
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.system.host_text import is_loopback
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.processes import described, listening_on

#: The checks in the order in which they run.
CHECKS = ("connection", "quorum", "brokers", "topics", "groups", "disks")


class Question(NamedTuple):
    """The subjects of an examination."""

    addresses: Sequence[Address]
    #: The cluster at these addresses, how it is secured, and the time that a broker may take to answer.
    cluster: Cluster
    #: Topics and groups to look at closely; all groups, if none is named.
    topics: Sequence[str]
    groups: Sequence[str]
    #: The time between two looks at a group; should exceed auto.commit.interval.ms, 5 s by default.
    watch_s: float


def examine(question: Question, pause: Callable[[float], None] = time.sleep) -> Iterator[Finding]:
    """All findings, as they are made."""
    cluster = question.cluster
    security = cluster.identity.security or ClientSecurity()
    answers = reach.all_at_once(
        lambda address: reach.probe(address, cluster.timeout_s, security.tls), question.addresses
    )
    asked = list(zip(question.addresses, answers, strict=True))
    reached = next((address for address, answer in asked if answer.kind is Kind.KAFKA), None)
    if reached is None:
        for address, answer in asked:
            listener, starting = _listener(address, answer), starting_at(address, answer)
            yield reach.about_answer(address, answer, listener, starting, is_only=len(asked) == 1)
        yield skipped("brokers", "Brokers, topics, groups and disks: no broker answers.")
        return
    with cluster.connect_to(shown(reached), cluster.timeout_s) as client:
        known = brokers.known_at(client) if len(asked) > 1 else {}
        for address, answer in asked:
            listener, starting = _listener(address, answer), starting_at(address, answer)
            yield brokers.judge_address(address, answer, reached, known, listener, starting)
        if (closed := _refused(client, reached)) is not None:
            yield closed
            yield skipped("brokers", "Brokers, topics, groups and disks: the broker does not tell.")
            return
        leading = _quorum(client, cluster, reached)
        found, advertised = brokers.look(client, cluster.connect_to, security.tls)
        answering = brokers.answering(found, advertised)
        if leading is not None:
            silent = quorum.silent_voters(leading, answering) if isinstance(leading, LostQuorum) else None
            source = quorum.Source(shown(reached), client.connection().metadata_offset)
            yield quorum.judge(leading, source, silent)
        yield from _outside(cluster, asked)
        about_brokers = brokers.judge(reached, found, advertised, security.protocol)
        yield from about_brokers
        existing = {topic.name: topic for topic in topics.look(client)}
        if isinstance(leading, LostQuorum):
            yield topics.judge_without_quorum(list(existing.values()), answering)
        else:
            yield from topics.judge(list(existing.values()), _registered(client))
        yield from guarded("topics", _about_missing_topics(client, question, existing))
        if any(finding.level is Level.PROBLEM for finding in about_brokers):
            yield skipped("topics", "Records, groups and disks: they are asked of every broker.")
            return
        yield from guarded("topics", _about_topics(client, question, existing))
        yield from guarded("groups", _about_groups(client, question, existing, pause))
        yield from guarded("disks", _about_disks(client))


def _listener(address: Address, answer: Answer) -> str:
    """The process of this machine that answers instead of a broker; "" if it cannot be found."""
    host, port = address
    if answer.kind is Kind.KAFKA or not answer.is_from_a_listener or not is_loopback(host):
        return ""
    process_id = listening_on("127.0.0.1" if host == "localhost" else host, port)
    return "" if process_id is None else described(process_id)


def _quorum(client: Client, cluster: Cluster, address: Address) -> QuorumStatus | LostQuorum | None:
    """The status of the quorum, with a shorter time-out than other answers."""
    with cluster.connect_to(shown(address), min(cluster.timeout_s, QUORUM_WITHIN_S)) as asked:
        asked.brokers.addresses.update(client.brokers.addresses)
        return quorum.look(asked)


def _outside(cluster: Cluster, asked: Iterable[tuple[Address, Answer]]) -> Iterator[Finding]:
    """The findings about brokers that are not part of the cluster, as far as they tell."""
    for address, answer in asked:
        if answer.kind is not Kind.KAFKA:
            continue
        try:
            with cluster.connect_to(shown(address), cluster.timeout_s) as client:
                outside = brokers.judge_standing(address, brokers.standing(client))
        except Refusal:
            continue
        if outside is not None:
            yield outside


def _registered(client: Client) -> set[int] | None:
    """The registered brokers; None if brokers do not tell."""
    if not brokers.tells_fenced(client):
        return None
    try:
        return {broker.broker_id for broker in brokers.registered(client).brokers}
    except KafkaError:
        return None


def _refused(client: Client, address: Address) -> Finding | None:
    """The finding about a listener at this address that clients cannot use; None if they can."""
    refusal: Exception | None = None
    versions: Mapping[int, tuple[int, int]] | None = None
    try:
        versions = client.connection().versions
        if reach.METADATA in versions:
            client.metadata([])
    except Refusal as error:
        refusal = error
    return reach.about_listener(address, versions, refusal)


def _about_missing_topics(
    client: Client, question: Question, existing: Mapping[str, topics.Topic]
) -> Iterator[Finding]:
    for name in question.topics:
        if name not in existing:
            yield topics.judge_missing(name, list(existing), topics.creates_topics(client))


def _about_topics(
    client: Client, question: Question, existing: Mapping[str, topics.Topic]
) -> Iterator[Finding]:
    chosen = [topic for name, topic in existing.items() if name in question.topics]
    looked_at = chosen or [topic for topic in existing.values() if not topic.is_internal]
    found = topics.offsets(client, looked_at)
    for topic in chosen:
        retention = topics.configs(client, topics.TOPIC, topic.name, "retention.ms").get("retention.ms", "?")
        yield topics.judge_records(topic, found, retention)
    waiting = [partition for partition, offset in found.items() if offset.last_stable < offset.end]
    yield from topics.judge_stability(found, topics.open_transactions(client, existing, waiting))


def _about_groups(
    client: Client,
    question: Question,
    existing: Mapping[str, topics.Topic],
    pause: Callable[[float], None],
) -> Iterator[Finding]:
    types = groups.types(client)
    chosen = list(question.groups or list(types)[: groups.MOST_GROUPS])
    for name in chosen:
        if name not in types:
            yield groups.judge_missing(name, list(types))
    # Do not ask for the coordinator of a group that does not exist: that creates `__consumer_offsets`.
    shared = [name for name in chosen if types.get(name) == SHARE]
    others = [name for name in chosen if name in types and name not in shared]

    def look() -> tuple[list[groups.Look], list[ShareGroup]]:
        return (
            [groups.look(client, name, types[name]) for name in others],
            [share_groups.look(client, name) for name in shared],
        )

    before, before_shared = look()
    offsets = _offsets_of(client, existing, before, before_shared)
    after, after_shared = before, before_shared
    if any(groups.may_be_stuck(seen, offsets) for seen in before) or any(
        share_groups.may_be_stuck(seen, offsets) for seen in before_shared
    ):
        pause(question.watch_s)
        after, after_shared = look()
        offsets = _offsets_of(client, existing, after, after_shared)
    led = {
        (topic.name, partition.partition)
        for topic in existing.values()
        for partition in topic.partitions
        if partition.leader_id != NO_LEADER
    }
    for earlier, later in zip(before, after, strict=True):
        yield from groups.judge(earlier, later, offsets, question.watch_s, led)
    for earlier_shared, later_shared in zip(before_shared, after_shared, strict=True):
        yield from share_groups.judge(earlier_shared, later_shared, offsets, question.watch_s)


def _about_disks(client: Client) -> Iterator[Finding]:
    yield from disks.judge(disks.look(client))


def _offsets_of(
    client: Client,
    existing: Mapping[str, topics.Topic],
    looks: Iterable[groups.Look],
    shared: Iterable[ShareGroup],
) -> dict[PartitionKey, topics.Offsets]:
    places = chain(*map(groups.places, looks), *map(share_groups.places, shared))
    names = {topic for topic, _ in places}
    return topics.offsets(client, [existing[name] for name in sorted(names) if name in existing])
