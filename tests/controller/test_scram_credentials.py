"""Which SCRAM credentials may be set and removed, and what the metadata log keeps of them."""

from __future__ import annotations

import pytest

from pykafka_broker.cluster.image import ClusterImage, replay
from pykafka_broker.cluster.scram_records import credential_in
from pykafka_broker.cluster.snapshot import snapshot_records
from pykafka_broker.controller.core.events import (
    AlterScramCredentials,
    AlterScramCredentialsResult,
    ScramDeletion,
    ScramUpsertion,
)
from pykafka_broker.controller.core.state import ControllerState
from pykafka_broker.machine.step import Reply
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.sasl.scram_keys import SCRAM_MECHANISMS, credential_of
from tests.controller.deciding import an_empty_cluster, decide, stepped

SHA_256 = SCRAM_MECHANISMS["SCRAM-SHA-256"]
ALICE = ScramUpsertion("alice", 1, 4096, b"salt", b"salted")


def altered(
    state: ControllerState, *changes: ScramDeletion | ScramUpsertion
) -> tuple[ControllerState, dict[str, tuple[ErrorCode, str | None]]]:
    """The state after these changes, and the result of each user."""
    deletions = tuple(each for each in changes if isinstance(each, ScramDeletion))
    upsertions = tuple(each for each in changes if isinstance(each, ScramUpsertion))
    state, _, results = decide(state, AlterScramCredentials(deletions, upsertions))
    return state, {each.user: (each.error, each.message) for each in results}


DONE = (ErrorCode.NONE, None)


def test_the_keys_are_kept_and_not_the_salted_password() -> None:
    state, results = altered(an_empty_cluster(), ALICE)

    assert results == {"alice": DONE}
    assert credential_in(state.image, "alice", SHA_256) == credential_of(SHA_256, b"salted", b"salt", 4096)
    assert credential_in(state.image, "bob", SHA_256) is None
    assert b"salted" not in repr(state.image.scram_credentials).encode()


def test_a_credential_is_replaced_and_removed() -> None:
    state, _ = altered(an_empty_cluster(), ALICE)
    state, _ = altered(state, ScramUpsertion("alice", 1, 8192, b"other", b"other"))
    assert credential_in(state.image, "alice", SHA_256) == credential_of(SHA_256, b"other", b"other", 8192)

    state, results = altered(state, ScramDeletion("alice", 1))
    assert results == {"alice": DONE}
    assert not state.image.scram_credentials


def test_a_snapshot_has_them() -> None:
    state, _ = altered(an_empty_cluster(), ALICE, ScramUpsertion("bob", 2, 4096, b"salt", b"salted"))
    records = tuple(snapshot_records(state.image))
    again = replay(ClusterImage(state.image.cluster_id), records, offset=0, epoch=1)
    assert again.scram_credentials == state.image.scram_credentials


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (ScramUpsertion("", 1, 4096, b"s", b"p"), "UNACCEPTABLE_CREDENTIAL", "Username must not be empty"),
        (ScramDeletion("", 1), "UNACCEPTABLE_CREDENTIAL", "Username must not be empty"),
        (ScramUpsertion("a", 0, 4096, b"s", b"p"), "UNSUPPORTED_SASL_MECHANISM", "Unknown SCRAM mechanism"),
        (ScramDeletion("a", 3), "UNSUPPORTED_SASL_MECHANISM", "Unknown SCRAM mechanism"),
        (ScramUpsertion("a", 1, 4095, b"s", b"p"), "UNACCEPTABLE_CREDENTIAL", "Too few iterations"),
        (ScramUpsertion("a", 1, 16385, b"s", b"p"), "UNACCEPTABLE_CREDENTIAL", "Too many iterations"),
        (ScramUpsertion("a", 1, 4096, b"s", b""), "UNKNOWN_SERVER_ERROR", None),
        (
            ScramDeletion("a", 1),
            "RESOURCE_NOT_FOUND",
            "Attempt to delete a user credential that does not exist",
        ),
    ],
)
def test_what_is_refused(change: ScramDeletion | ScramUpsertion, error: str, message: str | None) -> None:
    before = an_empty_cluster()
    state, results = altered(before, change)
    assert results == {change.user: (ErrorCode[error], message)}
    assert state.image.scram_credentials == before.image.scram_credentials


@pytest.mark.parametrize(
    "changes",
    [
        (ALICE, ALICE),
        (ALICE, ScramUpsertion("alice", 2, 4096, b"salt", b"salted")),
        (ScramDeletion("alice", 1), ALICE),
        (ScramDeletion("alice", 1), ScramDeletion("alice", 1)),
    ],
)
def test_a_user_is_changed_once(changes: tuple[ScramDeletion | ScramUpsertion, ...]) -> None:
    before, _ = altered(an_empty_cluster(), ALICE)
    state, results = altered(before, *changes)
    assert results == {
        "alice": (
            ErrorCode.DUPLICATE_RESOURCE,
            "A user credential cannot be altered twice in the same request",
        )
    }
    assert state.image.scram_credentials == before.image.scram_credentials


def test_an_old_metadata_version_has_no_such_records() -> None:
    state = an_empty_cluster()
    image = state.image._replace(features={**state.image.features, "metadata.version": 10})
    step = stepped(state._replace(image=image), AlterScramCredentials((), (ALICE,)), token=1)
    [reply] = step.effects
    assert isinstance(reply, Reply)
    assert reply.result == (
        AlterScramCredentialsResult(
            "alice", ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM"
        ),
    )


def test_no_secret_in_repr() -> None:
    assert "salt" not in repr(ALICE)
