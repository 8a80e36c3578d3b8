"""AddOffsetsToTxn: offsets of a group become part of a transaction."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from interop.conformance.transactions import Producer, with_coordinator
from pykafka_broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from pykafka_broker.protocol.messages.describe_transactions import DescribeTransactionsRequest


def of(producer: Producer, group: str, **more: int) -> AddOffsetsToTxnRequest:
    fields = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch, **more}
    return AddOffsetsToTxnRequest(transactional_id=producer.id, group_id=group, **fields)


@conversation
def a_groups_offsets_begin_a_transaction(talk: Talk) -> None:
    producer = Producer(talk)
    talk.ask(of(producer, talk.name("group")))
    talk.ask(of(producer, talk.name("group")))
    talk.ask(DescribeTransactionsRequest(transactional_ids=[producer.id]))


@conversation
def an_empty_group_id_is_a_name_like_others(talk: Talk) -> None:
    talk.ask(of(Producer(talk), ""))


@conversation
def an_unknown_transactional_id(talk: Talk) -> None:
    with_coordinator(talk, talk.name("unknown"))
    request = AddOffsetsToTxnRequest(
        transactional_id=talk.name("unknown"), producer_id=5, producer_epoch=0, group_id=talk.name("group")
    )
    talk.ask(request, E.INVALID_PRODUCER_ID_MAPPING)


@conversation
def an_empty_transactional_id(talk: Talk) -> None:
    with_coordinator(talk, talk.name("unknown"))
    request = AddOffsetsToTxnRequest(
        transactional_id="", producer_id=5, producer_epoch=0, group_id=talk.name("group")
    )
    talk.ask(request, E.INVALID_REQUEST)


@conversation
def another_producer_id_or_epoch(talk: Talk) -> None:
    producer = Producer(talk)
    fenced = E.PRODUCER_FENCED if talk.version >= 2 else E.INVALID_PRODUCER_EPOCH
    talk.ask(of(producer, talk.name("group"), producer_epoch=5), fenced)
    talk.ask(of(producer, talk.name("group"), producer_epoch=-1), fenced)
    talk.ask(
        of(producer, talk.name("group"), producer_id=producer.producer_id + 1000),
        E.INVALID_PRODUCER_ID_MAPPING,
    )
