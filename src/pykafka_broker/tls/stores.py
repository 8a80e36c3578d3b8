"""Key stores and trust stores as `ssl.keystore.*` and `ssl.truststore.*` name them.

PEM is in the configuration itself or in a file; its lines may be joined into one, as by a properties file.
Its key is PKCS #8, encrypted if there is a key password.
PKCS12 needs the library `cryptography`. JKS and PKCS12 are told apart by their first bytes and not by the
configured type, as in Java: `keytool` has written PKCS12 since Java 9, while the default type is JKS. The
first certificate of each key in a trust store is trusted too, as in Java.

Errors name the key or the file, and never show a password or what a store holds.

Source: DefaultSslEngineFactory of Apache Kafka.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pykafka_broker.tls.core.jks import MAGIC, WrongPassword, read_jks

#: The most bytes of a store; guards against a path to something else.
MAX_STORE_BYTES = 16 << 20
_BINARY_TYPES = frozenset({"JKS", "PKCS12"})
_JCEKS_MAGIC = bytes.fromhex("cececece")
_PEM = re.compile(r"-----BEGIN (?P<label>[A-Z0-9 ]+)-----(?P<body>.*?)-----END (?P=label)-----", re.DOTALL)


class StoreError(ValueError):
    """A store cannot be read, or its configuration is invalid."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """The keys of one store. `repr` shows no secret."""

    type: str = "JKS"
    location: str | None = None
    password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    #: PEM: `ssl.keystore.key`; a trust store has none.
    key: str | None = field(default=None, repr=False)
    #: PEM: `ssl.keystore.certificate.chain`, `ssl.truststore.certificates`.
    certificates: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A key and its certificates, the key's own first: PEM. `repr` shows neither."""

    key: bytes = field(repr=False)
    certificates: bytes = field(repr=False)
    #: The password of `key`, if that is encrypted.
    password: str | None = field(default=None, repr=False)


def certificates_of(key: PrivateKey) -> Sequence[bytes]:
    """The certificates of a key (DER), its own first."""
    return _pem_certificates(key.certificates.decode("ascii"))


def read_key_store(settings: StoreSettings) -> Sequence[PrivateKey]:
    """The keys of a store; none if no store is configured.

    Raises:
        StoreError: it cannot be read.
    """
    _check_key_store(settings)
    if settings.key is not None and settings.certificates is not None:
        with_key = _pem_key(settings.key, settings.certificates, settings.key_password)
        return (with_key,)
    if settings.location is None:
        return ()
    data = _read_file(settings.location, "key")
    try:
        if settings.type == "PEM":
            text = data.decode("ascii", "replace")
            return (_pem_key(text, text, settings.key_password),)
        password = settings.password or ""
        key_password = password if settings.key_password is None else settings.key_password
        if data.startswith(MAGIC):
            store = read_jks(data, password)
            keys = [
                PrivateKey(
                    _pem("PRIVATE KEY", entry.key(key_password)),
                    b"".join(_pem("CERTIFICATE", certificate) for certificate in entry.certificates),
                )
                for entry in store.keys
            ]
        else:
            keys = _pkcs12_keys(data, password)
        if not keys:
            raise ValueError("it holds no private key")
    except ValueError as error:
        raise StoreError(
            f"Failed to load SSL keystore {settings.location} of type {settings.type}: {error}"
        ) from None
    return keys


def read_trust_store(settings: StoreSettings) -> Sequence[bytes] | None:
    """The certificates that are trusted (DER); None if no store is configured.

    Raises:
        StoreError: it cannot be read, or nothing is trusted.
    """
    _check_trust_store(settings)
    if settings.certificates is not None:
        try:
            return _pem_certificates(settings.certificates)
        except ValueError as error:
            raise StoreError(f"ssl.truststore.certificates cannot be read: {error}") from None
    if settings.location is None:
        return None
    data = _read_file(settings.location, "trust")
    try:
        if settings.type == "PEM":
            return _pem_certificates(data.decode("ascii", "replace"))
        if data.startswith(MAGIC):
            jks = read_jks(data, settings.password)
            own = [entry.certificates[0] for entry in jks.keys if entry.certificates]
            certificates = [*jks.trusted.values(), *own]
        else:
            certificates = _pkcs12_certificates(data, settings.password)
        if not certificates:
            raise ValueError("it holds no trusted certificate")
    except ValueError as error:
        raise StoreError(
            f"Failed to load SSL truststore {settings.location} of type {settings.type}: {error}"
        ) from None
    return certificates


def stamp_of(settings: StoreSettings) -> tuple[int, ...]:
    """Numbers that change with the file of a store; empty if the store is not in a file."""
    if settings.location is None:
        return ()
    try:
        status = os.stat(settings.location)
    except OSError:
        return (0,)
    return (status.st_mtime_ns, status.st_ino, status.st_size)


def _check_key_store(settings: StoreSettings) -> None:
    is_pem = settings.type == "PEM"
    if settings.key is not None:
        if not is_pem:
            raise StoreError(
                f"SSL private key can be specified only for PEM, but key store type is {settings.type}."
            )
        if settings.certificates is None:
            raise StoreError("SSL private key is specified, but certificate chain is not specified.")
        if settings.location is not None:
            raise StoreError("Both SSL key store location and separate private key are specified.")
    elif settings.certificates is not None:
        raise StoreError("SSL certificate chain is specified, but private key is not specified")
    if is_pem and (settings.key is not None or settings.location is not None):
        if settings.password is not None:
            raise StoreError(
                "SSL key store password cannot be specified with PEM format, "
                "only key password may be specified."
            )
    elif settings.location is None and settings.password is not None:
        raise StoreError("SSL key store is not specified, but key store password is specified.")
    elif settings.location is not None and settings.password is None:
        raise StoreError("SSL key store is specified, but key store password is not specified.")
    _check_type(settings, "keystore")


def _check_trust_store(settings: StoreSettings) -> None:
    is_pem = settings.type == "PEM"
    if settings.certificates is not None:
        if not is_pem:
            raise StoreError(
                "SSL trust store certs can be specified only for PEM, "
                f"but trust store type is {settings.type}."
            )
        if settings.location is not None:
            raise StoreError("Both SSL trust store location and separate trust certificates are specified.")
    if is_pem and settings.password is not None:
        raise StoreError("SSL trust store password cannot be specified for PEM format.")
    if settings.location is None and settings.password is not None:
        raise StoreError("SSL trust store is not specified, but trust store password is specified.")
    _check_type(settings, "truststore")


def _check_type(settings: StoreSettings, store: str) -> None:
    if settings.location is None:
        return
    if settings.type != "PEM" and settings.type.upper() not in _BINARY_TYPES:
        raise StoreError(f"ssl.{store}.type {settings.type} is not one of PEM, PKCS12 and JKS")


def _read_file(path: str, kind: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_STORE_BYTES + 1)
    except OSError as error:
        raise StoreError(f"The {kind} store {path} cannot be read: {error.strerror}") from None
    if len(data) > MAX_STORE_BYTES:
        raise StoreError(f"The {kind} store {path} has more than {MAX_STORE_BYTES} bytes")
    return data


def _pem_key(key: str, certificates: str, password: str | None) -> PrivateKey:
    blocks = [match for match in _PEM.finditer(key) if match["label"].endswith("PRIVATE KEY")]
    if len(blocks) != 1:
        raise StoreError(f"Expected one private key in PEM, but found {len(blocks)}")
    block = blocks[0]
    if block["label"] == "ENCRYPTED PRIVATE KEY":
        if password is None:
            raise StoreError("The private key is encrypted, but ssl.key.password is not specified")
    elif block["label"] != "PRIVATE KEY":
        raise StoreError(
            f"The private key is in the form '{block['label']}', and not PKCS #8; "
            "`openssl pkcs8 -topk8` converts it"
        )
    chain = b"".join(_pem("CERTIFICATE", certificate) for certificate in _pem_certificates(certificates))
    return PrivateKey(_in_lines(block), chain, password)


def _in_lines(block: re.Match[str]) -> bytes:
    """A block, whose lines may be joined into one, with line breaks as OpenSSL needs them."""
    if ":" in block["body"]:
        # It has headers, so its lines are not joined.
        return block[0].encode()
    try:
        return _pem(block["label"], base64.b64decode("".join(block["body"].split()), validate=True))
    except ValueError:
        raise StoreError("The private key is not in base64, as PEM is") from None


def _pem_certificates(text: str) -> list[bytes]:
    import ssl

    certificates = [
        ssl.PEM_cert_to_DER_cert(match[0]) for match in _PEM.finditer(text) if match["label"] == "CERTIFICATE"
    ]
    if not certificates:
        raise StoreError("At least one certificate expected, but none found")
    return certificates


def _pem(label: str, der: bytes) -> bytes:
    text = base64.encodebytes(der).decode("ascii")
    return f"-----BEGIN {label}-----\n{text}-----END {label}-----\n".encode("ascii")


def _load_pkcs12(data: bytes, password: str | None) -> Any:
    if data.startswith(_JCEKS_MAGIC):
        raise ValueError("JCEKS is not read; `keytool -importkeystore -deststoretype pkcs12` converts it")
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        raise StoreError("PKCS12 needs the library cryptography: pip install 'pykafka-broker[tls]'") from None
    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        raise WrongPassword("the password is wrong, or the file is damaged or of another type") from None


def _pkcs12_keys(data: bytes, password: str) -> list[PrivateKey]:
    store = _load_pkcs12(data, password)
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    if store.key is None or store.cert is None:
        return []
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = [store.cert.certificate]
    # A file may hold other certificates too, and the chain in any order.
    left = [entry.certificate for entry in store.additional_certs]
    while chain[-1].issuer != chain[-1].subject:
        issuers = [certificate for certificate in left if certificate.subject == chain[-1].issuer]
        if not issuers:
            break
        left.remove(issuers[0])
        chain.append(issuers[0])
    return [PrivateKey(key, b"".join(certificate.public_bytes(Encoding.PEM) for certificate in chain))]


def _pkcs12_certificates(data: bytes, password: str | None) -> list[bytes]:
    store = _load_pkcs12(data, password)
    from cryptography.hazmat.primitives.serialization import Encoding

    own = [] if store.cert is None else [store.cert]
    return [entry.certificate.public_bytes(Encoding.DER) for entry in (*store.additional_certs, *own)]
