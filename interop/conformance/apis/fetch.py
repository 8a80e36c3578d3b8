"""Fetch: what consumers read, how long they wait, and what is refused."""

from __future__ import annotations

from interop.conformance.batches import MADE_MS, batch
from interop.conformance.conversation import ENDS, LATEST, conversation
from interop.conformance.fetching import LEADER_EPOCH, Session, at, fetching, of, written
from interop.conformance.talk import CLOSED, E, Talk
from interop.conformance.topics import nowhere, unknown_topic, without, without_start
from interop.conformance.transactions import Producer
from pykafka_broker.client.core.frames import request_header
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic, ReplicaState
from pykafka_broker.protocol.records.batch import Codec

# ---- what is read ----


@conversation
def records_are_read_from_an_offset_on(talk: Talk) -> None:
    topic = written(talk)
    for offset in (0, 2, 3, 5):
        talk.ask(fetching(of(topic, at(offset))))


@conversation
def a_batch_comes_whole_even_from_an_offset_inside_it(talk: Talk) -> None:
    topic = talk.topic()
    talk.produce(topic, *[b"%d" % number for number in range(10)])
    talk.ask(fetching(of(topic, at(9))))


@conversation
def at_the_end_there_is_nothing_to_read(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(fetching(of(topic, at(6))))
    talk.ask(fetching(of(talk.topic("empty"))))


@conversation
def an_offset_beyond_the_end_or_before_the_start_is_out_of_range(talk: Talk) -> None:
    topic = written(talk)
    without_start(talk, topic, 3)
    for offset in (7, 2**60, 2, 0, -1, -2, -(2**63)):
        talk.ask(fetching(of(topic, at(offset))), E.OFFSET_OUT_OF_RANGE)
    talk.ask(fetching(of(topic, at(3))))


@conversation
def several_partitions_are_answered_in_the_order_of_the_request(talk: Talk) -> None:
    a, b = talk.topic("a", partitions=3), talk.topic("b")
    for partition in range(3):
        talk.produce(a, b"a", partition=partition)
    talk.produce(b, b"b")
    talk.ask(fetching(of(b), of(a, at(0, 2), at(0, 0), at(1, 1))))


@conversation
def nothing_asked_nothing_answered(talk: Talk) -> None:
    talk.ask(fetching())
    talk.ask(fetching(FetchTopic(topic=talk.topic().name, partitions=[])))


@conversation
def both_levels_of_isolation_see_plain_records(talk: Talk) -> None:
    topic = written(talk)
    for level in (0, 1):
        talk.ask(fetching(of(topic), isolation_level=level))
        talk.ask(fetching(of(topic, at(6)), isolation_level=level))


@conversation
def a_level_of_isolation_that_does_not_exist(talk: Talk) -> None:
    topic = written(talk)
    count = 2 if 7 <= talk.version <= 12 else 1  # of the answer and of its partition
    for level in (2, -1):
        talk.ask(fetching(of(topic), isolation_level=level), *[E.UNKNOWN_SERVER_ERROR] * count)


@conversation("4-9")
def zstd_is_read_by_versions_that_do_not_know_it(talk: Talk) -> None:
    topic = talk.topic()
    talk.append(topic, batch(b"compressed" * 20, codec=Codec.ZSTD))
    talk.ask(fetching(of(topic)))


@conversation
def what_was_compressed_comes_compressed(talk: Talk) -> None:
    topic = talk.topic()
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        talk.append(topic, batch(b"compressed" * 20, codec=codec))
    talk.ask(fetching(of(topic)))


@conversation
def a_rack_does_not_matter_to_a_broker_without_one(talk: Talk) -> None:
    talk.ask(fetching(of(written(talk)), rack_id="somewhere"))


# ---- limits ----


@conversation
def the_first_batch_comes_even_above_the_limits(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(fetching(of(topic, at(0, max_bytes=1))))
    talk.ask(fetching(of(topic), max_bytes=1))
    talk.ask(fetching(of(topic, at(0, max_bytes=0))))
    talk.ask(fetching(of(topic), max_bytes=0))


@conversation
def a_partition_gives_whole_batches_up_to_its_limit(talk: Talk) -> None:
    topic = written(talk)
    size = len(batch(b"0 a", b"0 b"))
    for max_bytes in (size, 2 * size, 3 * size):
        talk.ask(fetching(of(topic, at(0, max_bytes=max_bytes))))


@conversation(LATEST)
def a_limit_inside_a_batch(talk: Talk) -> None:
    topic = written(talk)
    size = len(batch(b"0 a", b"0 b"))
    for max_bytes in (2 * size - 1, 2 * size + 1):
        talk.ask(fetching(of(topic, at(0, max_bytes=max_bytes))))


@conversation
def the_limit_of_the_answer_is_spent_in_the_order_of_the_request(talk: Talk) -> None:
    a, b = written(talk, label="a"), written(talk, label="b")
    size = len(batch(b"0 a", b"0 b"))
    talk.ask(fetching(of(a), of(b), max_bytes=3 * size))
    talk.ask(fetching(of(a), of(b), max_bytes=4 * size))
    talk.ask(fetching(of(b), of(a), max_bytes=size))


@conversation
def only_the_first_partition_may_be_above_the_limit(talk: Talk) -> None:
    a, b, empty = written(talk, label="a"), written(talk, label="b"), talk.topic("empty")
    talk.ask(fetching(of(empty), of(a, at(0, max_bytes=10)), of(b, at(0, max_bytes=10))))


@conversation
def negative_limits(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(fetching(of(topic), max_bytes=-1), E.UNKNOWN_SERVER_ERROR)
    talk.ask(fetching(of(topic, at(0, max_bytes=-1))), E.UNKNOWN_SERVER_ERROR)
    talk.ask(fetching(of(topic), min_bytes=-1))
    talk.ask(fetching(of(topic), max_wait_ms=-1))


@conversation
def negative_limits_beside_an_error(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(fetching(of(topic, at(99, max_bytes=-1))), E.OFFSET_OUT_OF_RANGE)
    talk.ask(fetching(of(topic, at(6, max_bytes=-1))))
    talk.ask(fetching(of(topic, at(0, 7, max_bytes=-1))), E.UNKNOWN_TOPIC_OR_PARTITION)


# ---- waiting ----


@conversation
def a_fetch_waits_for_records(talk: Talk) -> None:
    topic = talk.topic()
    waiting = talk.send(fetching(of(topic), max_wait_ms=10_000))
    waiting.is_waiting()
    talk.another().produce(topic, b"at last")
    waiting.answer()


@conversation
def a_fetch_waits_for_enough_bytes(talk: Talk) -> None:
    topic = talk.topic()
    waiting = talk.send(fetching(of(topic), max_wait_ms=10_000, min_bytes=300))
    other = talk.another()
    other.produce(topic, b"not much")
    waiting.is_waiting()
    other.produce(topic, b"x" * 300)
    waiting.answer()


@conversation
def the_wait_ends_when_its_time_is_up(talk: Talk) -> None:
    topic = written(talk, batches=1)
    talk.ask(fetching(of(topic), max_wait_ms=100, min_bytes=100_000))
    talk.ask(fetching(of(topic, at(2)), max_wait_ms=100))


@conversation
def a_fetch_with_min_bytes_of_0_or_less_does_not_wait(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(fetching(of(topic), max_wait_ms=10_000, min_bytes=0))
    talk.ask(fetching(of(topic), max_wait_ms=10_000, min_bytes=-5))


@conversation
def an_error_ends_the_wait(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(fetching(of(topic, at(6)), of(topic, at(99)), max_wait_ms=10_000), E.OFFSET_OUT_OF_RANGE)


@conversation
def an_unknown_partition_alone_does_not_wait(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(fetching(of(topic, at(0, 5)), max_wait_ms=10_000), E.UNKNOWN_TOPIC_OR_PARTITION)
    talk.ask(fetching(of(nowhere(talk)), max_wait_ms=10_000), unknown_topic(talk))


@conversation(ENDS)
def an_unknown_partition_beside_a_known_one_waits_with_it(talk: Talk) -> None:
    topic = talk.topic()
    waiting = talk.send(fetching(of(topic, at(0), at(0, 5)), max_wait_ms=10_000))
    waiting.is_waiting()
    talk.another().produce(topic, b"at last")
    waiting.answer(E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation(ENDS)
def a_fetch_that_waits_learns_of_the_end_of_its_topic(talk: Talk) -> None:
    topic = talk.topic()
    waiting = talk.send(fetching(of(topic), max_wait_ms=10_000))
    waiting.is_waiting()
    other = talk.another()
    other.created.append(topic.name)
    without(other, topic)
    waiting.answer(E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation(ENDS)
def deleted_records_do_not_end_the_wait_of_a_reader_at_the_end(talk: Talk) -> None:
    topic = written(talk)
    waiting = talk.send(fetching(of(topic, at(6)), max_wait_ms=10_000))
    other = talk.another()
    without_start(other, topic, 3)
    waiting.is_waiting()
    other.produce(topic, b"at last")
    waiting.answer()


# ---- what does not exist ----


@conversation
def unknown_topics_and_partitions_stand_behind_the_known_ones(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(
        fetching(of(nowhere(talk), at(0), at(0, 1)), of(topic, at(0, 9), at(0), at(0, -1))),
        unknown_topic(talk),
        unknown_topic(talk),
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ) if talk.version >= 13 else talk.ask(
        fetching(of(nowhere(talk), at(0), at(0, 1)), of(topic, at(0, 9), at(0), at(0, -1))),
        *[E.UNKNOWN_TOPIC_OR_PARTITION] * 4,
    )


@conversation("4-12")
def a_name_that_no_topic_can_have(talk: Talk) -> None:
    for name in ("", "not valid!", "..", "n" * 300):
        talk.ask(fetching(FetchTopic(topic=name, partitions=[at(0)])), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation("13+")
def the_zero_id_is_no_topic(talk: Talk) -> None:
    talk.ask(fetching(FetchTopic(topic_id=ZERO_UUID, partitions=[at(0)])), E.UNKNOWN_TOPIC_ID)


@conversation("13+")
def a_topic_created_again_is_another_one(talk: Talk) -> None:
    topic = written(talk)
    without(talk, topic)
    again = talk.topic(name=topic.name)
    talk.ask(fetching(of(topic), of(again)), E.UNKNOWN_TOPIC_ID)


@conversation
def a_partition_named_twice(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(fetching(of(topic, at(0), at(4))))
    talk.ask(fetching(of(topic, at(4)), of(topic, at(2))))


@conversation
def a_topic_named_twice_with_another_between(talk: Talk) -> None:
    a, b = written(talk, label="a", partitions=2), written(talk, label="b")
    talk.ask(fetching(of(a, at(0)), of(b), of(a, at(0, 1))))


# ---- epochs ----


@conversation("9+")
def the_leaders_epoch_has_to_be_the_present_one(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(fetching(of(topic, at(0, current_leader_epoch=LEADER_EPOCH))))
    talk.ask(fetching(of(topic, at(0, current_leader_epoch=LEADER_EPOCH + 1))), E.UNKNOWN_LEADER_EPOCH)
    talk.ask(fetching(of(topic, at(0, current_leader_epoch=2**31 - 1))), E.UNKNOWN_LEADER_EPOCH)


@conversation("9+")
def negative_leader_epochs_say_that_none_is_known(talk: Talk) -> None:
    topic = written(talk)
    for epoch in (-1, -2, -(2**31)):
        talk.ask(fetching(of(topic, at(0, current_leader_epoch=epoch))))


@conversation("9+")
def a_wrong_epoch_is_noticed_before_a_wrong_offset(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(fetching(of(topic, at(99, current_leader_epoch=5))), E.UNKNOWN_LEADER_EPOCH)
    talk.ask(fetching(of(topic, at(0, 9, current_leader_epoch=5))), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation("12+")
def the_epoch_fetched_last_is_checked(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(fetching(of(topic, at(2, last_fetched_epoch=0))))
    talk.ask(fetching(of(topic, at(6, last_fetched_epoch=0))))
    talk.ask(fetching(of(topic, at(7, last_fetched_epoch=0))))
    talk.ask(fetching(of(topic, at(2, last_fetched_epoch=1))), E.OFFSET_OUT_OF_RANGE)
    talk.ask(fetching(of(topic, at(2, last_fetched_epoch=-1))))
    talk.ask(fetching(of(topic, at(2, last_fetched_epoch=-2))))


@conversation("12+")
def the_epoch_fetched_last_of_an_empty_log(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(fetching(of(topic, at(0, last_fetched_epoch=0))))
    talk.ask(fetching(of(topic, at(0, last_fetched_epoch=3))), E.OFFSET_OUT_OF_RANGE)


@conversation("12+")
def the_epoch_fetched_last_where_records_were_deleted(talk: Talk) -> None:
    topic = written(talk)
    without_start(talk, topic, 4)
    talk.ask(fetching(of(topic, at(2, last_fetched_epoch=0))), E.OFFSET_OUT_OF_RANGE)
    talk.ask(fetching(of(topic, at(4, last_fetched_epoch=0))))
    without_start(talk, topic, 6)
    talk.ask(fetching(of(topic, at(6, last_fetched_epoch=0))))
    talk.ask(fetching(of(topic, at(6, last_fetched_epoch=2))), E.OFFSET_OUT_OF_RANGE)


@conversation("12+")
def both_epochs_wrong_the_leaders_is_noticed_first(talk: Talk) -> None:
    topic = written(talk)
    wrong = at(99, current_leader_epoch=4, last_fetched_epoch=4)
    talk.ask(fetching(of(topic, wrong)), E.UNKNOWN_LEADER_EPOCH)


@conversation("12+")
def an_epoch_that_never_was_ends_the_wait(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(fetching(of(topic, at(6, last_fetched_epoch=7)), max_wait_ms=10_000), E.OFFSET_OUT_OF_RANGE)


# ---- who is no consumer ----


@conversation
def a_client_that_claims_to_be_a_replica(talk: Talk) -> None:
    topic = written(talk)
    for replica_id in (1, 5):
        talk.ask(
            fetching(of(topic), replica_id=replica_id, replica_state=ReplicaState(replica_id=replica_id)),
            E.NOT_LEADER_OR_FOLLOWER,
        )


@conversation
def replica_ids_that_are_no_brokers(talk: Talk) -> None:
    topic = written(talk)
    for replica_id in (-2, -3):
        talk.ask(
            fetching(of(topic), replica_id=replica_id, replica_state=ReplicaState(replica_id=replica_id))
        )


@conversation("5+")
def the_log_start_of_a_consumer_does_not_matter(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(fetching(of(topic, at(0, log_start_offset=5))))


@conversation("12+")
def a_cluster_id_does_not_matter(talk: Talk) -> None:
    talk.ask(fetching(of(written(talk)), cluster_id="another cluster"))


@conversation("17+")
def a_directory_does_not_matter(talk: Talk) -> None:
    asked = FetchPartition(
        partition=0, fetch_offset=0, partition_max_bytes=1000, replica_directory_id=b"some directory's"
    )
    talk.ask(fetching(of(written(talk), asked)))


# ---- transactions ----


@conversation
def committed_records_are_read_up_to_the_first_open_transaction(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    talk.produce(topic, b"before")
    producer.adds(topic)
    producer.writes(topic, b"one", b"two")
    talk.produce(topic, b"after")
    for level in (0, 1):
        talk.ask(fetching(of(topic), isolation_level=level))
        talk.ask(fetching(of(topic, at(2)), isolation_level=level))
        for replica_id in (-2, -3):
            state = ReplicaState(replica_id=replica_id)
            talk.ask(fetching(of(topic), isolation_level=level, replica_id=replica_id, replica_state=state))
    producer.ends()
    for level in (0, 1):
        talk.ask(fetching(of(topic), isolation_level=level))


@conversation
def aborted_transactions_are_named_to_readers_of_committed_records(talk: Talk) -> None:
    topic, one, other = talk.topic(), Producer(talk, "one"), Producer(talk, "other")
    for producer in (one, other):
        producer.adds(topic)
        producer.writes(topic, b"aborted")
    one.ends(commit=False)
    other.ends(commit=False)
    talk.produce(topic, b"plain")
    one.adds(topic)
    one.writes(topic, b"committed")
    one.ends()
    for offset in (0, 1, 2, 3, 4, 5):
        talk.ask(fetching(of(topic, at(offset)), isolation_level=1))
    talk.ask(fetching(of(topic), isolation_level=0))
    talk.ask(fetching(of(topic, at(0, max_bytes=1)), isolation_level=1))


@conversation(LATEST)
def aborted_transactions_that_did_not_end_as_they_began(talk: Talk) -> None:
    topic, one, other = talk.topic(), Producer(talk, "one"), Producer(talk, "other")
    for producer in (one, other):
        producer.adds(topic)
        producer.writes(topic, b"aborted")
    other.ends(commit=False)
    one.ends(commit=False)
    talk.ask(fetching(of(topic), isolation_level=1))


@conversation
def the_end_of_a_transaction_ends_the_wait_for_it(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    producer.adds(topic)
    producer.writes(topic, b"one")
    other = talk.another()
    waiting = other.send(fetching(of(topic), isolation_level=1, max_wait_ms=10_000))
    waiting.is_waiting()
    producer.ends()
    waiting.answer()


@conversation("7+")
def a_session_of_committed_records(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    producer.adds(topic)
    producer.writes(topic, b"one")
    session = Session(talk)
    session.fetches(of(topic), isolation_level=1)
    session.fetches(isolation_level=1)
    producer.ends(commit=False)
    session.fetches(isolation_level=1)


# ---- records at the edges ----


@conversation
def time_of_append_is_part_of_the_batch(talk: Talk) -> None:
    topic = talk.topic(configs={"message.timestamp.type": "LogAppendTime"})
    talk.produce(topic, b"stamped")
    talk.ask(fetching(of(topic)))


@conversation(ENDS)
def several_segments_are_read_one_after_the_other(talk: Talk) -> None:
    topic = talk.topic(configs={"segment.ms": "100", "segment.bytes": "1048576"})
    talk.produce(topic, b"a" * 600_000)
    talk.produce(topic, b"b" * 600_000)
    talk.produce(topic, b"c" * 600_000, timestamp_ms=MADE_MS + 10_000)
    talk.ask(fetching(of(topic)))
    talk.ask(fetching(of(topic, at(1))))
    talk.ask(fetching(of(topic, at(2, max_bytes=10))))


@conversation(LATEST)
def a_topic_between_two_of_the_same_id_is_answered_apart(talk: Talk) -> None:
    a, b = written(talk, label="a"), written(talk, label="b")
    session = Session(talk)
    session.fetches(of(a, at(6)), of(b, at(0)), of(a, at(0)))
    session.fetches(of(b, at(6)))


@conversation("4-6")
def null_topics_are_no_array(talk: Talk) -> None:
    body = request_header(1, talk.version, 1, "conformance")
    body += bytes.fromhex("ffffffff 00000000 00000000 00000001 00") + b"\xff\xff\xff\xff"
    talk.send_frame(1, talk.version, body).answer(CLOSED)


@conversation("4+")
def a_batch_of_committed_records_that_does_not_fit_beside_another(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    for partition in (0, 1):
        talk.produce(topic, b"one", partition=partition)
    for max_bytes in (1, 200):
        limited = at(0, 1, max_bytes=max_bytes)
        talk.ask(fetching(of(topic, at(0), limited), isolation_level=1))


@conversation("7+")
def what_is_asked_for_and_forgotten_at_once(talk: Talk) -> None:
    topic = written(talk, partitions=2)
    session = talk.ask(fetching(of(topic, at(0), at(0, 1)), session_epoch=0)).session_id
    for epoch, partition in enumerate((1, 0), start=1):
        gone = ForgottenTopic(topic=topic.name, topic_id=topic.id, partitions=[partition])
        again = fetching(
            of(topic, at(1, partition)),
            session_id=session,
            session_epoch=epoch,
            forgotten_topics_data=[gone],
            min_bytes=0,
        )
        talk.ask(again)


@conversation(LATEST)
def the_start_moves_into_the_first_batch_of_an_open_transaction(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    producer.writes(topic, b"one", b"two", b"three")
    without_start(talk, topic, 1)
    talk.ask(fetching(of(topic, at(1)), isolation_level=1, min_bytes=0))
