"""Produce: the sequence numbers of idempotent producers."""

from __future__ import annotations

from interop.conformance.batches import batch
from interop.conformance.conversation import conversation
from interop.conformance.producing import into, new_producer, one, producing, read_back
from interop.conformance.talk import E, Talk, Topic
from interop.conformance.topics import without_start


class Producer:
    """An idempotent producer with a partition to write to."""

    def __init__(self, talk: Talk, topic: Topic) -> None:
        self.talk, self.topic = talk, topic
        self.producer_id = new_producer(talk)

    def writes(self, sequence: int, *errors: E, count: int = 1, epoch: int = 0) -> None:
        data = batch(
            *[b"%d" % (sequence + index) for index in range(count)],
            producer_id=self.producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        self.talk.ask(one(self.topic, data), *errors)


@conversation
def sequences_go_on_where_they_ended(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(0, count=3)
    producer.writes(3)
    producer.writes(4, count=2)
    read_back(talk, producer.topic)


@conversation
def a_batch_sent_again_is_answered_again_and_not_written_again(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(0, count=3)
    producer.writes(0, count=3)
    producer.writes(3)
    producer.writes(0, count=3)
    read_back(talk, producer.topic)


@conversation
def only_the_last_five_batches_are_remembered(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    for sequence in range(6):
        producer.writes(sequence)
    producer.writes(1)
    producer.writes(5)
    producer.writes(0, E.OUT_OF_ORDER_SEQUENCE_NUMBER)


@conversation
def a_gap_in_the_sequence_is_out_of_order(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(0)
    producer.writes(2, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    producer.writes(0, E.OUT_OF_ORDER_SEQUENCE_NUMBER, count=2)
    producer.writes(1)


@conversation
def a_new_producer_may_begin_anywhere(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(7)
    producer.writes(8)


@conversation
def a_new_epoch_begins_with_sequence_zero(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(0)
    producer.writes(1, E.OUT_OF_ORDER_SEQUENCE_NUMBER, epoch=1)
    producer.writes(0, epoch=1)
    producer.writes(1, E.INVALID_PRODUCER_EPOCH, epoch=0)
    producer.writes(0, E.INVALID_PRODUCER_EPOCH, epoch=0)
    producer.writes(1, epoch=1)


@conversation
def a_sequence_ends_and_begins_again_with_zero(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(2**31 - 2, count=1)
    producer.writes(2**31 - 1, count=3)
    producer.writes(2)
    producer.writes(2**31 - 1, count=3)
    read_back(talk, producer.topic)


@conversation
def the_largest_sequence_of_all(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(2**31 - 1)
    producer.writes(0)
    producer.writes(2**31 - 1)


@conversation
def an_older_epoch_sends_again_what_was_written(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(0, epoch=2)
    producer.writes(0, E.INVALID_PRODUCER_EPOCH, epoch=1)
    producer.writes(0, epoch=2)
    producer.writes(0, epoch=2**15 - 1)
    producer.writes(0, E.INVALID_PRODUCER_EPOCH, epoch=0)


@conversation
def a_producer_is_forgotten_with_its_records(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(0)
    producer.writes(1)
    without_start(talk, producer.topic, 2)
    producer.writes(1)
    producer.writes(5, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    producer.writes(2)


@conversation
def a_producer_id_that_was_never_allocated_is_accepted(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, batch(b"x", producer_id=2**50, producer_epoch=3, base_sequence=0)))
    talk.ask(one(topic, batch(b"y", producer_id=2**50, producer_epoch=3, base_sequence=1)))


@conversation
def each_partition_has_its_own_sequences(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    producer_id = new_producer(talk)

    def of(sequence: int) -> bytes:
        return batch(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=sequence)

    talk.ask(producing(into(topic, of(0), of(0))))
    talk.ask(producing(into(topic, of(1), of(2))), E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    talk.ask(producing(into(topic, of(2), of(1))))


@conversation
def a_repeated_batch_in_a_topic_with_append_time_has_its_first_time(talk: Talk) -> None:
    producer = Producer(talk, talk.topic(configs={"message.timestamp.type": "LogAppendTime"}))
    producer.writes(0)
    producer.writes(0)


@conversation
def a_repeated_batch_that_is_longer_now_is_out_of_order(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(0, count=2)
    producer.writes(0, E.OUT_OF_ORDER_SEQUENCE_NUMBER, count=3)
    producer.writes(1, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
