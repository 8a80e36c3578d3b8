"""Decode and encode the declared messages.

    message, pos = decode(MetadataRequest, 12, buf)
    data = encode(message, 12)
    parts = encode_parts(message, 12)      # for writelines: `records` stay separate buffers

`decoder(cls, version)` and `encoder(cls, version)` are the compiled functions behind them, for hot paths.
They are compiled on first use (about half a millisecond) and cached. Their text, one function per struct, is
shown in tracebacks and pdb: `print(decoder(MetadataRequest, 12).source)`.

Decoding trusts nothing: every length is compared with the remaining bytes before anything is allocated or
looped over, and malformed bytes raise `ProtocolError`. As in Apache Kafka, bytes after the end of a message
are ignored, every negative length means null, every non-zero byte is true, text that is not UTF-8 is
accepted, and tags may come in any order or twice. Unknown tags are dropped.

Encoding trusts its caller: a missing or wrongly typed value is our own bug and raises an error of Python's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, cast

from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.codegen import ConstructorSource, DecoderSource, EncoderSource
from pykafka_broker.protocol.wire import Content, Cut, StoredBytes, buffers_length, skip_tags

__all__ = [
    "Buffer",
    "Content",
    "Cut",
    "Decoder",
    "Encoder",
    "StoredBytes",
    "assemble",
    "buffers_length",
    "constructor",
    "decode",
    "decoder",
    "encode",
    "encode_parts",
    "encoded_size",
    "encoder",
    "skip_tags",
]

M = TypeVar("M")
M_co = TypeVar("M_co", covariant=True)
M_contra = TypeVar("M_contra", contravariant=True)


class Decoder(Protocol[M_co]):
    """Reads one message; returns it and the position after it."""

    source: str

    def __call__(self, buf: Buffer, pos: int = 0) -> tuple[M_co, int]: ...


class Encoder(Protocol[M_contra]):
    """Appends one message to `out`, and the contents of its `records` fields (see `Cut`) to `cuts`."""

    source: str

    def __call__(self, message: M_contra, out: bytearray, cuts: list[Cut]) -> None: ...


def decode(cls: type[M], version: int, buf: Buffer, pos: int = 0) -> tuple[M, int]:
    """Read a `cls` of this version at `pos`; returns it and the position after it."""
    return decoder(cls, version)(buf, pos)


def encode(message: object, version: int, before: bytes = b"") -> bytes:
    """The bytes of `message` in this version, after those of `before`."""
    out = bytearray(before)
    cuts: list[Cut] = []
    cls = message.__class__
    (_encoders.get((cls, version)) or encoder(cls, version))(message, out, cuts)
    return b"".join(cast("list[Buffer]", assemble(out, cuts))) if cuts else bytes(out)


def encoded_size(message: object, version: int) -> int:
    """The bytes that `message` takes in this version; its records are not read."""
    out = bytearray()
    cuts: list[Cut] = []
    encoder(type(message), version)(message, out, cuts)
    return len(out) + sum([buffers_length(content) for _, content in cuts])


def encode_parts(message: object, version: int) -> list[Buffer]:
    """As `encode`, but as buffers to send one after the other; `records`, in memory, are not copied."""
    out = bytearray()
    cuts: list[Cut] = []
    encoder(type(message), version)(message, out, cuts)
    return cast("list[Buffer]", assemble(out, cuts))


def assemble(out: bytearray, cuts: Sequence[Cut]) -> list[Buffer | StoredBytes]:
    """The buffers to send, in order: `out` with the content of each cut inserted at its position."""
    if not cuts:
        return [out]
    parts: list[Buffer | StoredBytes] = []
    view = memoryview(out)
    done = 0
    for at, content in cuts:
        if at > done:
            parts.append(view[done:at])
        if isinstance(content, (list, tuple)):
            parts.extend(content)
        else:
            parts.append(content)
        done = at
    if done < len(out):
        parts.append(view[done:])
    return parts


def decoder(cls: type[M], version: int) -> Decoder[M]:
    """The compiled decoder of `cls` in this version."""
    compiled = _decoders.get((cls, version))
    if compiled is None:
        compiled = _decoders[cls, version] = DecoderSource(cls, version).load()
    return compiled


def encoder(cls: type[M], version: int) -> Encoder[M]:
    """The compiled encoder of `cls` in this version."""
    compiled = _encoders.get((cls, version))
    if compiled is None:
        compiled = _encoders[cls, version] = EncoderSource(cls, version).load()
    return compiled


_decoders: dict[tuple[type, int], Decoder[Any]] = {}
_encoders: dict[tuple[type, int], Encoder[Any]] = {}


def constructor(cls: type) -> Callable[..., None]:
    """The `__init__` of a declared class: keywords only, a fresh list for every list default."""
    return ConstructorSource(cls).load()
