"""Short words for the requests about SCRAM credentials."""

from __future__ import annotations

from pykafka_broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from pykafka_broker.sasl.scram_keys import SCRAM_MECHANISMS, salted_password

SHA_256, SHA_512 = 1, 2
SALT = b"a salt"
Change = ScramCredentialUpsertion | ScramCredentialDeletion


def put(user: str, mechanism: int = SHA_256, iterations: int = 4096) -> ScramCredentialUpsertion:
    """A change that gives a user the password `password of <user>`."""
    kind = next((one for one in SCRAM_MECHANISMS.values() if one.type == mechanism), None)
    password = f"password of {user}"
    salted = b"any" if kind is None else salted_password(kind, password, SALT, max(iterations, 1))
    return ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=SALT, salted_password=salted
    )


def drop(user: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    """A change that takes a credential away."""
    return ScramCredentialDeletion(name=user, mechanism=mechanism)


def altering(*changes: Change) -> AlterUserScramCredentialsRequest:
    """The request of these changes."""
    return AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in changes if isinstance(each, ScramCredentialUpsertion)],
    )
