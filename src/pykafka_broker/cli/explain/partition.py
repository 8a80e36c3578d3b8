"""What Kafka's APIs tell about a partition: its leader, its replicas in sync, and those that are away."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pykafka_broker.cli.explain.explanation import Fact
from pykafka_broker.cli.topics import describe_topics
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.metadata import NO_LEADER
from pykafka_broker.doctor import brokers
from pykafka_broker.doctor.topics import TOPIC, configs, is_enough
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import listed

STOPPED = "Start the brokers that do not run."
FAILED_DISK = (
    "Mend or replace the disk of the log directory that failed, and start its broker again: "
    "`pykafka-broker health HOST:PORT` of that broker names the directory."
)
LOST = (
    "If the replicas that may lead are lost for good, `pykafka-broker elections unclean` lets another one "
    "lead, which loses records."
)
LAGGING = "Find out why the missing replicas lag."
GOES_ON = "Writes with acks=1 go on."


class _Away(NamedTuple):
    """The replicas that do not run, in words, and what to do."""

    text: str
    remedies: list[str]


def named(text: str) -> str:
    """The name of a partition, such as `orders-0`, that a text such as `orders:0` means.

    Raises:
        ValueError: it means none.
    """
    topic, dash, number = text.replace(":", "-").rpartition("-")
    if not (topic and dash and number.isdecimal()):
        raise ValueError(f"{text} is no partition: name it as orders-0")
    return f"{topic}-{int(number)}"


def look(client: Client, name: str) -> list[Fact]:
    """The present of a partition.

    Raises:
        KafkaError: there is no such topic, or partition of it.
    """
    topic, _, number = name.rpartition("-")
    # Not `client.topic`, which waits for leaders: the partition may have none.
    [described] = describe_topics(client, [topic])
    partition = next((p for p in described.partitions if p.partition_index == int(number)), None)
    if partition is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic {topic} has no partition {int(number)}."
        )
    replicas, isr = tuple(partition.replica_nodes), tuple(partition.isr_nodes)
    key = "min.insync.replicas"
    least = configs(client, TOPIC, topic, key).get(key)
    limit = f"{key} is not told to this client" if least is None else f"{key}={least}"
    leader = "no leader"
    if partition.leader_id != NO_LEADER:
        leader = f"broker {partition.leader_id} as its leader"
    facts = [
        Fact(
            f"The partition has {leader} (leader epoch {partition.leader_epoch}), the replicas "
            f"{list(replicas)}, of which {list(isr)} are in sync, and {limit}."
        )
    ]
    away = _away(client, replicas, partition.offline_replicas)
    if partition.leader_id == NO_LEADER:
        facts.append(
            Fact(
                "The partition is offline: it can be neither written nor read, because "
                f"{_none_leads(partition)}.{away.text}",
                " ".join([*away.remedies, LOST]),
            )
        )
    elif least is not None and not is_enough(replicas, isr, int(least)):
        facts.append(
            Fact(
                f"Too few replicas are in sync, so that writes with acks=all are refused with "
                f"NOT_ENOUGH_REPLICAS.{away.text}",
                " ".join([*(away.remedies or [LAGGING]), GOES_ON]),
            )
        )
    elif set(isr) != set(replicas):
        lagging = sorted(set(replicas) - set(isr))
        facts.append(Fact(f"The replicas {lagging} are not in sync.{away.text}", " ".join(away.remedies)))
    return facts


def _none_leads(partition: Any) -> str:
    """Why no replica leads. An ISR may be empty where eligible leader replicas are kept (KIP-966)."""
    may_lead = sorted({*partition.isr_nodes, *(getattr(partition, "eligible_leader_replicas", None) or ())})
    if may_lead:
        return f"none of {may_lead}, which may lead it, is available"
    last = getattr(partition, "last_known_elr", None)
    return f"no replica may lead it{f'; the last that might were {sorted(last)}' if last else ''}"


def _away(client: Client, replicas: tuple[int, ...], offline: Collection[int]) -> _Away:
    """The replicas whose brokers are fenced or not registered, if brokers tell, and those whose brokers run
    without the log directory of the replica.
    """
    try:
        found = brokers.registered(client) if brokers.tells_fenced(client) else None
    except KafkaError:
        found = None
    if found is None:
        running = {broker.node_id for broker in client.metadata([]).brokers}
        stopped = {replica: "not running" for replica in replicas if replica not in running}
    else:
        fenced = {broker.broker_id: broker.is_fenced for broker in found.brokers}
        stopped = {
            replica: "fenced" if replica in fenced else "not registered"
            for replica in replicas
            if fenced.get(replica, True)
        }
    failed = [replica for replica in replicas if replica in offline and replica not in stopped]
    texts, remedies = [], []
    if stopped:
        those = listed([f"{replica} is {state}" for replica, state in stopped.items()])
        texts.append(f" Of its brokers, {those}.")
        remedies.append(STOPPED)
    if failed:
        texts.append(
            f" The log directory of its replica on broker {listed([*map(str, failed)])} is out of service."
        )
        remedies.append(FAILED_DISK)
    return _Away("".join(texts), remedies)
