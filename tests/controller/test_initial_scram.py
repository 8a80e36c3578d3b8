"""What `format --add-scram` makes of its arguments."""

from __future__ import annotations

import base64

import pytest

from pykafka_broker.cluster.features import LATEST_METADATA_VERSION
from pykafka_broker.cluster.scram_records import credential_record
from pykafka_broker.controller.core.initial_scram import scram_records
from pykafka_broker.protocol.messages.records.metadata import UserScramCredentialRecord
from pykafka_broker.sasl.scram_keys import SCRAM_MECHANISMS, credential_of, salted_password

SHA_256, SHA_512 = SCRAM_MECHANISMS.values()


def records(
    *arguments: str, metadata_version: int = LATEST_METADATA_VERSION
) -> tuple[UserScramCredentialRecord, ...]:
    return scram_records(arguments, metadata_version, lambda: b"new salt")


def test_a_password_is_salted() -> None:
    salted = salted_password(SHA_256, "alice-secret", b"new salt", 4096)
    assert records("SCRAM-SHA-256=[name=alice,password=alice-secret]") == (
        credential_record("alice", SHA_256, credential_of(SHA_256, salted, b"new salt", 4096)),
    )


def test_everything_may_be_given() -> None:
    salt, salted = base64.b64decode("N3E="), base64.b64decode("YCE=")
    assert records(' SCRAM-SHA-512=[name="alice",iterations=8192,salt="N3E=",saltedpassword="YCE="] ') == (
        credential_record("alice", SHA_512, credential_of(SHA_512, salted, salt, 8192)),
    )


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("secret", "Failed to find equals sign in SCRAM argument"),
        ("SCRAM-SHA-1=[name=a,password=secret]", "The add-scram mechanism SCRAM-SHA-1 is not supported."),
        ("SCRAM-SHA-256=name=a,password=secret]", "Expected configuration string to start with ["),
        ("SCRAM-SHA-256=[name=a,password=secret", "Expected configuration string to end with ]"),
        ("SCRAM-SHA-256=[password=secret]", "You must supply 'name' to add-scram"),
        ("SCRAM-SHA-256=[name=a,password=se,cret]", "No equals sign found in SCRAM component"),
        ("SCRAM-SHA-256=[name=a]", "You must supply one of 'password' or 'saltedpassword' to add-scram"),
        (
            "SCRAM-SHA-256=[name=a,saltedpassword=secret]",
            "You must supply 'salt' with 'saltedpassword' to add-scram",
        ),
        ("SCRAM-SHA-256=[name=a,salt=*,saltedpassword=secret]", "Failed to decode given salt"),
        ("SCRAM-SHA-256=[name=a,salt=N3E=,saltedpassword=secret*]", "Failed to decode given saltedPassword"),
        ("SCRAM-SHA-256=[name=a,password=secret,iterations=x]", "Failed to parse iterations count"),
        (
            "SCRAM-SHA-256=[name=a,password=secret,iterations=4095]",
            "The 'iterations' value must be >= 4096 for add-scram using SCRAM-SHA-256",
        ),
        (
            "SCRAM-SHA-512=[name=a,password=secret,iterations=16385]",
            "The 'iterations' value must be <= 16384 for add-scram using SCRAM-SHA-512",
        ),
        ("SCRAM-SHA-256=[name=a,password=secret,y=1,x=2]", "Unknown SCRAM configurations: x, y"),
    ],
)
def test_what_is_not_understood(argument: str, reason: str) -> None:
    with pytest.raises(ValueError) as refusal:
        records(argument)
    assert str(refusal.value) == reason


def test_an_old_metadata_version_has_no_such_records() -> None:
    with pytest.raises(ValueError, match=r"SCRAM is only supported in metadata\.version 3\.5-IV2 or later"):
        records("SCRAM-SHA-256=[name=alice,password=alice-secret]", metadata_version=10)
