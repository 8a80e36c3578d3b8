"""The retries of a producer while a cluster elects, creates, loads or restarts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pykafka_broker.client.core.conversation import Conversation, Wait
from pykafka_broker.client.core.producer_state import TransactionLost
from pykafka_broker.client.core.retries import RETRIABLE, RETRY_PAUSE_MS, Attempt
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

Result = TypeVar("Result")

#: The errors that are temporary for producers, including those in RETRIABLE.
TEMPORARY = RETRIABLE | {
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    # A former leader does not know of its successor: the next look-up finds the leader.
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}
#: The pause while markers of the previous transaction are written, which takes milliseconds.
CONCURRENT_PAUSE_MS = 5


def patiently(once: Callable[[Attempt], Conversation[Result]], attempt: Attempt) -> Conversation[Result]:
    """The result of the first attempt that succeeds.

    Raises:
        KafkaError, OSError: the error of the last attempt, or one that is not temporary. The error of a lost
            connection has a note with the last error code that a broker answered.
    """
    answered = ""
    while True:
        pause_ms = RETRY_PAUSE_MS
        try:
            return (yield from once(attempt))
        except OSError as error:
            if attempt.is_last:
                if answered:
                    error.add_note(f"the answer before was {answered}")
                raise
        except KafkaError as error:
            is_final = isinstance(error, TransactionLost) or error.code not in TEMPORARY
            if attempt.is_last or is_final:
                raise
            answered = error.code.name
            if error.code == ErrorCode.CONCURRENT_TRANSACTIONS:
                pause_ms = CONCURRENT_PAUSE_MS
        reply = yield Wait(attempt.began_ms + pause_ms)
        attempt = attempt.again(reply.now_ms)
