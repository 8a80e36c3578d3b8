"""Delegation tokens and their passwords (KIP-48).

A token is an id and its HMAC with the key that all nodes of a cluster share (`delegation.token.secret.key`),
so the metadata log keeps no secret. A client logs in with SCRAM: the id is its user name, the HMAC in base64
its password.

Source: Apache Kafka's DelegationTokenManager.
"""

from __future__ import annotations

import base64
import hmac

from pykafka_broker.sasl.scram_keys import (
    MIN_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    credential_of,
    salted_password,
)


def token_hmac(secret_key: bytes, token_id: str) -> bytes:
    """The HMAC of a token."""
    return hmac.digest(secret_key, token_id.encode(), "sha512")


def token_password(token_hmac: bytes) -> str:
    """The password of a token."""
    return base64.b64encode(token_hmac).decode()


def token_credential(mechanism: ScramMechanism, token_hmac: bytes, salt: bytes) -> ScramCredential:
    """The credential of a token; it takes a few milliseconds to make."""
    salted = salted_password(mechanism, token_password(token_hmac), salt, MIN_ITERATIONS)
    return credential_of(mechanism, salted, salt, MIN_ITERATIONS)
