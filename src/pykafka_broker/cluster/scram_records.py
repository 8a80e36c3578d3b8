"""SCRAM credentials as the metadata keeps them (KIP-554)."""

from __future__ import annotations

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.sasl.scram_keys import ScramCredential, ScramMechanism


def credential_record(
    user: str, mechanism: ScramMechanism, credential: ScramCredential
) -> m.UserScramCredentialRecord:
    """The record of a credential."""
    return m.UserScramCredentialRecord(
        name=user,
        mechanism=mechanism.type,
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )


def credential_in(image: ClusterImage, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
    """The credential of a user; None if there is none."""
    record = image.scram_credentials.get((user, mechanism.type))
    if record is None:
        return None
    return ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
