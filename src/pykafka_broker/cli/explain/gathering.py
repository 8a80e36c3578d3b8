"""An explanation of a thing of any kind, from Kafka's APIs and from the brokers that tell their history."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pykafka_broker.cli.explain import group, partition, producer, request
from pykafka_broker.cli.explain.explanation import Explanation, Fact
from pykafka_broker.cli.explain.history import OwnHistory, histories
from pykafka_broker.client.blocking import Client
from pykafka_broker.machine.history import Kind
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

Look = Callable[[Client, str], list[Fact]]

LOOKS: Mapping[Kind, Look] = {
    Kind.GROUP: group.look,
    Kind.PRODUCER: producer.look,
    Kind.PARTITION: partition.look,
    Kind.REQUEST: request.look,
}
GONE = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})


def explained(
    client: Client, kind: Kind, name: str, look: Look | None = None, own: OwnHistory | None = None
) -> Explanation:
    """Why the thing of this kind and name is as it is.

    Args:
        client: Acts as the user who asks: the permissions of that user decide what is told.
        kind: What it is.
        name: Of a partition, as `orders-0`.
        look: Tells the present where the caller has asked for it; by default, Kafka's APIs are asked.
        own: The history of the broker in this process, if there is one.

    Raises:
        KafkaError: there is no such thing, and no history of it; or another error of a broker.
    """
    told = histories(client, kind, name, own)
    try:
        now = (look or LOOKS[kind])(client, name)
    except KafkaError as error:
        # A thing that is gone still has its history.
        if error.code not in GONE or not any(each.history for each in told.nodes):
            raise
        now = [Fact(error.message or error.code.name)]
    return Explanation(
        kind.value,
        name,
        [*now, *(fact for each in told.nodes for fact in each.now)],
        sorted((fact for each in told.nodes for fact in each.history), key=lambda fact: fact.last_ms or 0),
        [each.node_id for each in told.nodes],
        told.missing,
    )
