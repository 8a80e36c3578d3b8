"""Topics: those that clients wait for in vain, and those whose records cannot be written or read now.

A producer or consumer that names a topic that does not exist gets no error at once. Where brokers create
topics on first use it works; where they do not, the client asks for the topic's leader until its own
time-out, 60 s by default.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.client.core.metadata import NO_LEADER
from pykafka_broker.client.offsets import EARLIEST, LATEST, told_offsets
from pykafka_broker.cluster.min_isr import effective_min_isr
from pykafka_broker.doctor.findings import Finding, ok, problem, warning
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import argument, counted, listed

READ_COMMITTED = 1
#: The most partitions whose offsets are asked for; all of a large cluster would take too long.
MOST_PARTITIONS = 2000
#: `transaction.max.timeout.ms` by default. As for kafka-transactions.sh, only a transaction whose producer
#: has not written for this time hangs: others may have ended while the coordinators were asked, or have ids
#: that the user may not describe.
LONGEST_TRANSACTION_MS = 15 * 60 * 1_000


class Partition(NamedTuple):
    """A partition as Metadata has it."""

    partition: int
    leader_id: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Topic(NamedTuple):
    """A topic as Metadata and DescribeConfigs have it."""

    name: str
    is_internal: bool
    partitions: tuple[Partition, ...]
    min_insync_replicas: int = 1


class Offsets(NamedTuple):
    """The offsets at which a partition begins and ends."""

    log_start: int
    #: The end for consumers that read all records: the high watermark.
    end: int
    #: The end for consumers that read committed records only.
    last_stable: int


class OpenTransaction(NamedTuple):
    """A transaction that holds up consumers with `isolation.level=read_committed`."""

    producer_id: int
    first_offset: int
    #: "" if no coordinator tells it.
    transactional_id: str
    #: Whether no coordinator knows it, and its producer has not written for `LONGEST_TRANSACTION_MS`: it does
    #: not end by itself.
    hangs: bool = False


def look(client: Client) -> list[Topic]:
    """All topics."""
    response = client.metadata(None)
    topics = [
        Topic(
            topic.name,
            topic.is_internal,
            tuple(
                Partition(p.partition_index, p.leader_id, tuple(p.replica_nodes), tuple(p.isr_nodes))
                for p in sorted(topic.partitions, key=lambda p: p.partition_index)
            ),
        )
        for topic in response.topics
        if topic.name is not None
    ]
    least = _min_insync_replicas(client, [t.name for t in topics if _is_under_replicated(t)])
    return [topic._replace(min_insync_replicas=least.get(topic.name, 1)) for topic in topics]


def _is_under_replicated(topic: Topic) -> bool:
    return any(len(p.isr) < len(p.replicas) for p in topic.partitions)


def _min_insync_replicas(client: Client, names: Sequence[str]) -> dict[str, int]:
    found = {name: configs(client, 2, name, "min.insync.replicas") for name in names}
    return {name: int(values["min.insync.replicas"]) for name, values in found.items() if values}


def configs(
    client: Client, resource_type: int, name: str, *keys: str, node_id: int | None = None
) -> dict[str, str]:
    """Some values of a resource, as the broker `node_id` tells them; those that it does not are left out."""
    from pykafka_broker.protocol.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
    )

    resource = DescribeConfigsResource(
        resource_type=resource_type, resource_name=name, configuration_keys=list(keys)
    )
    answer = client.send(DescribeConfigsRequest(resources=[resource]), node_id).results[0]
    return {entry.name: entry.value for entry in answer.configs if entry.value is not None}


BROKER, TOPIC = 4, 2


def creates_topics(client: Client) -> bool:
    """Whether the broker at the bootstrap address creates a topic when it is first used."""
    key = "auto.create.topics.enable"
    # Each broker tells about itself only, and it is not known which one this connection leads to.
    answers = [configs(client, BROKER, str(node_id), key) for node_id in sorted(client.brokers.addresses)]
    return any(values.get(key) == "true" for values in answers)


def offsets(client: Client, topics: Collection[Topic]) -> dict[PartitionKey, Offsets]:
    """The start and end offsets of the partitions of these topics whose leader tells them."""
    partitions = [
        (topic.name, partition.partition)
        for topic in topics
        for partition in topic.partitions
        if partition.leader_id != NO_LEADER
    ][:MOST_PARTITIONS]
    first = told_offsets(client, dict.fromkeys(partitions, EARLIEST))
    # A leader that tells nothing is not waited for again.
    end = told_offsets(client, dict.fromkeys(first, LATEST))
    stable = told_offsets(client, dict.fromkeys(end, LATEST), isolation_level=READ_COMMITTED)
    return {
        partition: Offsets(first[partition], end[partition], offset) for partition, offset in stable.items()
    }


def open_transactions(
    client: Client, topics: Mapping[str, Topic], partitions: Collection[PartitionKey]
) -> dict[PartitionKey, OpenTransaction]:
    """The oldest open transaction of each of these partitions."""
    from pykafka_broker.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest

    found: dict[PartitionKey, Any] = {}
    for name, index in sorted(partitions):
        leader_id = topics[name].partitions[index].leader_id
        request = DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=[index])])
        try:
            answer = client.send(request, leader_id).topics[0].partitions[0]
        except KafkaError:
            continue  # the broker does not tell, or not this client
        writing = [p for p in answer.active_producers if p.current_txn_start_offset >= 0]
        if writing:
            found[name, index] = min(writing, key=lambda p: p.current_txn_start_offset)
    names, is_complete = _transactional_ids(client, {p.producer_id for p in found.values()})
    idle_since_ms = time.time_ns() // 1_000_000 - LONGEST_TRANSACTION_MS
    return {
        partition: OpenTransaction(
            producer.producer_id,
            producer.current_txn_start_offset,
            name := names.get(producer.producer_id, ""),
            hangs=is_complete and not name and producer.last_timestamp < idle_since_ms,
        )
        for partition, producer in found.items()
    }


def _transactional_ids(client: Client, producer_ids: Collection[int]) -> tuple[dict[int, str], bool]:
    """Producer id -> transactional id, of transactions that a coordinator knows as not ended; and whether all
    coordinators have told.
    """
    from pykafka_broker.protocol.messages.list_transactions import ListTransactionsRequest

    found: dict[int, str] = {}
    is_complete = True
    request = ListTransactionsRequest(
        state_filters=["Ongoing", "PrepareCommit", "PrepareAbort"], producer_id_filters=sorted(producer_ids)
    )
    for node_id in sorted(client.brokers.addresses) if producer_ids else ():
        try:
            answer = client.send(request, node_id)
            check(answer.error_code)
        except KafkaError:
            is_complete = False
            continue
        found.update({state.producer_id: state.transactional_id for state in answer.transaction_states})
    return found, is_complete


# --- what it means ----------------------------------------------------------------------------------


def judge_missing(name: str, existing: Sequence[str], is_created_on_first_use: bool) -> Finding:
    """A topic that was named and does not exist."""
    from pykafka_broker.config.suggestions import did_you_mean

    meant = did_you_mean(name, existing).strip()
    hint = f"{meant} Otherwise create it:" if meant else "Create it:"
    remedy = f"{hint}\n  pykafka-broker topics create {argument(name)}"
    if is_created_on_first_use:
        return warning(
            "topics",
            name,
            f"Topic {name!r} does not exist. The brokers create it, with their defaults, when a client that "
            "allows it (allow.auto.create.topics) first names it.",
            remedy,
        )
    return problem(
        "topics",
        name,
        f"Topic {name!r} does not exist, and the brokers do not create topics on first use "
        "(auto.create.topics.enable=false). A client that names it waits until it times out, often after 60 "
        "s.",
        remedy,
    )


def strongest_acks(
    leader_id: int, replicas: Collection[int], isr: Collection[int], least: int, answering: Collection[int]
) -> str | None:
    """The strongest `acks` with which a partition takes records now, if these brokers answer: "all" needs all
    of its in-sync replicas, and at least the smaller of `least` (`min.insync.replicas`) and the number of
    replicas; "1" needs its leader. None: it takes none.
    """
    if leader_id not in answering:
        return None
    is_committed = is_enough(replicas, isr, least) and all(broker in answering for broker in isr)
    return "all" if is_committed else "1"


def is_enough(replicas: Collection[int], isr: Collection[int], least: int) -> bool:
    """Whether enough replicas are in sync for acks=all with this `min.insync.replicas`."""
    return len(isr) >= effective_min_isr(least, len(replicas))


def taken_now(acks: Sequence[str | None]) -> str:
    """How many partitions take records while no controller leads, by the strongest acks of each."""
    return (
        f"Of {counted(len(acks), 'partition')}, {acks.count('all'):,} can be written with acks=all, "
        f"{acks.count('1'):,} with acks=1 at most (in-sync replicas do not answer, or are too few), "
        f"{acks.count(None):,} not at all (no leader answers). Idempotent and transactional producers that "
        "start now may wait for a controller."
    )


def judge_without_quorum(topics: Sequence[Topic], answering: Collection[int]) -> Finding:
    """Which partitions can be written while no controller leads, so that nothing about them changes."""
    acks = [
        strongest_acks(
            partition.leader_id, partition.replicas, partition.isr, topic.min_insync_replicas, answering
        )
        for topic in topics
        for partition in topic.partitions
    ]
    message = (
        f"{taken_now(acks)} All that goes by the leaders and replicas that are known from before the quorum "
        "was lost."
    )
    if all(one == "all" for one in acks):
        return ok("topics", "", message)
    return problem(
        "topics",
        "",
        message,
        "Start the brokers that do not answer, and the controllers. What is written with acks=1 until then "
        "may be lost: another replica may lead when there is a quorum again.",
    )


def judge(topics: Sequence[Topic], registered: Collection[int] | None = None) -> list[Finding]:
    """Whether all partitions can be written and read now; `registered` are the brokers of the cluster, None
    where that is not told.
    """
    partitions = counted(sum(len(topic.partitions) for topic in topics), "partition")
    findings = [
        finding
        for topic in topics
        for finding in (_about_leaders(topic, registered), _about_replicas(topic, registered))
        if finding
    ]
    if findings:
        return findings
    if not topics:
        return [ok("topics", "", "There are no topics yet.")]
    return [
        ok(
            "topics",
            "",
            f"{counted(len(topics), 'topic')} with {partitions}, each with a leader "
            "and all its replicas in sync.",
        )
    ]


def _missing(nodes: Iterable[int], registered: Collection[int] | None, remedy: str) -> str:
    """A remedy for missing brokers, whose ids replace `{}`; those that are not registered get a remedy of
    their own.
    """
    missing = sorted({*nodes})
    gone = [] if registered is None else [node for node in missing if node not in registered]
    there = listed([str(node) for node in missing if node not in gone])
    remedies = [remedy.format(there)] if there else []
    if gone:
        remedies.append(
            f"Not registered: {listed([str(node) for node in gone])}. If such a broker runs, it was "
            "unregistered: restart it, and it registers again. If it is gone for good, move its replicas "
            "away:\n"
            f"  pykafka-broker reassign plan --without {','.join(map(str, gone))} --output-file moves.json"
        )
    return "\n".join(remedies)


def _about_leaders(topic: Topic, registered: Collection[int] | None) -> Finding | None:
    leaderless = [p for p in topic.partitions if p.leader_id == NO_LEADER]
    if not leaderless:
        return None
    numbers = listed([str(p.partition) for p in leaderless])
    return problem(
        "topics",
        topic.name,
        f"Topic {topic.name!r} has no leader for {counted(len(leaderless), 'partition')} ({numbers}): they "
        "can be neither written nor read, and clients wait until they time out.",
        _missing(
            (node for p in leaderless for node in p.replicas),
            registered,
            "Start the brokers that have replicas of them ({}); if they run, look there for a log directory "
            "that went offline:\n  pykafka-broker health HOST:PORT",
        ),
    )


def _about_replicas(topic: Topic, registered: Collection[int] | None) -> Finding | None:
    behind = [p for p in topic.partitions if p.leader_id != NO_LEADER and len(p.isr) < len(p.replicas)]
    if not behind:
        return None
    short = [p for p in behind if len(p.isr) < topic.min_insync_replicas]
    missing = {node for p in behind for node in set(p.replicas) - set(p.isr)}
    if short:
        return problem(
            "topics",
            topic.name,
            f"Topic {topic.name!r} has fewer replicas in sync than min.insync.replicas="
            f"{topic.min_insync_replicas} in {counted(len(short), 'partition')}: producers with acks=all get "
            "NOT_ENOUGH_REPLICAS.",
            _missing(missing, registered, "Start the brokers that are missing ({})."),
        )
    return warning(
        "topics",
        topic.name,
        f"Topic {topic.name!r} has replicas that are not in sync in {counted(len(behind), 'partition')}.",
        _missing(
            missing,
            registered,
            "Start the brokers that are missing ({}), or wait until they have caught up.",
        ),
    )


def judge_records(topic: Topic, found: Mapping[PartitionKey, Offsets], retention_ms: str) -> Finding:
    """Report the number of records of a topic that was asked for; if all are gone, how they were removed."""
    mine = [o for (name, _), o in found.items() if name == topic.name]
    records = sum(o.end - o.log_start for o in mine)
    removed = sum(o.log_start for o in mine)
    if not records and removed:
        return warning(
            "topics",
            topic.name,
            f"Topic {topic.name!r} holds no record any more: the first {removed:,} offsets were removed by "
            f"retention (retention.ms={retention_ms}) or by DeleteRecords.",
            "Records are removed by the time they carry: a producer that sets old timestamps loses them "
            "soon after it wrote them. Keep them longer:\n  pykafka-broker configs alter --topic "
            f"{topic.name} --set retention.ms=-1",
        )
    return ok(
        "topics",
        topic.name,
        f"Topic {topic.name!r} has {counted(len(topic.partitions), 'partition')} and "
        f"{counted(records, 'offset')} to read.",
    )


def judge_stability(
    found: Mapping[PartitionKey, Offsets], transactions: Mapping[PartitionKey, OpenTransaction]
) -> list[Finding]:
    """Partitions in which an open transaction holds up consumers with `isolation.level=read_committed`."""
    findings = []
    for (name, index), offset in sorted(found.items()):
        if offset.last_stable >= offset.end:
            continue
        waiting = offset.end - offset.last_stable
        transaction = transactions.get((name, index))
        who = "a transaction"
        remedy = "Wait for its end: transaction.timeout.ms of its producer, a minute by default."
        if transaction is not None and transaction.transactional_id:
            who = (
                f"the transaction of {transaction.transactional_id!r} (producer id {transaction.producer_id})"
            )
        elif transaction is not None:
            who = f"a transaction of producer id {transaction.producer_id}"
        if transaction is not None and transaction.hangs:
            who += ", which no coordinator knows,"
            remedy = (
                "Nothing will end it: abort it with Kafka's own tool,\n  kafka-transactions.sh "
                f"--bootstrap-server HOST:PORT abort --topic {name} --partition {index} --start-offset "
                f"{transaction.first_offset}"
            )
        findings.append(
            warning(
                "topics",
                f"{name}-{index}",
                f"Consumers with isolation.level=read_committed stop at offset {offset.last_stable:,} of "
                f"{name}-{index}, {counted(waiting, 'offset')} before its end: {who} is open.",
                remedy,
            )
        )
    return findings
