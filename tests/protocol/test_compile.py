"""What the codec accepts, refuses and produces, byte by byte."""

from __future__ import annotations

import struct
import traceback

import pytest

from pykafka_broker.protocol.compile import Cut, assemble, decode, decoder, encode, encode_parts, encoder
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.fields import Records
from pykafka_broker.protocol.messages.api_versions import ApiVersionsResponse
from pykafka_broker.protocol.messages.fetch import FetchRequest
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.schema import array, binary, boolean, i8, i32, message, string, uuid
from pykafka_broker.protocol.schema import struct as struct_field
from pykafka_broker.protocol.wire import MAX_ARRAY_ELEMENTS, MAX_TAGS


@message()
class Inner:
    value: int = i32()


@message(versions="0-1", flexible="1+")
class Sample:
    """One field of each kind that has a length; v0 has the old lengths, v1 the compact ones."""

    text: str = string()
    maybe_text: str | None = string(nullable=True, default=None)
    data: bytes = binary(default=b"")
    numbers: list[int] = array(i32(), default=[])
    maybe_numbers: list[int] | None = array(i32(), nullable=True, default=None)


@message(versions="0", flexible="0+")
class Flag:
    value: bool = boolean()


@message(versions="0", flexible="0+")
class Numbers:
    numbers: list[int] = array(i8())


@message(versions="0", flexible="0+")
class Tagged:
    count: int = i32(tag=0, default=-1)
    inner: Inner | None = struct_field(Inner, tag=2, default=None)
    names: list[str] = array(string(), tag=5, default=[])


@message(versions="0", flexible="0+")
class TaggedOptional:
    inner: Inner | None = struct_field(Inner, nullable=True, tag=0, default=None)


@message(versions="0", flexible="0+")
class Optional:
    inner: Inner | None = struct_field(Inner, nullable=True)


def uvarint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


# The same bytes as Kafka's.


def test_a_flexible_message_is_written_with_compact_lengths_and_a_tag_count() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="clicks")], allow_auto_topic_creation=False)

    assert encode(request, 12) == b"\x02" + bytes(16) + b"\x07clicks\x00" + b"\x00\x00" + b"\x00"
    assert encode(request, 8) == b"\x00\x00\x00\x01" + b"\x00\x06clicks" + b"\x00\x00\x00"


def test_null_has_the_form_of_the_version() -> None:
    everything = MetadataRequest(topics=None)

    assert encode(everything, 1) == b"\xff\xff\xff\xff"
    assert encode(everything, 12) == b"\x00\x01\x00\x00"
    assert encode(Optional(inner=None), 0) == b"\xff\x00"
    assert encode(Optional(inner=Inner(value=1)), 0) == b"\x01" + b"\x00\x00\x00\x01\x00" + b"\x00"


def test_long_values_have_lengths_of_several_bytes() -> None:
    sample = Sample(text="x" * 200, data=b"y" * 20_000)
    encoded = encode(sample, 1)

    assert encoded.startswith(b"\xc9\x01xxx")
    assert b"\xa1\x9c\x01yyy" in encoded
    assert decode(Sample, 1, encoded)[0] == sample


def test_a_field_that_the_version_lacks_is_left_out_and_comes_back_as_its_default() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m", group_instance_id="static")
    encoded = encode(request, 2)

    assert b"static" not in encoded
    assert decode(HeartbeatRequest, 2, encoded)[0].group_instance_id is None


def test_tags_are_written_in_order_and_only_when_they_differ_from_their_default() -> None:
    assert encode(Tagged(), 0) == b"\x00"
    assert encode(Tagged(count=-1, names=["a"], inner=Inner(value=1)), 0) == (
        b"\x02" + b"\x02\x05\x00\x00\x00\x01\x00" + b"\x05\x03\x02\x02a"
    )


@pytest.mark.parametrize(
    ("inner", "encoded"),
    [
        (None, b"\x01\x00\x01\x00"),
        (Inner(value=0), b"\x00"),
        (Inner(value=7), b"\x01\x00\x06\x01\x00\x00\x00\x07\x00"),
    ],
)
def test_a_tagged_struct_that_may_be_null_is_left_out_when_it_is_blank_and_not_when_it_is_null(
    inner: Inner | None, encoded: bytes
) -> None:
    """Null was left out: Kafka would have taken members of the consumer protocol for classic ones."""
    assert encode(TaggedOptional(inner=inner), 0) == encoded
    assert decode(TaggedOptional, 0, encoded) == (TaggedOptional(inner=inner), len(encoded))


def test_a_string_that_kafka_could_not_read_is_not_written() -> None:
    assert len(encode(Sample(text="x" * 32767), 1)) > 32767
    with pytest.raises(ValueError, match="32768 bytes"):
        encode(Sample(text="x" * 32768), 1)
    with pytest.raises(struct.error):
        encode(Sample(text="x" * 32768), 0)


def test_a_version_that_a_message_does_not_have_is_our_own_mistake() -> None:
    with pytest.raises(ValueError, match="MetadataRequest has no version 14"):
        encode(MetadataRequest(topics=None), 14)
    with pytest.raises(ValueError, match="FetchRequest has no version 3"):
        decode(FetchRequest, 3, b"")
    with pytest.raises(ValueError, match="MetadataRequestTopic has no version 1"):
        decode(MetadataRequestTopic, 1, b"")


# Record batches are never copied.


def produce(content: Records) -> ProduceRequest:
    partition = PartitionProduceData(index=0, records=content)
    topic = TopicProduceData(name="clicks", partition_data=[partition])
    return ProduceRequest(transactional_id=None, acks=1, timeout_ms=1000, topic_data=[topic])


def test_records_are_decoded_as_a_view_into_the_received_bytes() -> None:
    received = bytearray(encode(produce(b"abcdef"), 9))
    request, _ = decode(ProduceRequest, 9, received)
    view = request.topic_data[0].partition_data[0].records
    at = received.index(b"abcdef")
    received[at : at + 1] = b"X"

    assert isinstance(view, memoryview)
    assert bytes(view) == b"Xbcdef"


@pytest.mark.parametrize("version", [8, 9])
def test_records_are_sent_as_parts_of_their_own(version: int) -> None:
    batches = [memoryview(b"first batch"), bytearray(b"second batch")]
    parts = encode_parts(produce(batches), version)

    assert parts[1] is batches[0]
    assert parts[2] is batches[1]
    assert b"".join(parts) == encode(produce(b"first batchsecond batch"), version)
    assert b"".join(parts) == encode(produce(tuple(batches)), version)


def test_a_frame_may_be_built_around_the_encoded_parts() -> None:
    """What a connection does: header and body go into one bytearray, and nothing is joined."""
    out = bytearray(b"head")
    cuts: list[Cut] = []
    encoder(ProduceRequest, 9)(produce(b"batch"), out, cuts)

    parts = [part for part in assemble(out, cuts) if isinstance(part, (bytes, bytearray, memoryview))]
    assert b"".join(parts) == b"head" + encode(produce(b"batch"), 9)


def test_no_records_at_all_are_null() -> None:
    request, _ = decode(ProduceRequest, 9, encode(produce(None), 9))

    assert request.topic_data[0].partition_data[0].records is None


# What Apache Kafka accepts, we accept.


def test_bytes_after_the_message_are_left_alone() -> None:
    encoded = encode(MetadataRequest(topics=[]), 12)

    assert decode(MetadataRequest, 12, encoded + b"trailing") == (MetadataRequest(topics=[]), len(encoded))


def test_a_message_may_start_anywhere() -> None:
    encoded = encode(Sample(text="here"), 1)

    assert decode(Sample, 1, b"1234" + encoded, 4) == (Sample(text="here"), 4 + len(encoded))


@pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_decoded_and_strings_and_bytes_are_real_ones(buffer: type) -> None:
    sample = Sample(text="text", data=b"data", numbers=[1, 2])
    decoded, _ = decode(Sample, 1, buffer(encode(sample, 1)))

    assert decoded == sample
    assert (type(decoded.text), type(decoded.data)) == (str, bytes)


@pytest.mark.parametrize("length", [-1, -5, -(2**31)])
def test_every_negative_length_means_null(length: int) -> None:
    encoded = b"\x00\x00" + b"\xff\xfb" + bytes(4) + bytes(4) + struct.pack(">i", length)
    sample, _ = decode(Sample, 0, encoded)

    assert (sample.maybe_text, sample.maybe_numbers) == (None, None)


@pytest.mark.parametrize(("byte", "value"), [(0, False), (1, True), (7, True), (255, True)])
def test_every_byte_but_zero_is_true(byte: int, value: bool) -> None:
    assert decode(Flag, 0, bytes([byte, 0]))[0].value is value


def test_text_that_is_not_utf8_is_accepted() -> None:
    sample, _ = decode(Sample, 1, b"\x05a\xff\xfeb" + b"\x00\x01\x01\x00\x00")

    assert sample.text == "a��b"


def test_tags_may_come_unordered_twice_or_unknown() -> None:
    inner = b"\x02\x05\x00\x00\x00\x01\x00"
    count = b"\x00\x04\x00\x00\x00\x09"
    unknown = b"\xe8\x07\x03abc"
    tagged, end = decode(Tagged, 0, b"\x05" + inner + count + unknown + count + inner)

    assert tagged == Tagged(count=9, inner=Inner(value=1))
    assert end == 1 + 2 * len(inner) + 2 * len(count) + len(unknown)


def test_unknown_tags_are_skipped_at_every_level() -> None:
    tag = b"\x01\x63\x02hi"
    encoded = b"\x01" + b"\x00\x00\x00\x05" + tag + tag

    assert decode(Optional, 0, encoded) == (Optional(inner=Inner(value=5)), len(encoded))


# Bytes that are always refused.


@pytest.mark.parametrize(
    ("why", "version", "encoded", "complaint"),
    [
        ("null text, old form", 0, b"\xff\xff", "Sample.text must not be null"),
        ("null text, compact form", 1, b"\x00", "Sample.text must not be null"),
        ("null array, old form", 0, bytes(8) + b"\xff\xff\xff\xff", "Sample.numbers must not be null"),
        ("null array, compact form", 1, b"\x01\x00\x01\x00", "Sample.numbers must not be null"),
        ("text past the end", 0, b"\x00\x09text", "Sample.text claims a length of 9, 4 bytes are left"),
        ("compact text past the end", 1, b"\x0atext", "Sample.text claims a length of 9, 4 bytes are left"),
        ("text longer than Kafka allows", 1, uvarint(32769) + bytes(40_000), "claims a length of 32768"),
        (
            "bytes past the end",
            0,
            b"\x00\x00\x00\x00" + b"\x7f\xff\xff\xff",
            "Sample.data claims a length of 2147483647",
        ),
        (
            "more elements than bytes",
            0,
            bytes(8) + b"\x7f\xff\xff\xff",
            "Sample.numbers claims a length of 2147483647",
        ),
        (
            "a compact count without bytes",
            1,
            b"\x01\x00\x01" + uvarint(2**31),
            "Sample.numbers claims a length",
        ),
        ("fewer elements than counted", 0, bytes(8) + b"\x00\x00\x00\x04" + bytes(7), "cut short"),
        ("a varint without an end", 1, b"\xff\xff\xff\xff\xff\x01", "longer than five bytes"),
        ("nothing at all", 1, b"", "Sample v1 is cut short"),
    ],
)
def test_a_malformed_message_is_refused(why: str, version: int, encoded: bytes, complaint: str) -> None:
    with pytest.raises(ProtocolError, match=complaint):
        decode(Sample, version, encoded)


def test_more_than_a_million_elements_are_refused_even_when_they_are_there() -> None:
    allowed = uvarint(MAX_ARRAY_ELEMENTS + 1) + bytes(MAX_ARRAY_ELEMENTS) + b"\x00"
    assert len(decode(Numbers, 0, allowed)[0].numbers) == MAX_ARRAY_ELEMENTS

    with pytest.raises(ProtocolError, match=r"Numbers.numbers claims a length of 1000001"):
        decode(Numbers, 0, uvarint(MAX_ARRAY_ELEMENTS + 2) + bytes(MAX_ARRAY_ELEMENTS + 2))


@pytest.mark.parametrize("cls", [Tagged, Flag])
def test_more_than_ten_thousand_tags_are_refused(cls: type) -> None:
    before = b"" if cls is Tagged else b"\x01"
    decode(cls, 0, before + uvarint(MAX_TAGS) + b"\x63\x00" * MAX_TAGS)

    with pytest.raises(ProtocolError, match="10001 tagged fields"):
        decode(cls, 0, before + uvarint(MAX_TAGS + 1) + b"\x63\x00" * (MAX_TAGS + 1))


@pytest.mark.parametrize(
    ("why", "encoded", "complaint"),
    [
        ("a tag larger than the message", b"\x01\x63\x05abc", "tagged field 99 claims 5 bytes, 3 are left"),
        ("a known tag larger than its value", b"\x01\x00\x05\x00\x00\x00\x01\x00", "does not fill its tag"),
        ("a known tag smaller than its value", b"\x01\x00\x03\x00\x00\x00\x01", "does not fill its tag"),
        ("a text beyond its tag", b"\x01\x05\x03\x02\x05abcd", "claims a length of 4, 1 bytes are left"),
    ],
)
def test_a_malformed_tag_is_refused(why: str, encoded: bytes, complaint: str) -> None:
    with pytest.raises(ProtocolError, match=complaint):
        decode(Tagged, 0, encoded)


@pytest.mark.parametrize("claimed", [2**16, 2**20, 2**31 - 2])
def test_a_count_is_checked_before_anything_is_allocated(claimed: int) -> None:
    """An array of structs, an array of ids and an array of numbers, each claiming far more than it brings."""

    @message(versions="0", flexible="0+")
    class Ids:
        ids: list[bytes] = array(uuid())

    @message(versions="0", flexible="0+")
    class Structs:
        inner: list[Inner] = array(Inner)

    for cls in (Ids, Structs, Numbers):
        with pytest.raises(ProtocolError, match=f"claims a length of {claimed}"):
            decode(cls, 0, uvarint(claimed + 1) + bytes(1000))


# The compiled code is meant to be read.


def test_the_compiled_source_is_kept_and_has_one_function_per_struct() -> None:
    source = decoder(MetadataRequest, 12).source

    assert source.count("def struct_MetadataRequest(") == 1
    assert source.count("def struct_MetadataRequestTopic(") == 1
    assert "m.allow_auto_topic_creation" in source
    assert encoder(MetadataRequest, 12).source.count("def struct_MetadataRequestTopic(") == 1


def test_a_codec_is_compiled_once() -> None:
    assert decoder(MetadataRequest, 12) is decoder(MetadataRequest, 12)
    assert encoder(MetadataRequest, 12) is encoder(MetadataRequest, 12)


def test_a_traceback_shows_the_line_and_the_field_that_could_not_be_encoded() -> None:
    wrong = ApiVersionsResponse(error_code="NONE", api_keys=[])  # type: ignore[arg-type]
    with pytest.raises(struct.error) as raised:
        encode(wrong, 0)

    assert "m.error_code" in "".join(traceback.format_exception(raised.value))
