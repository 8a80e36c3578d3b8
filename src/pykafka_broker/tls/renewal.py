"""The check of renewed certificates, before they replace those of a running listener.

Source: CertificateEntries of Apache Kafka's SslFactory, and KIP-978 for the two exceptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address

from pykafka_broker.tls.core.der import (
    OBJECT_IDENTIFIER,
    OCTET_STRING,
    SEQUENCE,
    expect,
    object_identifier,
    only,
    values,
)
from pykafka_broker.tls.core.distinguished_names import subject_of
from pykafka_broker.tls.stores import PrivateKey, StoreError, certificates_of

#: The extensions of a certificate of version 3.
_EXTENSIONS = 0xA3
_SUBJECT_ALTERNATIVE_NAMES = "2.5.29.17"
_ADDRESS = 7
#: E-mail addresses, host names and URIs.
_TEXTS = frozenset({1, 2, 6})

#: The kind of a name and the name, as Java prints them.
AlternativeName = tuple[int, str]


def check_renewed(
    current: Sequence[PrivateKey],
    renewed: Sequence[PrivateKey],
    *,
    may_change_name: bool = False,
    may_change_hosts: bool = False,
) -> None:
    """Check that the `renewed` certificates have the subjects and alternative names of the `current` ones;
    `ssl.allow.dn.changes` and `ssl.allow.san.changes` allow exceptions.

    Raises:
        StoreError: the renewed ones do not.
    """
    if may_change_name and may_change_hosts:
        return
    if len(current) != len(renewed):
        raise StoreError(
            f"Keystore entries do not match, existing store contains {len(current)} entries, "
            f"new store contains {len(renewed)} entries"
        )
    for old_key, new_key in zip(current, renewed, strict=True):
        old, new = certificates_of(old_key)[0], certificates_of(new_key)[0]
        before, after = subject_of(old), subject_of(new)
        if not may_change_name and before.lower() != after.lower():
            raise StoreError(
                f"Keystore DistinguishedName does not match:  existing={{DN={before}}}, new={{DN={after}}}"
            )
        hosts, new_hosts = alternative_names_of(old), alternative_names_of(new)
        if not may_change_hosts and not set(hosts) <= set(new_hosts):
            raise StoreError(
                f"Keystore SubjectAltNames do not match:  existing={{SAN={_shown(hosts)}}}, "
                f"new={{SAN={_shown(new_hosts)}}}"
            )


def alternative_names_of(certificate: bytes) -> list[AlternativeName]:
    """The subject alternative names of a certificate (DER).

    Raises:
        ValueError: these bytes are no certificate.
    """
    to_be_signed = expect(next(values(only(certificate, SEQUENCE)), None), SEQUENCE)
    for tag, content, _ in values(to_be_signed):
        if tag == _EXTENSIONS:
            for extension in values(only(content, SEQUENCE)):
                parts = list(values(expect(extension, SEQUENCE)))
                oid = object_identifier(expect(parts[0] if parts else None, OBJECT_IDENTIFIER))
                if oid == _SUBJECT_ALTERNATIVE_NAMES:
                    names = only(expect(parts[-1], OCTET_STRING), SEQUENCE)
                    return [_alternative_name(kind & 0x1F, name) for kind, name, _ in values(names)]
    return []


def _alternative_name(kind: int, name: bytes) -> AlternativeName:
    if kind == _ADDRESS and len(name) in (4, 16):
        return kind, str(ip_address(name))
    return kind, name.decode("ascii", "replace") if kind in _TEXTS else name.hex()


def _shown(names: Sequence[AlternativeName]) -> str:
    return "[" + ", ".join(f"[{kind}, {name}]" for kind, name in names) + "]"
