"""SCRAM credentials: which may be set and removed, and what a description of users says (KIP-554).

A client sends the salted password; the record has the keys derived from it. Each user succeeds or fails on
its own, and may be named once in a request. The texts and the order of the results are those of Apache
Kafka's ScramControlManager and ScramImage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.cluster.scram_records import credential_record
from pykafka_broker.controller.core.events import (
    AlterScramCredentials,
    AlterScramCredentialsResult,
    ScramDeletion,
    ScramUpsertion,
)
from pykafka_broker.controller.core.state import ControllerState, Decision
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.java_hash import string_hash, walked
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.sasl.scram_keys import MAX_ITERATIONS, MIN_ITERATIONS, SCRAM_MECHANISMS, credential_of
from pykafka_broker.system.named_tuple import NamedTuple

#: metadata.version 3.5-IV2: older versions lack the records.
SCRAM_VERSION = 11

_BY_TYPE = {mechanism.type: mechanism for mechanism in SCRAM_MECHANISMS.values()}


class DescribedUser(NamedTuple):
    """The credentials of one user: (mechanism, iterations)."""

    user: str
    credentials: tuple[tuple[int, int], ...] = ()
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


def alter_scram_credentials(state: ControllerState, event: AlterScramCredentials) -> Decision:
    """Remove credentials, then set others."""
    accepted: dict[str, ScramDeletion | ScramUpsertion] = {}
    refused: dict[str, KafkaError] = {}
    changes: list[ScramDeletion | ScramUpsertion] = [*event.deletions, *event.upsertions]
    for change in changes:
        if change.user in refused:
            continue
        try:
            if accepted.pop(change.user, None) is not None:
                text = "A user credential cannot be altered twice in the same request"
                raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, text)
            _check(state.image, change)
        except KafkaError as error:
            refused[change.user] = error
        else:
            accepted[change.user] = change
    deletions = {user: each for user, each in accepted.items() if isinstance(each, ScramDeletion)}
    upsertions = {user: each for user, each in accepted.items() if isinstance(each, ScramUpsertion)}
    done = (*walked(deletions, string_hash), *walked(upsertions, string_hash))
    return Decision(
        tuple(_record(accepted[user]) for user in done),
        (
            *(AlterScramCredentialsResult(user) for user in done),
            *(
                AlterScramCredentialsResult(user, refused[user].code, refused[user].explanation)
                for user in walked(refused, string_hash)
            ),
        ),
    )


def _check(image: ClusterImage, change: ScramDeletion | ScramUpsertion) -> None:
    if image.metadata_version < SCRAM_VERSION:
        text = "The current metadata.version does not support SCRAM"
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)
    if not change.user:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in _BY_TYPE:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramDeletion):
        if (change.user, change.mechanism) not in image.scram_credentials:
            text = "Attempt to delete a user credential that does not exist"
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, text)
    elif change.iterations < MIN_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    elif change.iterations > MAX_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    elif not change.salted_password:
        # Java cannot make a key of zero bytes; Apache Kafka answers with this error and no text.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def _record(change: ScramDeletion | ScramUpsertion) -> object:
    if isinstance(change, ScramDeletion):
        return m.RemoveUserScramCredentialRecord(name=change.user, mechanism=change.mechanism)
    mechanism = _BY_TYPE[change.mechanism]
    credential = credential_of(mechanism, change.salted_password, change.salt, change.iterations)
    return credential_record(change.user, mechanism, credential)


def described_users(image: ClusterImage, users: Iterable[str]) -> list[DescribedUser]:
    """The credentials of `users`, or of all users if it is empty, in the order of Apache Kafka's hash map."""
    asked = Counter(users) or Counter(dict.fromkeys((user for user, _ in image.scram_credentials), 1))
    return [_described(image, user, asked[user]) for user in walked(asked, string_hash)]


def _described(image: ClusterImage, user: str, times: int) -> DescribedUser:
    if times > 1:
        text = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        return DescribedUser(user, (), ErrorCode.DUPLICATE_RESOURCE, text)
    found = [(type_, image.scram_credentials.get((user, type_))) for type_ in _BY_TYPE]
    credentials = tuple((type_, each.iterations) for type_, each in found if each is not None)
    if not credentials:
        text = f"Attempt to describe a user credential that does not exist: {user}"
        return DescribedUser(user, (), ErrorCode.RESOURCE_NOT_FOUND, text)
    return DescribedUser(user, credentials)
