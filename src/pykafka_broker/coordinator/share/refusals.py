"""The answers where no shard takes an event: this node is not the coordinator, the partition is still being
read, or the log has refused the records.

The error has the code for clients (`shards.as_answered`); the message says in Kafka's words what failed.
"""

from __future__ import annotations

from pykafka_broker.coordinator.share.core.events import ReadResult, Refusal, StateResult, SummaryResult
from pykafka_broker.protocol.errors import KafkaError


def initialize(error: KafkaError) -> StateResult:
    """The answer to InitializeShareGroupState, for one share partition."""
    return StateResult(_refusal("initialize share group state", error))


def read(error: KafkaError) -> ReadResult:
    """The answer to ReadShareGroupState, for one share partition."""
    return ReadResult(_refusal("read share group state", error))


def write(error: KafkaError) -> StateResult:
    """The answer to WriteShareGroupState, for one share partition."""
    return StateResult(_refusal("write share group state", error))


def delete(error: KafkaError) -> StateResult:
    """The answer to DeleteShareGroupState, for one share partition."""
    return StateResult(_refusal("delete share group state", error))


def summary(error: KafkaError) -> SummaryResult:
    """The answer to ReadShareGroupStateSummary, for one share partition."""
    return SummaryResult(_refusal("read share group state summary", error))


def _refusal(deed: str, error: KafkaError) -> Refusal:
    return Refusal(error.code, f"Unable to {deed}: {error.message}")
