"""Below the APIs: frames, headers and bodies that no well-behaved client sends."""

from __future__ import annotations

import struct

from interop.conformance.conversation import conversation
from interop.conformance.talk import ANY, E, Talk
from pykafka_broker.client.core.frames import framed, request_header
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.protocol.wire import uvarint_bytes

PRODUCE, FETCH, METADATA, LIST_GROUPS, API_VERSIONS, ENVELOPE, VOTE = 0, 1, 3, 16, 18, 58, 52
MAX_REQUEST_BYTES = 100 * 1024 * 1024


def header(api_key: int, version: int) -> bytes:
    return request_header(api_key, version, 1, "conformance")


def asking(version: int, *names: str) -> bytes:
    """A Metadata request, header and all."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
    )
    return header(METADATA, version) + encode(request, version)


def closes(talk: Talk, data: bytes) -> None:
    talk.send_bytes(data)
    talk.is_closed()


@conversation
def a_frame_without_bytes(talk: Talk) -> None:
    closes(talk, struct.pack(">i", 0))


@conversation
def a_frame_of_negative_size(talk: Talk) -> None:
    closes(talk, struct.pack(">i", -1))


@conversation
def a_frame_above_the_limit(talk: Talk) -> None:
    closes(talk, struct.pack(">i", MAX_REQUEST_BYTES + 1))


def listing_groups(states: bytes, tags: bytes = b"\0") -> bytes:
    """A ListGroups request of groups in these states."""
    return header(LIST_GROUPS, 4) + states + tags


@conversation
def as_many_elements_as_a_request_may_have_and_one_more(talk: Talk) -> None:
    for count in (1_000_000, 1_000_001):
        states = uvarint_bytes(count + 1) + uvarint_bytes(1) * count
        talk.another().send_frame(LIST_GROUPS, 4, listing_groups(states)).answer(ANY)


@conversation
def as_many_tagged_fields_as_a_request_may_have_and_one_more(talk: Talk) -> None:
    no_group_has = uvarint_bytes(2) + uvarint_bytes(1)
    for count in (10_000, 10_001):
        tags = b"".join([uvarint_bytes(tag) + uvarint_bytes(0) for tag in range(count)])
        request = listing_groups(no_group_has, uvarint_bytes(count) + tags)
        talk.another().send_frame(LIST_GROUPS, 4, request).answer(ANY)


@conversation
def a_frame_of_the_largest_size_there_is(talk: Talk) -> None:
    closes(talk, struct.pack(">i", 2**31 - 1))


@conversation
def another_protocol(talk: Talk) -> None:
    closes(talk, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")


@conversation
def a_header_that_ends_early(talk: Talk) -> None:
    closes(talk, framed(b"\x00\x03"))


@conversation
def a_header_without_client_id(talk: Talk) -> None:
    closes(talk, framed(struct.pack(">hhi", METADATA, 1, 1)))


@conversation
def a_client_id_that_is_null(talk: Talk) -> None:
    body = request_header(METADATA, 1, 7, None) + struct.pack(">i", 0)
    talk.send_frame(METADATA, 1, body).answer()


@conversation
def a_client_id_longer_than_the_frame(talk: Talk) -> None:
    closes(talk, framed(struct.pack(">hhih", METADATA, 1, 1, 500) + b"short"))


@conversation
def a_client_id_that_is_not_utf_8(talk: Talk) -> None:
    body = struct.pack(">hhih", METADATA, 1, 1, 2) + b"\xff\xfe" + struct.pack(">i", 0)
    talk.send_frame(METADATA, 1, body).answer()


@conversation
def an_unknown_api(talk: Talk) -> None:
    closes(talk, framed(struct.pack(">hhih", 999, 0, 1, -1)))


@conversation
def a_negative_api(talk: Talk) -> None:
    closes(talk, framed(struct.pack(">hhih", -1, 0, 1, -1)))


@conversation
def apis_that_are_gone(talk: Talk) -> None:
    for api_key in (4, 5, 6, 7):
        closes(talk.another(), framed(struct.pack(">hhih", api_key, 0, 1, -1)))


@conversation
def apis_of_controllers(talk: Talk) -> None:
    for api_key in (VOTE, ENVELOPE):
        closes(talk.another(), framed(header(api_key, 0) + bytes(20)))


@conversation
def a_version_above_those_served(talk: Talk) -> None:
    closes(talk, framed(header(METADATA, 14) + bytes(3)))


@conversation
def a_negative_version(talk: Talk) -> None:
    closes(talk, framed(struct.pack(">hhih", METADATA, -1, 1, -1) + bytes(4)))


@conversation
def versions_below_those_served(talk: Talk) -> None:
    for api_key, version in ((PRODUCE, 2), (PRODUCE, 0), (FETCH, 3)):
        closes(talk.another(), framed(struct.pack(">hhih", api_key, version, 1, -1) + bytes(20)))


@conversation
def a_body_that_ends_early(talk: Talk) -> None:
    for version in (1, 13):
        whole = asking(version, "a-topic")
        closes(talk.another(), framed(whole[:-3]))


@conversation
def a_body_without_bytes(talk: Talk) -> None:
    for version in (1, 13):
        closes(talk.another(), framed(header(METADATA, version)))


@conversation
def bytes_behind_the_body_are_left_alone(talk: Talk) -> None:
    for version in (4, 13):
        talk.send_frame(METADATA, version, asking(version, "no-such-topic") + b"more").answer(
            E.UNKNOWN_TOPIC_OR_PARTITION
        )


@conversation
def an_array_longer_than_the_frame(talk: Talk) -> None:
    closes(talk.another(), framed(header(METADATA, 1) + struct.pack(">i", 1_000_000)))
    closes(talk.another(), framed(header(METADATA, 1) + struct.pack(">i", 2**31 - 1)))
    closes(talk.another(), framed(header(METADATA, 13) + b"\xff\xff\xff\xff\x0f"))


@conversation("0", alone=True)
def an_array_of_negative_length_is_null(talk: Talk) -> None:
    """Null means every topic."""
    body = asking(4)[:-5] + struct.pack(">ib", -2, 0)
    talk.send_frame(METADATA, 4, body).answer(in_any_order={"topics": "name"})


@conversation
def a_string_longer_than_the_frame(talk: Talk) -> None:
    closes(talk, framed(header(METADATA, 1) + struct.pack(">ih", 1, 500) + b"short"))


@conversation
def a_null_where_none_may_be(talk: Talk) -> None:
    closes(talk.another(), framed(header(METADATA, 4) + struct.pack(">ihb", 1, -1, 0)))
    closes(talk.another(), framed(header(METADATA, 9) + b"\x02\x00\x00\x00\x00\x00\x00"))


@conversation
def a_number_that_never_ends(talk: Talk) -> None:
    closes(talk, framed(header(METADATA, 13) + b"\xff" * 12))


@conversation
def a_boolean_of_two_is_true(talk: Talk) -> None:
    body = asking(8, "no-such-topic")
    talk.send_frame(METADATA, 8, body[:-1] + b"\x02").answer(E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def unknown_tags(talk: Talk) -> None:
    body = asking(13, "no-such-topic")
    assert body[-1] == 0
    talk.send_frame(METADATA, 13, body[:-1] + b"\x02\x05\x01x\x07\x00").answer(E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def unknown_tags_in_the_header(talk: Talk) -> None:
    head = header(API_VERSIONS, 3)
    assert head[-1] == 0
    request = ApiVersionsRequest(client_software_name="", client_software_version="")
    body = head[:-1] + b"\x01\x63\x02no" + encode(request, 3)
    talk.send_frame(API_VERSIONS, 3, body).answer(E.INVALID_REQUEST)


@conversation
def more_tags_than_the_frame_holds(talk: Talk) -> None:
    closes(talk, framed(asking(13, "a-topic")[:-1] + b"\x05"))


@conversation
def a_tag_longer_than_the_frame(talk: Talk) -> None:
    closes(talk, framed(asking(13, "a-topic")[:-1] + b"\x01\x05\x7fx"))


@conversation
def tags_out_of_order_or_twice(talk: Talk) -> None:
    for tags in (b"\x02\x07\x00\x05\x00", b"\x02\x05\x00\x05\x00"):
        body = asking(13, "no-such-topic")[:-1] + tags
        talk.send_frame(METADATA, 13, body).answer(E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def what_came_before_a_bad_frame_is_answered(talk: Talk) -> None:
    good = talk.send_frame(METADATA, 4, asking(4, "no-such-topic"))
    talk.send_bytes(struct.pack(">i", -1))
    good.answer(E.UNKNOWN_TOPIC_OR_PARTITION)
    talk.is_closed()


@conversation
def frames_in_one_piece_are_answered_in_their_order(talk: Talk) -> None:
    first, second = (request_header(METADATA, 4, number, "c") + encode(EMPTY, 4) for number in (11, 12))
    talk.send_bytes(framed(first) + framed(second))
    for _ in range(2):
        talk.next_answer(METADATA, 4).answer()


@conversation
def a_frame_in_single_bytes(talk: Talk) -> None:
    for byte in framed(request_header(METADATA, 4, 1, "c") + encode(EMPTY, 4)):
        talk.send_bytes(bytes([byte]))
    talk.next_answer(METADATA, 4).answer()


EMPTY = MetadataRequest(topics=[], allow_auto_topic_creation=False)
