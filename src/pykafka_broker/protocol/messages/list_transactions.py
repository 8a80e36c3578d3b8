"""ListTransactions (API key 66): the transactional ids that this broker coordinates.

v0 flexible, v1 those that run longer than a duration, v2 those whose id matches a pattern.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, i64, message, string


@message(api_key=66, versions="0-2", flexible="0+", listeners="broker")
class ListTransactionsRequest:
    state_filters: list[str] = array(string())
    producer_id_filters: list[int] = array(i64(entity="producer_id"))
    duration_filter: int = i64("1+", default=-1)
    transactional_id_pattern: str | None = string("2+", nullable=True, default=None)


@message()
class TransactionState:
    transactional_id: str = string(entity="transactional_id")
    producer_id: int = i64(entity="producer_id")
    transaction_state: str = string()


@message(api_key=66, versions="0-2", flexible="0+")
class ListTransactionsResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    unknown_state_filters: list[str] = array(string())
    transaction_states: list[TransactionState] = array(TransactionState)
