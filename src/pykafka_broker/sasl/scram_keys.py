"""The keys and signatures of SCRAM (RFC 5802, RFC 7677), and the escapes of its user names.

Passwords are hashed as their UTF-8 bytes: Apache Kafka does not apply SASLprep, and a credential made by it
must be valid here.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from pykafka_broker.system.named_tuple import NamedTuple

#: Fewer iterations are refused, for both mechanisms.
MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384

#: The random bits of a nonce or a salt, as in Apache Kafka.
RANDOM_BITS = 130

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class ScramMechanism(NamedTuple):
    name: str
    #: The name in `hashlib`.
    hash_name: str
    key_bytes: int
    #: `type` in metadata records and in the APIs of credentials.
    type: int


SCRAM_MECHANISMS: Mapping[str, ScramMechanism] = {
    "SCRAM-SHA-256": ScramMechanism("SCRAM-SHA-256", "sha256", 32, 1),
    "SCRAM-SHA-512": ScramMechanism("SCRAM-SHA-512", "sha512", 64, 2),
}


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a server stores of a password. It suffices to impersonate the server, so `repr` shows no key."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """The key that both sides derive from a password; takes some milliseconds."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def credential_of(mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """The credential of a salted password."""
    stored_key = hashlib.new(mechanism.hash_name, client_key(mechanism, salted)).digest()
    return ScramCredential(salt, stored_key, signature(mechanism, salted, b"Server Key"), iterations)


def client_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    return signature(mechanism, salted, b"Client Key")


def signature(mechanism: ScramMechanism, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, mechanism.hash_name)


def exclusive_or(left: bytes, right: bytes) -> bytes:
    """The XOR of two byte strings of the same length."""
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def random_text(number: int) -> str:
    """A random number as the letters of nonces and salts."""
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text or "0"


def escaped(user: str) -> str:
    """A user name, escaped for a message."""
    return user.replace("=", "=3D").replace(",", "=2C")


def unescaped(name: str) -> str:
    """The user name in a message, without escapes."""
    return name.replace("=2C", ",").replace("=3D", "=")
