"""What Kafka's APIs tell about a partition: its leader, its replicas in sync, and missing brokers."""

from __future__ import annotations

from pykafka_broker.cli.explain.explanation import Fact
from pykafka_broker.client.blocking import Client
from pykafka_broker.doctor import brokers
from pykafka_broker.doctor.topics import NO_LEADER, TOPIC, configs, is_enough
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.system.wording import listed

OFFLINE = (
    "Start these brokers. If they are lost for good, `pykafka-broker elections unclean` lets another replica "
    "lead, which loses records."
)
UNDER = "Start the missing brokers, or find out why they lag; writes with acks=1 go on."


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
        KafkaError: there is no such topic.
    """
    topic, _, number = name.rpartition("-")
    described = client.topic(topic)
    partition = next((p for p in described.partitions if p.partition_index == int(number)), None)
    if partition is None:
        return [Fact(f"Topic {topic} has no partition {number}.", "")]
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
    away = _away(client, replicas)
    missing = f" Of its brokers, {listed(away)}." if away else ""
    if partition.leader_id == NO_LEADER:
        facts.append(
            Fact(
                f"The partition is offline: it can be neither written nor read, because none of "
                f"{list(isr)}, which may lead it, runs.{missing}",
                OFFLINE,
            )
        )
    elif least is not None and not is_enough(replicas, isr, int(least)):
        facts.append(
            Fact(
                f"Too few replicas are in sync, so that writes with acks=all are refused with "
                f"NOT_ENOUGH_REPLICAS.{missing}",
                UNDER,
            )
        )
    elif set(isr) != set(replicas):
        lagging = sorted(set(replicas) - set(isr))
        facts.append(Fact(f"The replicas {lagging} are not in sync.{missing}"))
    return facts


def _away(client: Client, replicas: tuple[int, ...]) -> list[str]:
    """The replicas whose brokers are fenced or not registered, if brokers tell."""
    try:
        found = brokers.registered(client) if brokers.tells_fenced(client) else None
    except KafkaError:
        found = None
    if found is None:
        running = {broker.node_id for broker in client.metadata([]).brokers}
        return [f"{replica} is not running" for replica in replicas if replica not in running]
    fenced = {broker.broker_id: broker.is_fenced for broker in found.brokers}
    return [
        f"{replica} is {'fenced' if replica in fenced else 'not registered'}"
        for replica in replicas
        if fenced.get(replica, True)
    ]
