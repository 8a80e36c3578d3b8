"""The TLS contexts that `ssl.*` keys describe, for listeners and for links to other nodes.

As in Java, every certificate of a trust store is an anchor, even one that another has signed, and a server
uses its own order of suites. Compression and renegotiation are off.

If only older suites are named, TLS 1.3 is disabled; if only suites of TLS 1.3 are named, older versions are
disabled. A choice of suites of TLS 1.3 needs a known release of CPython (`newest_suites.py`); with any other,
a configuration has to name all three or none.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pykafka_broker.tls.alerts import AlertingContext
from pykafka_broker.tls.core.cipher_suites import TLS_1_3_SUITES, split_suites
from pykafka_broker.tls.stores import PrivateKey, StoreSettings, read_key_store, read_trust_store

#: The versions in their order. Those below 1.2 are refused, as Java refuses them.
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_OLD_VERSIONS = frozenset({"SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1"})
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class TlsConfigError(ValueError):
    """The `ssl.*` keys ask for something that is not available."""


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """The `ssl.*` keys of a listener or a client. `repr` shows no secret."""

    key_store: StoreSettings = field(default_factory=StoreSettings)
    trust_store: StoreSettings = field(default_factory=StoreSettings)
    #: `ssl.protocol`: the newest version that a client offers if `enabled_protocols` is empty.
    protocol: str = "TLSv1.3"
    enabled_protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    #: Java's names; empty for the library's choice.
    cipher_suites: tuple[str, ...] = ()
    #: `ssl.client.auth`: none, requested or required.
    client_auth: str = "none"
    #: `ssl.endpoint.identification.algorithm`: `https` compares host names, an empty one does not.
    endpoint_identification: str = "https"


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """The context of a listener.

    Raises:
        StoreError: a store cannot be read.
        TlsConfigError: another setting is not available.
    """
    context = AlertingContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    _set_versions(context, settings, settings.enabled_protocols)
    keys = read_key_store(settings.key_store)
    if not keys:
        raise TlsConfigError(
            "TLS needs a key: ssl.keystore.location, or ssl.keystore.key and ssl.keystore.certificate.chain"
        )
    _load_keys(context, keys)
    verify_mode = _CLIENT_AUTH.get(settings.client_auth)
    if verify_mode is None:
        raise TlsConfigError(
            f"ssl.client.auth {settings.client_auth} is not one of {', '.join(_CLIENT_AUTH)}"
        )
    context.verify_mode = verify_mode
    _load_trusted(context, settings)
    return context


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """The context of a client; `endpoint_identification` decides whether it compares host names.

    Raises:
        StoreError: a store cannot be read.
        TlsConfigError: another setting is not available.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    algorithm = settings.endpoint_identification.lower()
    if algorithm not in ("", "https"):
        raise TlsConfigError(
            f"ssl.endpoint.identification.algorithm {settings.endpoint_identification} "
            "is neither https nor empty"
        )
    context.check_hostname = algorithm == "https"
    enabled = settings.enabled_protocols
    if not enabled and settings.protocol in (*_OLD_VERSIONS, "TLSv1.2"):
        enabled = (settings.protocol,)
    _set_versions(context, settings, enabled)
    _load_keys(context, read_key_store(settings.key_store))
    _load_trusted(context, settings)
    return context


def _set_versions(context: ssl.SSLContext, settings: TlsSettings, enabled: Sequence[str]) -> None:
    """Versions and cipher suites."""
    for name in enabled:
        if name not in _VERSIONS and name not in _OLD_VERSIONS:
            raise TlsConfigError(f"ssl.enabled.protocols: {name} is unknown")
    versions = [version for name, version in _VERSIONS.items() if not enabled or name in enabled]
    if settings.cipher_suites:
        try:
            newest, older = split_suites(settings.cipher_suites)
            if older:
                # In a list OpenSSL silently drops suites that it does not have: check one by one.
                for suite in older:
                    context.set_ciphers(suite)
                context.set_ciphers(":".join(older))
        except (ValueError, ssl.SSLError) as error:
            raise TlsConfigError(f"ssl.cipher.suites cannot be had: {_in_words(error)}") from None
        if newest and ssl.TLSVersion.TLSv1_3 in versions:
            _choose(context, list(dict.fromkeys(newest)))
        versions = [
            version for version in versions if (newest if version is ssl.TLSVersion.TLSv1_3 else older)
        ]
    if not versions:
        raise TlsConfigError(
            "No version of TLS is left by ssl.enabled.protocols and ssl.cipher.suites; "
            f"{' and '.join(_VERSIONS)} are served"
        )
    context.minimum_version, context.maximum_version = versions[0], versions[-1]


def _choose(context: ssl.SSLContext, newest: Sequence[str]) -> None:
    """Offer these suites of TLS 1.3."""
    # Most nodes have no use for ctypes.
    from pykafka_broker.tls.newest_suites import CannotChoose, choose_suites

    try:
        choose_suites(context, newest)
    except CannotChoose as error:
        if len(newest) < len(TLS_1_3_SUITES):
            raise TlsConfigError(
                "ssl.cipher.suites names some suites of TLS 1.3: this Python takes all of them or none "
                f"({', '.join(sorted(TLS_1_3_SUITES))}): {error}"
            ) from None
    except ValueError as error:
        raise TlsConfigError(f"ssl.cipher.suites cannot be had: {error}") from None


def _load_keys(context: ssl.SSLContext, keys: Sequence[PrivateKey]) -> None:
    # A context keeps one key of each kind, the one loaded last.
    for key in reversed(keys):
        with _as_file(key.key + b"\n" + key.certificates) as path:
            try:
                # A function, as with None OpenSSL would ask at the terminal.
                context.load_cert_chain(path, password=lambda password=key.password: password or "")
            except ssl.SSLError as error:
                raise TlsConfigError(
                    f"The private key cannot be used: {_in_words(error)}"
                    + (" (is ssl.key.password right?)" if key.password is not None else "")
                ) from None


def _load_trusted(context: ssl.SSLContext, settings: TlsSettings) -> None:
    trusted = read_trust_store(settings.trust_store)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if trusted is None:
        context.load_default_certs(
            ssl.Purpose.CLIENT_AUTH
            if context.protocol is ssl.PROTOCOL_TLS_SERVER
            else ssl.Purpose.SERVER_AUTH
        )
        return
    try:
        context.load_verify_locations(cadata=b"".join(trusted))
    except ssl.SSLError as error:
        raise TlsConfigError(f"A trusted certificate cannot be read: {_in_words(error)}") from None


def _in_words(error: ValueError | ssl.SSLError) -> str:
    # Only errors of OpenSSL have a reason.
    reason = getattr(error, "reason", None)
    return reason.lower().replace("_", " ") if reason else str(error)


@contextmanager
def _as_file(secret: bytes) -> Iterator[str]:
    """A path under which `secret` can be read: OpenSSL takes keys from files only.

    In memory if the system has such files, else in a private file that is deleted on exit.
    """
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        descriptor = os.memfd_create("key")
        path = f"/proc/self/fd/{descriptor}"
        is_named = False
    else:
        descriptor, path = tempfile.mkstemp()
        is_named = True
    try:
        with open(descriptor, "wb") as file:
            file.write(secret)
            file.flush()
            yield path
    finally:
        if is_named:
            os.unlink(path)
