"""Asks the transaction coordinator before a transaction's first batch is written to a partition (KIP-890).

For Produce: a guard from the log, a request to the transaction coordinator, and errors after which producers
of any version do the right thing. TxnOffsetCommit, whose clients retry after other errors, asks by itself and
has only `participation` from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pykafka_broker.coordinator.transactions.add_or_verify import FirstWrite, Participation
from pykafka_broker.log.partition.transaction_guards import NO_GUARD
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import read_header
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

#: Produce versions.
FIRST_VERSION_WITH_TRANSACTION_ABORTABLE = 11
FIRST_VERSION_THAT_ADDS_PARTITIONS = 12

#: Errors after which old clients would not retry: they get NOT_ENOUGH_REPLICAS instead.
NOT_VERIFIED = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Refusal(KafkaError):
    """The transaction coordinator's refusal; `is_explained` if it has a message of its own for the client."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.is_explained = message is not None


class Verification(NamedTuple):
    """The guards of batches to append, and the errors of partitions that must not be appended to."""

    guards: Mapping[TopicPartition, int] = MappingProxyType({})
    refusals: Mapping[TopicPartition, Refusal] = MappingProxyType({})
    producer_id: int = -1
    producer_epoch: int = -1


#: For requests without transactional batches.
NOTHING_TO_VERIFY = Verification()


def start_verification(batches: Iterable[tuple[TopicPartition, Any]], ctx: RequestContext) -> Verification:
    """Sort these transactional batches into those that the coordinator has to verify, with their guards, and
    those refused; all others may be appended.

    Raises:
        KafkaError: INVALID_PRODUCER_ID_MAPPING if they are of more than one producer.
    """
    adds = ctx.version >= FIRST_VERSION_THAT_ADDS_PARTITIONS
    verifies = adds or ctx.node.configs.current["transaction.partition.verification.enable"]
    headers = {place: read_header(records) for place, records in batches}
    headers = {place: header for place, header in headers.items() if header.has_producer_id}
    producers = {(header.producer_id, header.producer_epoch) for header in headers.values()}
    if len(producers) > 1:  # before any verification starts
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            "Transactional records contained more than one producer ID",
        )
    guards: dict[TopicPartition, int] = {}
    refusals: dict[TopicPartition, Refusal] = {}
    for place, header in headers.items():
        if not verifies:
            continue
        partition = ctx.node.partitions.led(*place)
        if partition is None:
            # Decided now: once the coordinator has answered, this node may lead it, and there is no guard.
            refusals[place] = Refusal(ctx.node.partitions.why_not_led(*place))
            continue
        try:
            guard = partition.log.writer.start_verification(
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                bumps_epoch=adds,
                now_ms=ctx.node.clock.now_ms(),
            )
        except KafkaError as error:
            refusals[place] = Refusal(error.code)
        else:
            if guard != NO_GUARD:
                guards[place] = guard
    return Verification(guards, refusals, *next(iter(producers), (-1, -1)))


async def finish_verification(
    started: Verification, transactional_id: str, ctx: RequestContext
) -> Verification:
    """Ask the transaction coordinator about all partitions with a guard."""
    how = participation(
        ctx.version, FIRST_VERSION_WITH_TRANSACTION_ABORTABLE, FIRST_VERSION_THAT_ADDS_PARTITIONS
    )
    write = FirstWrite(
        transactional_id, started.producer_id, started.producer_epoch, frozenset(started.guards)
    )
    errors = await ctx.node.participation.ask(write, how, retries=how is Participation.ADD)
    refusals = {place: _as_told(error, how) for place, error in errors.items()}
    return started._replace(refusals={**started.refusals, **refusals})


def participation(version: int, aborts_since: int, adds_since: int) -> Participation:
    """The `Participation` that a request of this version asks the coordinator for."""
    if version >= adds_since:
        return Participation.ADD
    return Participation.VERIFY if version >= aborts_since else Participation.VERIFY_FOR_OLD_CLIENT


def _as_told(error: ErrorCode, how: Participation) -> Refusal:
    """The coordinator's error as producers of any version can handle it."""
    if error is ErrorCode.INVALID_TXN_STATE:
        return Refusal(error, "Partition was not added to the transaction")
    waits = error is ErrorCode.CONCURRENT_TRANSACTIONS and how is not Participation.ADD
    if waits or error in NOT_VERIFIED:
        return Refusal(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {error.name}",
        )
    return Refusal(error)
