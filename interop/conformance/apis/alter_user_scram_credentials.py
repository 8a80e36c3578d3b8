"""AlterUserScramCredentials: which credentials are set and removed, and which are refused."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from pykafka_broker.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)

SHA_256, SHA_512 = 1, 2
Change = ScramCredentialUpsertion | ScramCredentialDeletion


def put(
    user: str,
    mechanism: int = SHA_256,
    iterations: int = 4096,
    salt: bytes = b"salt",
    salted_password: bytes = b"salted password",
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted_password
    )


def drop(user: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=user, mechanism=mechanism)


def altering(*changes: Change) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in changes if isinstance(each, ScramCredentialUpsertion)],
    )


def describing(*users: str) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(users=[UserName(name=user) for user in users])


@conversation
def a_credential_comes_and_goes(talk: Talk) -> None:
    user = talk.name("user")
    talk.ask(altering(put(user)))
    talk.ask(altering(put(user, SHA_512, 16384)))
    talk.ask(altering(put(user, iterations=5000)))
    talk.ask(
        describing(user),
        until=lambda answer: len(answer.results[0].credential_infos) == 2,
        in_any_order={"credential_infos": "mechanism"},
    )
    talk.ask(altering(drop(user)))
    talk.ask(altering(drop(user)), E.RESOURCE_NOT_FOUND)
    talk.ask(altering(drop(user, SHA_512)))


@conversation
def credentials_that_are_refused(talk: Talk) -> None:
    user = talk.name("user")
    for change, error in (
        (put(""), E.UNACCEPTABLE_CREDENTIAL),
        (drop(""), E.UNACCEPTABLE_CREDENTIAL),
        (put(user, iterations=4095), E.UNACCEPTABLE_CREDENTIAL),
        (put(user, iterations=16385), E.UNACCEPTABLE_CREDENTIAL),
        (put(user, iterations=-1), E.UNACCEPTABLE_CREDENTIAL),
        (put(user, mechanism=0), E.UNSUPPORTED_SASL_MECHANISM),
        (put(user, mechanism=3), E.UNSUPPORTED_SASL_MECHANISM),
        (drop(user, mechanism=-1), E.UNSUPPORTED_SASL_MECHANISM),
        (put("", mechanism=3), E.UNACCEPTABLE_CREDENTIAL),
        (drop(user), E.RESOURCE_NOT_FOUND),
    ):
        talk.ask(altering(change), error)


@conversation
def a_password_or_a_salt_without_bytes(talk: Talk) -> None:
    user = talk.name("user")
    talk.ask(altering(put(user, salted_password=b"")), E.UNKNOWN_SERVER_ERROR)
    talk.ask(altering(put(user, salt=b"")))
    talk.ask(altering(drop(user)))


@conversation
def a_user_comes_once(talk: Talk) -> None:
    user = talk.name("user")
    talk.ask(altering(put(user), put(user, SHA_512)), E.DUPLICATE_RESOURCE)
    talk.ask(altering(drop(user), drop(user, SHA_512)), E.RESOURCE_NOT_FOUND)
    talk.do(altering(put(user)))
    talk.ask(altering(drop(user), put(user, SHA_512)), E.DUPLICATE_RESOURCE)
    talk.ask(altering(drop(user), drop(user)), E.DUPLICATE_RESOURCE)
    talk.ask(altering(drop(user), drop(user, SHA_512)), E.DUPLICATE_RESOURCE)
    talk.ask(altering(drop(user)))


@conversation
def each_user_by_itself(talk: Talk) -> None:
    names = [talk.name(label) for label in ("a", "b", "c", "d", "e")]
    talk.do(altering(put(names[0]), put(names[1])))
    talk.ask(
        altering(drop(names[0]), put(names[2]), put(names[3], iterations=1), put(names[1]), drop(names[4])),
        E.RESOURCE_NOT_FOUND,
        E.UNACCEPTABLE_CREDENTIAL,
    )
    talk.do(altering(drop(names[1]), drop(names[2])))


@conversation
def nothing_at_all(talk: Talk) -> None:
    talk.ask(altering())


@conversation
def a_controller_is_asked(talk: Talk) -> None:
    user = talk.name("user")
    controllers = talk.controllers()
    controllers.ask(altering(put(user)))
    controllers.ask(altering(drop(user)))
