"""One connection without a socket: what opens it, which versions it speaks, whose response is whose."""

from __future__ import annotations

import pytest

from pykafka_broker.client.core.connection import MAX_IN_FLIGHT, ConnectionState, Identity, Received
from pykafka_broker.client.core.conversation import Ask, Reply, Step, drive
from pykafka_broker.client.core.frames import request_frame
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.protocol.messages.produce import ProduceRequest
from tests.support.scripted_broker import response_frame, versions

BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
#: The frame of a response is what follows its length.
WITHOUT_LENGTH = 4


def state() -> ConnectionState:
    return ConnectionState("broker:9092", Identity("me", "1.0", kind="test"))


def frame(correlation_id: int, body: bytes) -> bytes:
    return response_frame(correlation_id, body)[WITHOUT_LENGTH:]


def opened(*apis: tuple[int, int, int]) -> ConnectionState:
    """The state of a connection to a broker that serves these APIs."""
    connection = state()

    def answer(step: Step) -> Reply:
        assert isinstance(step, Ask)
        sent = connection.send(step.request, step.version)
        assert step.version is not None
        answer = frame(sent.correlation_id, encode(versions(*apis), step.version))
        return Reply(connection.receive(answer).message, 0)

    drive(connection.opening(), answer)
    return connection


def test_a_connection_is_opened_by_asking_for_the_versions() -> None:
    opening = state().opening()
    request = ApiVersionsRequest(client_software_name="pykafka-broker", client_software_version="1.0")
    assert next(opening) == Ask(request, version=3)
    assert opened((3, 0, 5), (18, 0, 4)).versions == {3: (0, 5), 18: (0, 4)}


def test_an_old_broker_is_asked_again_in_version_0() -> None:
    connection = state()
    sent = []

    def old_broker(step: Step) -> Reply:
        assert isinstance(step, Ask)
        sent.append(step.version)
        error = ErrorCode.UNSUPPORTED_VERSION if step.version else 0
        number = connection.send(step.request, step.version).correlation_id
        # In version 0, whatever the request's version was.
        refused = frame(number, encode(versions((18, 0, 0), error_code=error), 0))
        return Reply(connection.receive(refused).message, 0)

    drive(connection.opening(), old_broker)
    assert sent == [3, 0]
    assert connection.versions == {18: (0, 0)}


def test_a_broker_that_refuses_ends_the_opening() -> None:
    opening = state().opening()
    next(opening)
    with pytest.raises(KafkaError) as error:
        opening.send(Reply(versions(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED), 0))
    assert error.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED


def test_the_newest_version_that_both_sides_know_is_spoken() -> None:
    ours = schema_of(MetadataRequest).versions[-1]
    assert opened((3, 0, 5)).newest_version(MetadataRequest(topics=None)) == 5
    assert opened((3, 0, 99)).newest_version(MetadataRequest(topics=None)) == ours


@pytest.mark.parametrize("apis", [[], [(3, 90, 99)]])
def test_a_request_that_the_broker_does_not_serve_is_refused_before_it_is_sent(
    apis: list[tuple[int, int, int]],
) -> None:
    connection = opened(*apis)
    with pytest.raises(KafkaError) as error:
        connection.send(MetadataRequest(topics=None))
    assert (error.value.code, error.value.message) == (
        ErrorCode.UNSUPPORTED_VERSION,
        "broker:9092 does not serve Metadata in a version this test knows",
    )
    assert connection.in_flight == 0


def test_a_value_that_does_not_fit_its_field_is_refused_before_it_is_sent() -> None:
    connection = state()
    topics = [MetadataRequestTopic(name="x" * 40_000)]
    with pytest.raises(KafkaError, match="Kafka's Metadata cannot say this") as error:
        connection.send(MetadataRequest(topics=topics), 1)
    assert error.value.code is ErrorCode.INVALID_REQUEST
    assert connection.send(BEAT, 0).correlation_id == 1


def test_responses_belong_to_requests_in_the_order_in_which_these_were_sent() -> None:
    connection = state()
    first, second = connection.send(BEAT, 0), connection.send(BEAT, 4)
    assert first == (request_frame(BEAT, 0, 1, "me"), 1, True)
    assert (second.correlation_id, connection.in_flight) == (2, 2)
    loading = HeartbeatResponse(error_code=14)
    assert connection.receive(frame(1, b"\0\x0e")) == Received(1, loading)
    assert connection.receive(frame(2, b"\0" + bytes(4) + b"\0\x0e" + b"\0")) == Received(2, loading)
    assert connection.in_flight == 0


@pytest.mark.parametrize("said", [frame(2, b"\0\0"), frame(99, b""), frame(0, b"\0\0")])
def test_a_response_out_of_turn_is_the_fault_of_the_broker(said: bytes) -> None:
    connection = state()
    connection.send(BEAT, 0)
    connection.send(BEAT, 0)
    with pytest.raises(ProtocolError, match="broker:9092 answered another request than the one asked"):
        connection.receive(said)


def test_a_response_to_no_request_is_the_fault_of_the_broker() -> None:
    with pytest.raises(ProtocolError, match="answered another request"):
        state().receive(frame(1, b"\0\0"))


def test_no_response_is_expected_to_a_produce_request_without_acks() -> None:
    connection = state()
    silent = ProduceRequest(acks=0, timeout_ms=1, topic_data=[])
    assert not connection.send(silent, 9).is_answered
    assert connection.send(BEAT, 0).correlation_id == 2
    assert connection.receive(frame(2, b"\0\0")).message == HeartbeatResponse(error_code=0)


def test_a_broker_that_answers_nothing_is_sent_no_more() -> None:
    connection = state()
    for _ in range(MAX_IN_FLIGHT):
        connection.send(ListGroupsRequest(), 0)
    with pytest.raises(ConnectionError, match="broker:9092 has not answered the last 1000 requests"):
        connection.send(ListGroupsRequest(), 0)


def test_correlation_ids_begin_again_behind_the_largest() -> None:
    connection = state()
    connection._correlation_id = (1 << 31) - 2
    assert [connection.send(BEAT, 0).correlation_id for _ in range(2)] == [(1 << 31) - 1, 1]
