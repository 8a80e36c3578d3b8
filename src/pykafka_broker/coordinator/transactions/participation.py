"""Adds the partitions of a transaction's first records to it, or verifies that they were added (KIP-890).

A partition's leader asks before it appends, for Produce and for TxnOffsetCommit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

from pykafka_broker.coordinator.partition_work import pause
from pykafka_broker.coordinator.transactions import refusals
from pykafka_broker.coordinator.transactions.add_or_verify import FirstWrite, Participation
from pykafka_broker.coordinator.transactions.core import events
from pykafka_broker.coordinator.transactions.remote_participation import RemoteParticipation
from pykafka_broker.coordinator.transactions.service import TransactionService
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.records.batch import EPOCH_BUMP
from pykafka_broker.protocol.topic_partition import TopicPartition


class TransactionParticipation:
    """Asks the transaction coordinator, here or on another broker, on behalf of leaders of partitions here.

    `coordinator_of(transactional_id)` is the broker that coordinates the id: None if it is this node or if
    `__transaction_state` is missing, NO_LEADER if the partition has no leader.
    """

    def __init__(
        self,
        transactions: TransactionService,
        coordinator_of: Callable[[str], int | None],
        elsewhere: RemoteParticipation,
    ) -> None:
        self._transactions = transactions
        self._coordinator_of = coordinator_of
        self._elsewhere = elsewhere

    async def ask(
        self, write: FirstWrite, how: Participation, *, retries: bool
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Ask the coordinator; return the partitions that must not be written to, with their errors.

        With `retries`, wait up to `add.partitions.to.txn.retry.backoff.max.ms` for the completion of an
        earlier transaction, which is cheaper than to let the client send its records again.
        """
        transactions = self._transactions
        clock = transactions.scheduler
        until_ms = clock.monotonic_ms() + transactions.config.add_partitions_retry_backoff_max_ms
        while True:
            coordinator_id = self._coordinator_of(write.transactional_id)
            if coordinator_id is None:
                answers = await self.ask_here(*write, adds=how is Participation.ADD)
            else:
                answers = await self._elsewhere.ask(coordinator_id, write, how)
            is_busy = ErrorCode.CONCURRENT_TRANSACTIONS in answers.values()
            if not (retries and is_busy and clock.monotonic_ms() < until_ms):
                break
            await pause(clock, transactions.config.add_partitions_retry_backoff_ms)
        return {
            partition: _as_producers_know_it(error, how)
            for partition, error in answers.items()
            if error is not ErrorCode.NONE
        }

    def ask_here(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: frozenset[TopicPartition],
        *,
        adds: bool,
    ) -> Awaitable[Mapping[TopicPartition, ErrorCode]]:
        """Ask this node's coordinator at once, for the leader of partitions here or on another broker;
        returns the error of each partition.
        """
        transactions = self._transactions
        if not adds:
            return transactions.answer(
                transactional_id,
                lambda token: events.VerifyPartitions(
                    token, transactional_id, producer_id, producer_epoch, partitions
                ),
                refused=lambda error: refusals.verify_partitions(partitions, error),
            )
        added = transactions.answer(
            transactional_id,
            lambda token: events.AddPartitions(
                token,
                transactions.now_ms(),
                transactional_id,
                producer_id,
                producer_epoch,
                partitions,
                # Clients whose writes add their partitions use a new epoch for each transaction.
                client_version=EPOCH_BUMP,
            ),
            refused=refusals.add_partitions,
        )
        return _of_each(partitions, added)


async def _of_each(
    partitions: Iterable[TopicPartition], added: Awaitable[ErrorCode]
) -> Mapping[TopicPartition, ErrorCode]:
    return dict.fromkeys(partitions, await added)


def _as_producers_know_it(error: ErrorCode, how: Participation) -> ErrorCode:
    """The coordinator's answer as an error of Produce and TxnOffsetCommit."""
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and how is Participation.VERIFY_FOR_OLD_CLIENT:
        return ErrorCode.INVALID_TXN_STATE
    return error
