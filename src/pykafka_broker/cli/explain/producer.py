"""What Kafka's APIs tell about a producer: its transactions (DescribeTransactions)."""

from __future__ import annotations

from pykafka_broker.cli.explain.explanation import Fact
from pykafka_broker.cli.wording import record_time
from pykafka_broker.client.blocking import Client, now_ms
from pykafka_broker.client.core.connection import check
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from pykafka_broker.protocol.messages.list_transactions import ListTransactionsRequest
from pykafka_broker.system.wording import duration

WITHOUT_ID = "A producer without one is known to the leaders of the partitions that it writes to."
FENCED = "A producer with a smaller epoch is fenced: it cannot go on, and has to be closed."


def look(client: Client, name: str) -> list[Fact]:
    """The present of a transactional id, or of the producer with an id of that number.

    Raises:
        KafkaError: a coordinator's error.
    """
    facts = []
    for transactional_id, node_id in _found(client, name):
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        [described] = client.send(request, node_id).transaction_states
        if described.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            continue
        check(described.error_code)
        text = (
            f"The transactional id {transactional_id} belongs to producer id {described.producer_id}, epoch "
            f"{described.producer_epoch}. Its transaction is {described.transaction_state}. Its coordinator "
            f"is broker {node_id}."
        )
        if described.transaction_state == "Ongoing":
            began_ms = described.transaction_start_time_ms
            names = [f"{topic.topic}-{number}" for topic in described.topics for number in topic.partitions]
            text += (
                f" It began at {record_time(began_ms)}, {duration(max(0, now_ms() - began_ms))} ago, writes "
                f"to {', '.join(names)}, and is aborted after {duration(described.transaction_timeout_ms)}."
            )
        facts.append(Fact(text, FENCED))
    return facts or [Fact(f"No coordinator knows a transactional id of {name}.", WITHOUT_ID)]


def _found(client: Client, name: str) -> list[tuple[str, int]]:
    """The transactional ids that are `name`, or whose producer id is, and the coordinator of each."""
    found = []
    for broker in sorted(client.metadata([]).brokers, key=lambda broker: broker.node_id):
        try:
            request = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
            answer = client.send(request, broker.node_id)
            check(answer.error_code)
        except KafkaError as error:
            if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                continue
            raise
        found += [
            (each.transactional_id, broker.node_id)
            for each in answer.transaction_states
            if name in (each.transactional_id, str(each.producer_id))
        ]
    return found
