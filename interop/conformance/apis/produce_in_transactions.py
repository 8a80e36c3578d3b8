"""Produce: the batches of transactions."""

from __future__ import annotations

from interop.conformance.batches import batch, changed
from interop.conformance.conversation import LATEST, conversation
from interop.conformance.producing import into, one, read_back
from interop.conformance.talk import ANY, E, Talk
from interop.conformance.topics import nowhere, unknown_topic
from interop.conformance.transactions import LAST_PRODUCE_VERSION_OF_OLD_CLIENTS
from interop.conformance.transactions import Producer as TransactionalProducer
from pykafka_broker.protocol.messages.produce import PartitionProduceData
from pykafka_broker.protocol.records.batch import TRANSACTIONAL_BIT, Codec


def implicitly(talk: Talk) -> bool:
    """Whether this version adds partitions to a transaction by itself."""
    return talk.version > LAST_PRODUCE_VERSION_OF_OLD_CLIENTS


@conversation
def transactional_batches_are_appended_when_their_partition_was_added(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    producer.adds(topic)
    for _ in range(2):
        talk.ask(producer.producing(topic, producer.batch(topic, b"x", b"y")))
    producer.ends()
    read_back(talk, topic)


@conversation("0+", alone=True)  # Apache takes the words of another request that the coordinator has
def transactional_batches_of_a_partition_that_was_not_added(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    refused = E.TRANSACTION_ABORTABLE if talk.version == 11 else E.INVALID_TXN_STATE
    request = producer.producing(topic, producer.batch(topic, b"x"))
    talk.ask(request, *([] if implicitly(talk) else [refused]))
    producer.settles() if not implicitly(talk) else producer.ends()
    read_back(talk, topic)


@conversation
def transactional_batches_of_an_older_epoch(talk: Talk) -> None:
    topic, older = talk.topic(), TransactionalProducer(talk)
    producer = TransactionalProducer(talk)
    producer.adds(topic)
    talk.ask(producer.producing(topic, producer.batch(topic, b"x")))
    talk.ask(producer.producing(topic, older.batch(topic, b"y")), E.INVALID_PRODUCER_EPOCH)


@conversation
def transactional_batches_of_an_unknown_producer(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    unknown = producer.batch(topic, b"x", producer_id=producer.producer_id + 1000)
    talk.ask(producer.producing(topic, unknown), E.INVALID_PRODUCER_ID_MAPPING)


@conversation
def transactional_batches_of_an_unknown_transactional_id(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    request = producer.producing(topic, producer.batch(topic, b"x"))
    request.transactional_id = talk.name("unknown")
    talk.ask(request, E.INVALID_PRODUCER_ID_MAPPING)


@conversation("0+", alone=True)  # Apache takes the words of another request that the coordinator has
def transactional_batches_after_the_end_of_their_transaction(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    producer.adds(topic)
    talk.ask(producer.producing(topic, producer.batch(topic, b"x")))
    producer.ends(version=4)
    refused = E.TRANSACTION_ABORTABLE if talk.version == 11 else E.INVALID_TXN_STATE
    request = producer.producing(topic, producer.batch(topic, b"late"))
    talk.ask(request, *([] if implicitly(talk) else [refused]))


@conversation
def transactional_batches_need_a_producer_id(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    without_id = producer.batch(topic, b"x", producer_id=-1, producer_epoch=-1, base_sequence=-1)
    talk.ask(producer.producing(topic, without_id), ANY)


@conversation
def plain_batches_of_a_transactional_producer_in_its_transaction(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    producer.adds(topic)
    talk.ask(producer.producing(topic, producer.batch(topic, b"x")))
    talk.ask(producer.producing(topic, producer.batch(topic, b"y", transactional=False)), E.INVALID_TXN_STATE)


@conversation
def transactional_and_plain_batches_in_one_request(talk: Talk) -> None:
    a, b, producer = talk.topic("a"), talk.topic("b"), TransactionalProducer(talk)
    producer.adds(a)
    request = producer.producing(a, producer.batch(a, b"x"))
    request.topic_data += [into(b, batch(b"plain")), into(nowhere(talk), batch(b"lost"))]
    talk.ask(request, unknown_topic(talk))


@conversation
def two_producers_in_one_request(talk: Talk) -> None:
    a, b = talk.topic("a"), talk.topic("b")
    one_of_them, other = TransactionalProducer(talk, "one"), TransactionalProducer(talk, "other")
    one_of_them.adds(a)
    other.adds(b)
    request = one_of_them.producing(a, one_of_them.batch(a, b"x"))
    request.topic_data.append(into(b, other.batch(b, b"y")))
    talk.ask(request, *[E.INVALID_PRODUCER_ID_MAPPING] * 2)


@conversation
def two_producers_in_one_request_leave_no_trace(talk: Talk) -> None:
    a, b, producer = talk.topic("a"), talk.topic("b"), TransactionalProducer(talk)
    other = TransactionalProducer(talk, "other")
    producer.adds(a)
    request = producer.producing(a, producer.batch(a, b"x"))
    request.topic_data.append(into(b, other.batch(b, b"y")))
    talk.ask(request, *[E.INVALID_PRODUCER_ID_MAPPING] * 2)
    talk.ask(producer.producing(a, producer.batch(a, b"later", base_sequence=5)), ANY)


@conversation
def a_producer_of_a_missing_partition_is_not_counted(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    producer.adds(topic)
    request = producer.producing(topic, producer.batch(topic, b"x"))
    other = producer.batch(topic, b"y", producer_id=producer.producer_id + 1000)
    request.topic_data[0].partition_data.append(PartitionProduceData(index=7, records=other))
    talk.ask(request, E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def what_is_no_batch_of_a_transaction_is_refused_first_and_leaves_no_trace(talk: Talk) -> None:
    topic = talk.topic()
    older, producer = TransactionalProducer(talk), TransactionalProducer(talk)
    for spoilt, error in (
        (lambda data: data * 2, E.INVALID_RECORD),
        (lambda data: data[:-1], E.INVALID_RECORD),
        (lambda data: changed(data, magic=1), E.INVALID_RECORD),
    ):
        talk.ask(one(topic, spoilt(older.batch(topic, b"x" * 50)), transactional_id=older.id), error)
        talk.ask(one(topic, spoilt(producer.batch(topic, b"x" * 50)), transactional_id=producer.id), error)
    producer.adds(topic)
    talk.ask(producer.producing(topic, producer.batch(topic, b"later", base_sequence=5)), ANY)


@conversation("3-6")
def a_codec_that_the_version_forbids_is_noticed_before_the_transaction(talk: Talk) -> None:
    topic = talk.topic()
    older, producer = TransactionalProducer(talk), TransactionalProducer(talk)
    producer.adds(topic)
    for each in (older, producer):
        data = each.batch(topic, b"x" * 50, codec=Codec.ZSTD)
        talk.ask(each.producing(topic, data), E.UNSUPPORTED_COMPRESSION_TYPE)
        data = changed(each.batch(topic, b"x" * 50), attributes=TRANSACTIONAL_BIT | 5)
        talk.ask(each.producing(topic, data), E.UNKNOWN_SERVER_ERROR)
    talk.ask(producer.producing(topic, producer.batch(topic, b"later", base_sequence=5)))
    producer.ends()
    read_back(talk, topic)


@conversation
def a_transaction_in_a_topic_with_append_time(talk: Talk) -> None:
    topic = talk.topic(configs={"message.timestamp.type": "LogAppendTime"})
    producer = TransactionalProducer(talk)
    for commits in (True, False):
        producer.adds(topic)
        talk.ask(producer.producing(topic, producer.batch(topic, b"x", b"y")))
        producer.ends(commits)
    read_back(talk, topic)


@conversation
def a_transactional_batch_sent_again(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    producer.adds(topic)
    request = producer.producing(topic, producer.batch(topic, b"x"))
    for _ in range(2):
        talk.ask(request)
    producer.ends()
    read_back(talk, topic)


@conversation
def a_transaction_begins_with_any_sequence_but_goes_on_in_order(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    producer.adds(topic)
    talk.ask(producer.producing(topic, producer.batch(topic, b"x", base_sequence=5)), ANY)
    talk.ask(producer.producing(topic, producer.batch(topic, b"y", base_sequence=9)), ANY)


@conversation(LATEST)
def a_batch_that_the_coordinator_refused_does_not_block_other_producers(talk: Talk) -> None:
    """Under the producer id of another producer, whose transaction is open: that one writes on."""
    topic, producer, other = talk.topic(), TransactionalProducer(talk), TransactionalProducer(talk, "other")
    producer.writes(topic, b"first")
    strange = other.batch(
        topic, b"strange", producer_id=producer.producer_id, producer_epoch=producer.epoch + 1
    )
    talk.ask(other.producing(topic, strange), E.INVALID_PRODUCER_ID_MAPPING)
    talk.ask(producer.producing(topic, producer.batch(topic, b"second")), ANY)
