"""SaslHandshake: which mechanisms there are, and what may be asked before and after."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest
from pykafka_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from pykafka_broker.sasl.plain import plain_token

#: The listener of clients asks for SASL; the node itself does not connect to it.
WITH_SASL = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="bob" password="bob-secret" user_alice="alice-secret" user_bob="bob-secret";'
    ),
}
PLAIN = SaslHandshakeRequest(mechanism="PLAIN")
ALICE = SaslAuthenticateRequest(auth_bytes=plain_token("alice", "alice-secret"))
VERSIONS = ApiVersionsRequest(client_software_name="conformance", client_software_version="1")


@conversation
def a_listener_without_sasl_has_no_place_for_it(talk: Talk) -> None:
    talk.ask(PLAIN, E.ILLEGAL_SASL_STATE)
    talk.ask(ListGroupsRequest())


@conversation
def a_listener_of_controllers_without_sasl_has_no_place_for_it(talk: Talk) -> None:
    talk.controllers().ask(PLAIN, E.ILLEGAL_SASL_STATE)


@conversation(settings=WITH_SASL)
def a_mechanism_that_there_is(talk: Talk) -> None:
    talk.ask(PLAIN)


@conversation(settings=WITH_SASL)
def a_mechanism_that_there_is_not(talk: Talk) -> None:
    talk.ask(SaslHandshakeRequest(mechanism="GSSAPI"), E.UNSUPPORTED_SASL_MECHANISM)
    talk.is_closed()


@conversation(settings=WITH_SASL)
def the_names_of_mechanisms_are_exact(talk: Talk) -> None:
    talk.ask(SaslHandshakeRequest(mechanism="plain"), E.UNSUPPORTED_SASL_MECHANISM)
    talk.is_closed()


@conversation(settings=WITH_SASL)
def versions_may_be_asked_for_before(talk: Talk) -> None:
    nameless = ApiVersionsRequest(client_software_name="", client_software_version="")
    talk.ask(nameless, E.INVALID_REQUEST, version=3)
    talk.do(VERSIONS, version=3)
    talk.ask(PLAIN)


@conversation(settings=WITH_SASL)
def but_not_twice(talk: Talk) -> None:
    talk.do(VERSIONS, version=3)
    talk.send(VERSIONS, version=3)
    talk.is_closed()


@conversation(settings=WITH_SASL)
def anything_else_closes_the_connection(talk: Talk) -> None:
    for request in (ListGroupsRequest(), ALICE):
        other = talk.another()
        other.send(request)
        other.is_closed()


@conversation("1", settings=WITH_SASL)
def a_second_handshake_has_no_place(talk: Talk) -> None:
    talk.ask(PLAIN)
    talk.ask(PLAIN, E.ILLEGAL_SASL_STATE)
    talk.is_closed()


@conversation("0", settings=WITH_SASL)
def after_the_first_version_tokens_come_bare(talk: Talk) -> None:
    talk.ask(PLAIN)
    talk.send_bytes(len(ALICE.auth_bytes).to_bytes(4, "big") + ALICE.auth_bytes)
    talk.note("the answer to the token", talk.wire.socket.recv(4).hex())
    talk.ask(ListGroupsRequest())


@conversation("0", settings=WITH_SASL)
def a_bare_token_that_is_refused_has_no_answer(talk: Talk) -> None:
    talk.ask(PLAIN)
    token = plain_token("alice", "wrong")
    talk.send_bytes(len(token).to_bytes(4, "big") + token)
    talk.is_closed()


@conversation(settings=WITH_SASL)
def after_authentication_nobody_authenticates_again(talk: Talk) -> None:
    talk.ask(PLAIN, version=1)
    talk.ask(ALICE)
    talk.ask(PLAIN, E.ILLEGAL_SASL_STATE)
    talk.ask(ListGroupsRequest())
