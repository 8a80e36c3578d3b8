"""Which certificates may take the place of others while a listener goes on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pykafka_broker.tls.authority import Authority, Issued
from pykafka_broker.tls.renewal import alternative_names_of, check_renewed
from pykafka_broker.tls.stores import PrivateKey, StoreError

AUTHORITY = Authority.new(datetime.now(UTC), 1)


def key(issued: Issued) -> PrivateKey:
    return PrivateKey(issued.key_pem, issued.certificate_pem)


OLD = [key(AUTHORITY.for_server(["broker.example.org", "10.0.0.1"]))]


def test_the_same_names_with_more_hosts() -> None:
    check_renewed(OLD, [key(AUTHORITY.for_server(["broker.example.org", "10.0.0.1", "::1"]))])


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (["other.example.org", "broker.example.org", "10.0.0.1"], "DistinguishedName does not match"),
        (
            ["broker.example.org", "10.0.0.2"],
            r"existing=\{SAN=\[\[2, broker.example.org\], \[7, 10.0.0.1\]\]\}",
        ),
    ],
)
def test_other_names_are_refused(new: list[str], reason: str) -> None:
    renewed = [key(AUTHORITY.for_server(new))]
    with pytest.raises(StoreError, match=reason):
        check_renewed(OLD, renewed)
    check_renewed(OLD, renewed, may_change_name=True, may_change_hosts=True)


def test_a_store_keeps_the_number_of_its_keys() -> None:
    with pytest.raises(StoreError, match="existing store contains 1 entries, new store contains 2 entries"):
        check_renewed(OLD, [*OLD, *OLD])


def test_the_certificate_of_a_user_is_for_no_host() -> None:
    from cryptography.hazmat.primitives.serialization import Encoding

    certificate = AUTHORITY.for_client("alice").certificate.public_bytes(Encoding.DER)
    assert alternative_names_of(certificate) == []


def test_a_certificate_that_is_cut_anywhere_is_none() -> None:
    from cryptography.hazmat.primitives.serialization import Encoding

    certificate = AUTHORITY.for_server(["localhost"]).certificate.public_bytes(Encoding.DER)
    assert alternative_names_of(certificate) == [(2, "localhost")]
    for size in range(len(certificate)):
        with pytest.raises(ValueError, match="DER"):
            alternative_names_of(certificate[:size])
