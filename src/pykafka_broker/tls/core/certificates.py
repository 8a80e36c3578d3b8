"""The fields of a certificate (DER, RFC 5280), and when it ends. The bytes may come from a peer."""

from __future__ import annotations

import calendar
import re

from pykafka_broker.tls.core.der import SEQUENCE, expect, only, values

#: The places of fields behind the version, which only certificates of version 2 and 3 have. Serial number,
#: algorithm and issuer come first.
VALIDITY, SUBJECT = 3, 4
_VERSION = 0xA0
_UTC_TIME, _GENERALIZED_TIME = 0x17, 0x18
_TIME = re.compile(rb"(\d{4})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])([01]\d|2[0-3])([0-5]\d)([0-5]\d)Z")


def certificate_field(certificate: bytes, place: int) -> bytes:
    """The content of the field at a place, such as `SUBJECT`, which must be a SEQUENCE.

    Raises:
        ValueError: these bytes are no certificate.
    """
    to_be_signed = expect(next(values(only(certificate, SEQUENCE)), None), SEQUENCE)
    fields = [field for field, _ in zip(values(to_be_signed), range(SUBJECT + 2), strict=False)]
    if fields and fields[0][0] == _VERSION:
        del fields[0]
    if len(fields) <= place:
        raise ValueError("A certificate is cut short")
    return expect(fields[place], SEQUENCE)


def not_after_s(certificate: bytes) -> int:
    """When a certificate ends, in seconds since 1970.

    Raises:
        ValueError: these bytes are no certificate.
    """
    times = list(values(certificate_field(certificate, VALIDITY)))
    if len(times) != 2 or times[1][0] not in (_UTC_TIME, _GENERALIZED_TIME):
        raise ValueError("The validity of a certificate is not two times")
    tag, text, _ = times[1]
    if tag == _UTC_TIME:
        text = (b"19" if text >= b"50" else b"20") + text
    read = _TIME.fullmatch(text)
    if read is None:
        raise ValueError("A time of a certificate cannot be read")
    return calendar.timegm(tuple(map(int, read.groups())))
