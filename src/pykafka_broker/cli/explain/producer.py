"""What Kafka's APIs tell about a producer: its transactions (DescribeTransactions)."""

from __future__ import annotations

from pykafka_broker.cli.explain.explanation import Fact
from pykafka_broker.cli.wording import record_time
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.machine.clock import SystemClock
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    TransactionState,
)
from pykafka_broker.protocol.messages.list_transactions import ListTransactionsRequest
from pykafka_broker.system.wording import duration

WITHOUT_ID = "A producer without one is known to the leaders of the partitions that it writes to."
AGAIN = "Ask again when these brokers tell."


def look(client: Client, name: str) -> list[Fact]:
    """The present of a transactional id, or of the producer with an id of that number.

    Raises:
        KafkaError: a coordinator's error.
    """
    facts, (found, untold) = [], _found(client, name)
    for transactional_id, node_id in found:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        [described] = client.send(request, node_id).transaction_states
        if described.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            continue
        check(described.error_code)
        facts.append(Fact(_in_words(described, node_id, SystemClock().now_ms())))
    if facts:
        return facts
    if untold:
        text = f"No coordinator that tells knows a transactional id of {name}, but {' and '.join(untold)}."
        return [Fact(text, AGAIN)]
    return [Fact(f"No coordinator knows a transactional id of {name}.", WITHOUT_ID)]


def _in_words(described: TransactionState, coordinator: int, now_ms: int) -> str:
    text = (
        f"The transactional id {described.transactional_id} belongs to producer id {described.producer_id}, "
        f"epoch {described.producer_epoch}. Its transaction is {described.transaction_state}. Its "
        f"coordinator is broker {coordinator}."
    )
    if described.transaction_state != "Ongoing":
        return text
    began_ms = described.transaction_start_time_ms
    names = [f"{topic.topic}-{number}" for topic in described.topics for number in topic.partitions]
    return (
        f"{text} It began at {record_time(began_ms)}, {duration(max(0, now_ms - began_ms))} ago, writes to "
        f"{', '.join(names)}, and is aborted after {duration(described.transaction_timeout_ms)}."
    )


def _found(client: Client, name: str) -> tuple[list[tuple[str, int]], list[str]]:
    """The transactional ids that are `name`, or whose producer id is, and the coordinator of each; and why
    other brokers do not tell theirs.
    """
    found, untold = [], []
    for broker in sorted(client.metadata([]).brokers, key=lambda broker: broker.node_id):
        try:
            request = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
            answer = client.send(request, broker.node_id)
            check(answer.error_code)
        except OSError as error:
            untold.append(f"broker {broker.node_id} does not answer ({error})")
            continue
        except KafkaError as error:
            if error.code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                raise
            untold.append(f"broker {broker.node_id} is still loading its transactions")
            continue
        found += [
            (each.transactional_id, broker.node_id)
            for each in answer.transaction_states
            if name in (each.transactional_id, str(each.producer_id))
        ]
    return found, untold
