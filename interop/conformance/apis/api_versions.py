"""ApiVersions: what a broker can do, asked before anything else is known of it."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest


@conversation
def every_version_lists_the_apis(talk: Talk) -> None:
    talk.ask(ApiVersionsRequest(client_software_name="conformance", client_software_version="1.0"))


@conversation("3+")
def a_client_must_say_who_it_is(talk: Talk) -> None:
    talk.ask(ApiVersionsRequest(client_software_name="", client_software_version="1.0"), E.INVALID_REQUEST)
