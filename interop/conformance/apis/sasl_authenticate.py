"""SaslAuthenticate: who gets in, what the others are told, and for how long."""

from __future__ import annotations

from interop.conformance.apis.sasl_handshake import ALICE, PLAIN, WITH_SASL
from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest
from pykafka_broker.protocol.messages.list_transactions import ListTransactionsRequest
from pykafka_broker.protocol.messages.metadata import MetadataRequest
from pykafka_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from pykafka_broker.sasl.plain import plain_token

WITH_LIFETIME = WITH_SASL | {"connections.max.reauth.ms": "600000"}


def told(token: bytes) -> SaslAuthenticateRequest:
    return SaslAuthenticateRequest(auth_bytes=token)


@conversation
def a_listener_without_sasl_has_no_place_for_it(talk: Talk) -> None:
    talk.ask(ALICE, E.ILLEGAL_SASL_STATE)
    talk.ask(ListGroupsRequest())


@conversation
def a_listener_of_controllers_without_sasl_has_no_place_for_it(talk: Talk) -> None:
    talk.controllers().ask(ALICE, E.ILLEGAL_SASL_STATE)


@conversation(settings=WITH_SASL)
def a_user_with_a_password(talk: Talk) -> None:
    talk.ask(PLAIN)
    talk.ask(ALICE)
    talk.ask(MetadataRequest(topics=[]))
    talk.ask(ALICE, E.ILLEGAL_SASL_STATE)


@conversation(settings=WITH_SASL)
def a_token_that_is_refused(talk: Talk) -> None:
    tokens = (
        plain_token("alice", "wrong"),
        plain_token("alice", "bob-secret"),
        plain_token("nobody", "alice-secret"),
        plain_token("", "alice-secret"),
        plain_token("alice", ""),
        b"bob\0alice\0alice-secret",
        b"",
        b"\0",
        b"\0\0",
        b"alice\0alice-secret",
        b"\0alice\0alice-secret\0more",
        b"\xff\0alice\0alice-secret",
    )
    for token in tokens:
        other = talk.another()
        other.ask(PLAIN)
        other.ask(told(token), E.SASL_AUTHENTICATION_FAILED)
        other.is_closed()


@conversation(settings=WITH_SASL)
def a_user_may_ask_for_itself(talk: Talk) -> None:
    talk.ask(PLAIN)
    talk.ask(told(b"alice\0alice\0alice-secret"))


@conversation(settings=WITH_SASL)
def another_request_in_the_place_of_a_token(talk: Talk) -> None:
    talk.ask(PLAIN)
    talk.ask(ListTransactionsRequest(state_filters=[], producer_id_filters=[]), E.ILLEGAL_SASL_STATE)
    talk.is_closed()


@conversation(settings=WITH_LIFETIME)
def a_session_with_a_lifetime_begins_again(talk: Talk) -> None:
    talk.ask(PLAIN)
    talk.ask(ALICE)
    talk.ask(PLAIN)
    talk.ask(ALICE)
    talk.ask(PLAIN, E.ILLEGAL_SASL_STATE)
    talk.ask(ListGroupsRequest())


@conversation(settings=WITH_LIFETIME)
def a_user_stays_the_same(talk: Talk) -> None:
    talk.ask(PLAIN)
    talk.ask(ALICE)
    talk.ask(PLAIN)
    talk.ask(told(plain_token("bob", "bob-secret")), E.SASL_AUTHENTICATION_FAILED)
    talk.is_closed()


@conversation(settings=WITH_LIFETIME)
def a_password_is_asked_for_again(talk: Talk) -> None:
    talk.ask(PLAIN)
    talk.ask(ALICE)
    talk.ask(PLAIN)
    talk.ask(told(plain_token("alice", "wrong")), E.SASL_AUTHENTICATION_FAILED)
    talk.is_closed()


@conversation(settings=WITH_LIFETIME)
def a_mechanism_that_there_is_not_later_on(talk: Talk) -> None:
    talk.ask(PLAIN)
    talk.ask(ALICE)
    talk.send(SaslHandshakeRequest(mechanism="OTHER"))
    talk.is_closed()
