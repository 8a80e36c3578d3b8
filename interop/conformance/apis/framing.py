"""Below the APIs: frames, headers and bodies that no well-behaved client sends."""

from __future__ import annotations

import struct

from interop.conformance.conversation import conversation
from interop.conformance.talk import Talk
from interop.conformance.wire import header

METADATA = 3


@conversation
def a_frame_without_bytes_closes_the_connection(talk: Talk) -> None:
    talk.send_bytes(struct.pack(">i", 0))
    talk.is_closed()


@conversation
def an_unknown_api_closes_the_connection(talk: Talk) -> None:
    talk.send_bytes(struct.pack(">ihhih", 10, 999, 0, 1, -1))
    talk.is_closed()


@conversation
def a_version_that_is_not_served_closes_the_connection(talk: Talk) -> None:
    body = header(METADATA, 14, 1, "conformance") + bytes(3)
    talk.send_bytes(struct.pack(">i", len(body)) + body)
    talk.is_closed()
