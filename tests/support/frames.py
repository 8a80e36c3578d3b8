"""Captured frames in their files: a heading such as `request v2`, then the bytes in hex, without length."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pykafka_broker.protocol.compile import decode
from pykafka_broker.protocol.messages import API_NAMES, module_name, request_type, response_type
from pykafka_broker.protocol.messages.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)

API_KEYS = {module_name(api_key): api_key for api_key in API_NAMES}


@dataclass(frozen=True)
class Frame:
    """One captured frame. `what` is "request" or "response"."""

    api: str
    what: str
    version: int
    data: bytes

    def __str__(self) -> str:
        return f"{self.api}-{self.what}-v{self.version}"

    def codec(self) -> tuple[type[Any], int, type[Any]]:
        """The header class, its version, and the class of the body."""
        api_key = API_KEYS[self.api]
        if self.what == "request":
            return RequestHeader, request_header_version(api_key, self.version), request_type(api_key)
        return ResponseHeader, response_header_version(api_key, self.version), response_type(api_key)

    def decoded(self) -> tuple[Any, Any]:
        """The header and the body, which fill the frame."""
        header_type, header_version, body_type = self.codec()
        header, pos = decode(header_type, header_version, self.data)
        body, end = decode(body_type, self.version, self.data, pos)
        assert end == len(self.data)
        return header, body


def frames_of(path: Path) -> list[Frame]:
    frames = []
    for block in path.read_text().split("\n\n")[1:]:
        heading, *lines = block.split("\n")
        what, _, version = heading.partition(" v")
        frames.append(Frame(path.stem, what, int(version), bytes.fromhex("".join(lines))))
    return frames
