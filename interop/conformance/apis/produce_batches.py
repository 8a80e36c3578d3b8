"""Produce: batches that cannot be read, from their headers to the records in them."""

from __future__ import annotations

from typing import Any

from interop.conformance.batches import MADE_MS, batch, changed, old_message, sealed
from interop.conformance.conversation import LATEST, conversation
from interop.conformance.producing import into, new_producer, one, producing, read_back, record, varints
from interop.conformance.talk import ANY, E, Talk
from pykafka_broker.protocol.records.batch import (
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    TIMESTAMP_TYPE_BIT,
    BatchFields,
    Codec,
    build_batch,
)
from pykafka_broker.protocol.records.compression import compress

# ---- what is no batch ----


@conversation
def no_bytes_are_no_batch(talk: Talk) -> None:
    talk.ask(one(talk.topic(), b""), E.INVALID_RECORD)


@conversation
def a_few_bytes_are_no_batch(talk: Talk) -> None:
    topic = talk.topic()
    for size in (1, 11, 12, 16, 17, HEADER_BYTES - 1, HEADER_BYTES):
        talk.ask(one(topic, batch(b"cut short")[:size]), E.INVALID_RECORD)


@conversation
def a_batch_whose_end_is_missing_is_refused(talk: Talk) -> None:
    talk.ask(one(talk.topic(), batch(b"cut short")[:-1]), E.INVALID_RECORD)


@conversation
def two_batches_in_one_partition_are_refused(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, batch(b"one") + batch(b"two")), E.INVALID_RECORD)
    read_back(talk, topic)


@conversation
def bytes_that_do_not_hold_together_spoil_the_request(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    for data in (bytes(12), bytes(100), b"\xff" * 100):
        talk.ask(producing(into(topic, batch(b"good"), data)), E.CORRUPT_MESSAGE, E.CORRUPT_MESSAGE)
    read_back(talk, topic)


@conversation
def the_old_message_formats_are_refused(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, old_message(0, b"before 0.10")), E.INVALID_RECORD)
    talk.ask(one(topic, old_message(1, b"before 0.11")), E.INVALID_RECORD)


@conversation
def formats_of_the_future_are_corrupt(talk: Talk) -> None:
    topic = talk.topic()
    for magic in (3, 127, -1):
        talk.ask(one(topic, changed(batch(b"x"), magic=magic)), E.CORRUPT_MESSAGE)


# ---- what is wrong in the header of a batch ----


@conversation
def a_wrong_checksum_is_corrupt(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, changed(batch(b"x"), crc=12345)), E.CORRUPT_MESSAGE)
    flipped = bytearray(batch(b"value"))
    flipped[-2] ^= 1
    talk.ask(one(topic, bytes(flipped)), E.CORRUPT_MESSAGE)
    read_back(talk, topic)


@conversation
def a_batch_has_to_begin_with_offset_zero(talk: Talk) -> None:
    topic = talk.topic()
    for base_offset in (1, -1, 2**40):
        talk.ask(one(topic, changed(batch(b"x"), base_offset=base_offset)), E.INVALID_RECORD)


@conversation
def a_leader_epoch_of_the_producer_does_not_matter(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, changed(batch(b"x"), partition_leader_epoch=77)))
    read_back(talk, topic)


@conversation
def a_count_that_is_not_that_of_the_offsets_is_invalid(talk: Talk) -> None:
    topic = talk.topic()
    for count in (0, -1, 1, 3, 2**31 - 1):
        talk.ask(one(topic, changed(batch(b"one", b"two"), records_count=count)), E.INVALID_RECORD)
    for delta in (-1, -2, 0, 2, 2**31 - 1):
        talk.ask(one(topic, changed(batch(b"one", b"two"), last_offset_delta=delta)), E.INVALID_RECORD)


@conversation
def a_batch_without_records_is_invalid(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(
        one(topic, changed(batch(b"x"), body=b"", records_count=0, last_offset_delta=-1)), E.INVALID_RECORD
    )
    talk.ask(
        one(topic, changed(batch(b"x"), body=b"", records_count=0, last_offset_delta=0)), E.INVALID_RECORD
    )


@conversation
def control_records_are_not_for_clients(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, changed(batch(b"x"), attributes=CONTROL_BIT)), E.INVALID_RECORD)


@conversation
def a_codec_that_does_not_exist_is_refused(talk: Talk) -> None:
    topic = talk.topic()
    for codec in (5, 6, 7):
        talk.ask(one(topic, changed(batch(b"x"), attributes=codec)), E.UNKNOWN_SERVER_ERROR)


@conversation
def a_codec_that_does_not_exist_is_noticed_before_the_checksum_where_versions_forbid_codecs(
    talk: Talk,
) -> None:
    noticed = E.UNKNOWN_SERVER_ERROR if talk.version < 7 else E.CORRUPT_MESSAGE
    talk.ask(one(talk.topic(), changed(batch(b"x"), right_checksum=False, attributes=5)), noticed)


@conversation
def data_that_its_codec_cannot_read_is_refused(talk: Talk) -> None:
    topic = talk.topic()
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        talk.ask(one(topic, changed(batch(b"x" * 50), attributes=codec)), E.UNKNOWN_SERVER_ERROR)
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        cut = batch(b"x" * 500, b"y" * 500, codec=codec)[HEADER_BYTES:-20]
        data = changed(batch(b"x", b"y"), body=cut, attributes=codec)
        talk.ask(one(topic, data), E.UNKNOWN_SERVER_ERROR)


@conversation
def bits_of_the_attributes_that_mean_nothing_are_let_through(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, changed(batch(b"x"), attributes=1 << 7)))
    talk.ask(one(topic, changed(batch(b"x"), attributes=1 << 14)))
    read_back(talk, topic)


@conversation
def a_delete_horizon_of_a_client(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, changed(batch(b"x"), attributes=DELETE_HORIZON_BIT)))
    read_back(talk, topic)


@conversation
def producers_must_not_claim_append_time(talk: Talk) -> None:
    topic = talk.topic()
    stamped = talk.topic("append", configs={"message.timestamp.type": "LogAppendTime"})
    data = changed(batch(b"x"), attributes=TIMESTAMP_TYPE_BIT)
    talk.ask(one(topic, data))
    talk.ask(one(stamped, data), E.INVALID_TIMESTAMP)
    read_back(talk, topic)


@conversation
def a_producer_id_needs_an_epoch_and_a_sequence(talk: Talk) -> None:
    topic = talk.topic()
    producer_id = new_producer(talk)
    data = batch(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=-1)
    talk.ask(one(topic, data), E.INVALID_RECORD)
    data = batch(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=-2)
    talk.ask(one(topic, data), E.INVALID_RECORD)


@conversation(LATEST)
def offsets_inside_a_batch_that_do_not_count_up(talk: Talk) -> None:
    records: list[Any] = [(MADE_MS, b"key", b"%d" % number, []) for number in range(3)]
    data = build_batch(records, BatchFields(offset_deltas=[0, 2, 1], last_offset_delta=2))
    talk.ask(one(talk.topic("plain"), data), ANY)
    talk.ask(one(talk.topic("compacted", configs={"cleanup.policy": "compact"}), data), ANY)


@conversation(LATEST)
def a_producer_id_without_an_epoch(talk: Talk) -> None:
    topic = talk.topic()
    data = batch(b"x", producer_id=new_producer(talk), producer_epoch=-1, base_sequence=0)
    talk.ask(one(topic, data), ANY)
    talk.ask(one(topic, data), ANY)


@conversation
def a_sequence_without_a_producer_does_not_matter(talk: Talk) -> None:
    topic = talk.topic()
    for _ in range(2):
        talk.ask(one(topic, batch(b"x", producer_id=-1, producer_epoch=3, base_sequence=7)))
    talk.ask(one(topic, batch(b"as kafkajs", producer_id=-1, producer_epoch=0, base_sequence=0)))
    read_back(talk, topic)


@conversation(LATEST)
def a_producer_id_below_that_of_none(talk: Talk) -> None:
    topic = talk.topic()
    for producer_id in (-2, -(2**63)):
        data = batch(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=0)
        talk.ask(one(topic, data), ANY)


@conversation
def a_wrong_checksum_is_noticed_before_what_it_covers(talk: Talk) -> None:
    for topic in (talk.topic(), talk.topic("compacted", configs={"cleanup.policy": "compact"})):
        good = batch(b"x")
        for wrong in (
            changed(good, right_checksum=False, records_count=2),
            changed(good, right_checksum=False, attributes=CONTROL_BIT),
            changed(good, right_checksum=False, max_timestamp=0),
        ):
            talk.ask(one(topic, wrong), E.CORRUPT_MESSAGE)


@conversation(LATEST)
def a_few_bytes_behind_the_batch(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, batch(b"x") + b"more"))
    talk.ask(one(topic, batch(b"x") + batch(b"y")[:40]))
    read_back(talk, topic)


# ---- what is wrong with the records ----


@conversation
def records_whose_lengths_lie_are_invalid(talk: Talk) -> None:
    topic, good = talk.topic(), batch(b"value")
    for fields, length in (
        (varints(0, 0, -1, -1, 0), 90),  # beyond the batch
        (varints(0, 0, -1, -1, 0), 3),  # short of the fields
        (varints(0, 0, -1, -1, 0), -1),
        (varints(0, 0, 70, -1, 0), None),  # a key beyond the record
        (varints(0, 0, -1, 70, 0), None),  # a value beyond the record
        (varints(0, 0, -1, -1, 0) + b"more", None),
    ):
        talk.ask(one(topic, changed(good, body=record(fields, length))), E.INVALID_RECORD)
    talk.ask(one(topic, changed(good, body=bytes(20))), E.INVALID_RECORD)
    talk.ask(one(topic, changed(good, body=b"")), E.INVALID_RECORD)


@conversation
def headers_that_cannot_be_are_invalid(talk: Talk) -> None:
    topic, good = talk.topic(), batch(b"value")
    for count_and_headers in (
        varints(-1),
        varints(9),  # more headers than bytes
        varints(1, -1, -1),  # a header without a name
        varints(1, 0, 50),  # a header's value beyond the record
    ):
        body = record(varints(0, 0, -1, -1) + count_and_headers)
        talk.ask(one(topic, changed(good, body=body)), E.INVALID_RECORD)


@conversation
def any_negative_length_of_a_key_or_a_value_is_null(talk: Talk) -> None:
    topic, good = talk.topic(), batch(b"value")
    talk.ask(one(topic, changed(good, body=record(varints(0, 0, -2, -1, 0)))))
    talk.ask(one(topic, changed(good, body=record(varints(0, 0, -1, -7, 0)))))


@conversation
def a_number_that_does_not_end_is_an_error_of_the_server(talk: Talk) -> None:
    talk.ask(one(talk.topic(), changed(batch(b"value"), body=b"\x80" * 20)), E.UNKNOWN_SERVER_ERROR)


@conversation
def records_that_are_wrong_inside_compressed_data(talk: Talk) -> None:
    topic, good = talk.topic(), batch(b"value")
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        for body in (bytes(20), record(varints(0, 0, 70, -1, 0)), record(varints(0, 0, -1, -1, -1))):
            data = changed(good, body=compress(codec, body), attributes=codec)
            talk.ask(one(topic, data), E.INVALID_RECORD)


# ---- frames ----


@conversation(LATEST)
def records_that_are_null(talk: Talk) -> None:
    topic = talk.topic()
    talk.send(one(topic, None)).is_waiting()
    talk.another().ask(one(topic, batch(b"meanwhile")))


@conversation
def a_checksum_made_right_is_all_that_was_wrong(talk: Talk) -> None:
    topic = talk.topic()
    data = changed(batch(b"x"), crc=7)
    talk.ask(one(topic, data), E.CORRUPT_MESSAGE)
    talk.ask(one(topic, sealed(data)))
