r"""The subject of a certificate as Java's `X500Principal.getName()` prints it: RFC 2253 in Java's manner.

    CN=Duke,OU=JavaSoft,O=Sun Microsystems,C=US
    1.2.840.113549.1.9.1=#16056140622e63,CN=x

The last name of the certificate comes first. Nine types have a keyword. Others are printed as their number,
with the bytes of their value in hexadecimal. In a value `,=+<>#;"\` are escaped everywhere, spaces and
carriage returns at both ends. Values of all kinds of text are read as UTF-8, as Java does.

A certificate comes from a peer, so every length is checked. Python's `getpeercert` does not suffice: it drops
the kind of text of a value, and the bytes of unknown types.
"""

from __future__ import annotations

from pykafka_broker.tls.core.certificates import SUBJECT, certificate_field
from pykafka_broker.tls.core.der import (
    OBJECT_IDENTIFIER,
    SEQUENCE,
    SET,
    expect,
    object_identifier,
    only,
    values,
)

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}

#: UTF8String, PrintableString, T61String, IA5String, GeneralString, UniversalString, BMPString.
_TEXTS = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E})
_ESCAPED = frozenset(',=+<>#;"\\')


def subject_of(certificate: bytes) -> str:
    """The distinguished name of the subject of a certificate (DER); may be empty.

    Raises:
        ValueError: these bytes are no certificate.
    """
    return _name(certificate_field(certificate, SUBJECT))


def name_of(distinguished_name: bytes) -> str:
    """A distinguished name (DER) as Java prints it.

    Raises:
        ValueError: the bytes are malformed.
    """
    return _name(only(distinguished_name, SEQUENCE))


def _name(content: bytes) -> str:
    names = [
        "+".join(_attribute(expect(attribute, SEQUENCE)) for attribute in values(expect(relative, SET)))
        for relative in values(content)
    ]
    return ",".join(reversed(names))


def _attribute(content: bytes) -> str:
    parts = list(values(content))
    if len(parts) != 2:
        raise ValueError("An attribute of a distinguished name is not a type and a value")
    oid = object_identifier(expect(parts[0], OBJECT_IDENTIFIER))
    tag, value, encoded = parts[1]
    keyword = _KEYWORDS.get(oid)
    if keyword is None or tag not in _TEXTS:
        return f"{keyword or oid}=#{encoded.hex()}"
    return f"{keyword}={_escaped(value.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    escaped = "".join(
        "\\" + character if character in _ESCAPED else "\\00" if character == "\0" else character
        for character in text
    )
    stripped = escaped.lstrip(" \r")
    leading = len(escaped) - len(stripped)
    trailing = len(stripped) - len(stripped.rstrip(" \r"))
    middle = escaped[leading : len(escaped) - trailing]
    before, after = escaped[:leading], escaped[len(escaped) - trailing :]
    return "".join(f"\\{c}" for c in before) + middle + "".join(f"\\{c}" for c in after)
