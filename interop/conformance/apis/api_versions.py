"""ApiVersions: what a broker can do, asked before anything else is known of it."""

from __future__ import annotations

from interop.conformance.conversation import LATEST, conversation
from interop.conformance.talk import CLOSED, E, Talk
from pykafka_broker.client.core.frames import request_header
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest

API_VERSIONS = 18


def header(version: int) -> bytes:
    return request_header(API_VERSIONS, version, 1, "conformance")


def asking(name: str = "conformance", version: str = "1.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@conversation
def every_version_lists_the_apis(talk: Talk) -> None:
    talk.ask(asking())


@conversation("3+")
def a_client_must_say_who_it_is(talk: Talk) -> None:
    talk.ask(asking(name=""), E.INVALID_REQUEST)
    talk.ask(asking(version=""), E.INVALID_REQUEST)


@conversation("3+")
def a_client_must_say_who_it_is_in_plain_words(talk: Talk) -> None:
    for name in ("-client", "client-", "two words", "client/1", "ümlaut", "a_b", "."):
        talk.ask(asking(name=name), E.INVALID_REQUEST)
        talk.ask(asking(version=name), E.INVALID_REQUEST)


@conversation(LATEST)
def versions_that_are_not_served_get_the_oldest_answer(talk: Talk) -> None:
    for version in (5, 6, 100, 32767):
        body = header(version) + encode(asking(), 4)
        talk.send_frame(API_VERSIONS, 0, body).answer(E.UNSUPPORTED_VERSION)


@conversation(LATEST)
def a_version_that_is_not_served_is_not_even_read(talk: Talk) -> None:
    body = header(5)
    talk.send_frame(API_VERSIONS, 0, body).answer(E.UNSUPPORTED_VERSION)


@conversation(LATEST)
def negative_versions_get_the_oldest_answer(talk: Talk) -> None:
    body = header(-1)
    talk.send_frame(API_VERSIONS, 0, body).answer(E.UNSUPPORTED_VERSION)


@conversation("3+")
def bytes_behind_the_body_are_left_alone(talk: Talk) -> None:
    body = header(talk.version) + encode(asking(name=""), talk.version)
    talk.send_frame(API_VERSIONS, talk.version, body + b"more").answer(E.INVALID_REQUEST)


@conversation("3+")
def a_body_that_ends_early_closes_the_connection(talk: Talk) -> None:
    body = header(talk.version) + encode(asking(), talk.version)
    talk.send_frame(API_VERSIONS, talk.version, body[:-3]).answer(CLOSED)


@conversation
def a_listener_of_controllers_says_what_it_serves(talk: Talk) -> None:
    talk.controllers().ask(asking())


@conversation("3+")
def a_listener_of_controllers_has_to_be_told_who_asks(talk: Talk) -> None:
    talk.controllers().ask(asking(name=""), E.INVALID_REQUEST)
