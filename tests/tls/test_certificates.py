"""When certificates end."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from pykafka_broker.tls.authority import Authority
from pykafka_broker.tls.core.certificates import not_after_s

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def certificate(days: int) -> bytes:
    return Authority.new(NOW, days).own.certificate.public_bytes(Encoding.DER)


#: From 2050 on the time has four digits of the year.
@pytest.mark.parametrize("days", [1, 23 * 365, 40 * 365])
def test_the_end_of_a_certificate(days: int) -> None:
    assert not_after_s(certificate(days)) == NOW.timestamp() + days * 86_400


def test_a_certificate_that_is_cut_short_is_refused() -> None:
    whole = certificate(1)
    for length in range(len(whole)):
        with pytest.raises(ValueError):
            not_after_s(whole[:length])


def test_a_validity_that_is_no_time_is_refused() -> None:
    whole = certificate(1)
    end = (NOW.strftime("%y%m") + "03").encode()
    assert whole.count(end) == 1
    with pytest.raises(ValueError):
        not_after_s(whole.replace(end, b"261399"))
