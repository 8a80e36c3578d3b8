"""JKS, Java's own format of key and trust stores (magic number FEEDFEED), read without Java.

    magic u32 | version u32 (1, 2) | entries u32 | entry ... | SHA-1 (20 bytes)
    entry:  tag u32 (1 key, 2 trusted certificate) | alias utf | time u64 | key: chain; certificate: one
    key:    length u32 | EncryptedPrivateKeyInfo | certificates u32 | certificate ...
    certificate: type utf (version 2) | length u32 | DER

`utf` is the number of bytes (u16) and the text. All numbers are big-endian. The checksum at the end is SHA-1
over the password (UTF-16BE), the words "Mighty Aphrodite" and all bytes before: it shows a wrong password. A
key is protected with its own password: 20 bytes of salt, the key XORed with SHA-1(password + salt),
SHA-1(password + that), ..., then SHA-1(password + key).

Read here and not with the library for it: pyjks had its last release in April 2020, and brings twofish, an
extension in C, and pycryptodomex, which no store of this format needs.

The format requires both uses of SHA-1. The files come from this node's operator, yet lengths are checked.

Source: JavaKeyStore and KeyProtector of OpenJDK; compared with files of `keytool -storetype JKS`.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from struct import Struct

MAGIC = bytes.fromhex("feedfeed")
_WHITENER = b"Mighty Aphrodite"
_SUM_BYTES = 20
_U16 = Struct(">H")
_U32 = Struct(">I")
_KEY = 1
_CERTIFICATE = 2
#: DER of the algorithm that protects keys: 1.3.6.1.4.1.42.2.17.1.1 without parameters.
_PROTECTION = bytes.fromhex("060a2b060104012a02110101")


class WrongPassword(ValueError):
    """The password is wrong."""


@dataclass(frozen=True, slots=True)
class JksKey:
    """An entry with a key. `repr` does not show the key."""

    alias: str
    protected_key: bytes = field(repr=False)
    #: DER, the certificate of the key first.
    certificates: tuple[bytes, ...] = field(repr=False)

    def key(self, password: str) -> bytes:
        """The key: PKCS #8, DER.

        Raises:
            WrongPassword: the password is wrong.
            ValueError: it is protected in a way that JKS does not have.
        """
        return _unprotected(self.protected_key, password.encode("utf-16-be"))


@dataclass(frozen=True, slots=True)
class Jks:
    """The entries of a store."""

    keys: tuple[JksKey, ...]
    #: DER, by alias.
    trusted: dict[str, bytes]


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._pos = 0

    def take(self, count: int) -> bytes:
        start = self._pos
        self._pos += count
        if self._pos > len(self._data):
            raise ValueError("the file is cut short")
        return self._data[start : self._pos]

    def u32(self) -> int:
        number: int = _U32.unpack(self.take(4))[0]
        return number

    def text(self) -> str:
        return self.take(_U16.unpack(self.take(2))[0]).decode("utf-8", "replace")


def read_jks(data: bytes, password: str | None) -> Jks:
    """The entries of a file; without a password its checksum is not checked, as in Java.

    Raises:
        WrongPassword: the checksum does not match.
        ValueError: this is no JKS file.
    """
    content, checksum = data[:-_SUM_BYTES], data[-_SUM_BYTES:]
    reader = _Reader(content)
    if reader.take(4) != MAGIC:
        raise ValueError("the file is no JKS key store")
    version = reader.u32()
    if version not in (1, 2):
        raise ValueError(f"version {version} of JKS is unknown")
    if password is not None:
        expected = hashlib.sha1(password.encode("utf-16-be") + _WHITENER + content, usedforsecurity=False)
        if not hmac.compare_digest(expected.digest(), checksum):
            raise WrongPassword("the password is wrong, or the file is damaged")
    keys: list[JksKey] = []
    trusted: dict[str, bytes] = {}
    for _ in range(reader.u32()):
        tag = reader.u32()
        alias = reader.text()
        reader.take(8)
        if tag == _KEY:
            protected = reader.take(reader.u32())
            chain = tuple(_certificate(reader, version) for _ in range(reader.u32()))
            keys.append(JksKey(alias, protected, chain))
        elif tag == _CERTIFICATE:
            trusted[alias] = _certificate(reader, version)
        else:
            raise ValueError(f"entries of the kind {tag} are unknown")
    return Jks(tuple(keys), trusted)


def _certificate(reader: _Reader, version: int) -> bytes:
    if version == 2 and (kind := reader.text()) != "X.509":
        raise ValueError(f"certificates of the kind {kind} are unknown")
    return reader.take(reader.u32())


def _unprotected(info: bytes, password: bytes) -> bytes:
    if _PROTECTION not in info[:32]:
        raise ValueError("a key is protected in a way that JKS does not have")
    # EncryptedPrivateKeyInfo ends with an octet string, at most 24 bytes after its beginning.
    start = info.index(b"\x04", info.index(_PROTECTION) + len(_PROTECTION))
    if len(info) - start < 2 * _SUM_BYTES + 2:
        raise ValueError("a protected key is cut short")
    length = info[start + 1]
    size = length & 0x7F if length & 0x80 else 0
    octets = info[start + 2 + size :]
    salt, hidden, check = octets[:_SUM_BYTES], octets[_SUM_BYTES:-_SUM_BYTES], octets[-_SUM_BYTES:]
    stream = bytearray()
    digest = salt
    while len(stream) < len(hidden):
        digest = hashlib.sha1(password + digest, usedforsecurity=False).digest()
        stream += digest
    key = bytes(a ^ b for a, b in zip(hidden, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(password + key, usedforsecurity=False).digest(), check):
        raise WrongPassword("the password of the key is wrong")
    return key
