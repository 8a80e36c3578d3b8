"""Looking coordinators up, of brokers that answer about one key and of those that answer about many."""

from __future__ import annotations

import pytest

from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.core.conversation import Ask, Reply, Step, Wait, drive
from pykafka_broker.client.core.coordinators import TRANSACTION, find_coordinator
from pykafka_broker.client.core.metadata import Brokers
from pykafka_broker.client.core.retries import first_attempt
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

E = ErrorCode
ASKED = Ask(FindCoordinatorRequest(key="g", key_type=0, coordinator_keys=["g"]))
LOADING = FindCoordinatorResponse(error_code=E.COORDINATOR_NOT_AVAILABLE, error_message="loading")
OLD = FindCoordinatorResponse(node_id=2, host="b", port=9093)
NEW = FindCoordinatorResponse(
    coordinators=[Coordinator(key="g", node_id=2, host="b", port=9093, error_code=0)]
)


def looked_up(
    *responses: FindCoordinatorResponse, brokers: Brokers | None = None, key_type: int = 0
) -> tuple[int, list[Step]]:
    """The coordinator, and the steps that led to it."""
    left, steps = list(responses), list[Step]()

    def carry_out(step: Step) -> Reply:
        steps.append(step)
        return Reply(None, step.until_ms) if isinstance(step, Wait) else Reply(left.pop(0), 5)

    looking = find_coordinator(brokers or Brokers(), "g", first_attempt(0, 200), key_type=key_type)
    return drive(looking, carry_out), steps


@pytest.mark.parametrize("response", [OLD, NEW])
def test_the_coordinator_is_found_and_its_address_remembered(response: FindCoordinatorResponse) -> None:
    brokers = Brokers()
    assert looked_up(response, brokers=brokers) == (2, [ASKED])
    assert brokers.addresses == {2: Address("b", 9093)}


def test_the_coordinator_is_where_the_answer_says_also_if_it_was_elsewhere_before() -> None:
    brokers = Brokers()
    brokers.addresses[2] = Address("of-yesterday", 9092)
    looked_up(NEW, brokers=brokers)
    assert brokers.addresses == {2: Address("b", 9093)}


def test_a_coordinator_that_is_not_ready_is_waited_for() -> None:
    assert looked_up(LOADING, NEW) == (2, [ASKED, Wait(100), ASKED])


def test_what_is_wrong_for_good_is_an_error_with_the_words_of_the_broker() -> None:
    refused = FindCoordinatorResponse(error_code=E.INVALID_GROUP_ID, error_message="no such name")
    with pytest.raises(KafkaError) as error:
        looked_up(refused)
    assert (error.value.code, error.value.message) == (E.INVALID_GROUP_ID, "no such name")


def test_what_a_newer_broker_finds_wrong_is_an_error_too() -> None:
    with pytest.raises(KafkaError, match="of the future") as error:
        looked_up(FindCoordinatorResponse(error_code=9_999, error_message="of the future"))
    assert error.value.code is E.UNKNOWN_SERVER_ERROR


def test_the_last_attempt_ends_in_its_error() -> None:
    with pytest.raises(KafkaError, match="loading"):
        looked_up(LOADING, LOADING)


def test_transactions_have_coordinators_of_their_own() -> None:
    _, [asked] = looked_up(NEW, key_type=TRANSACTION)
    assert asked == Ask(FindCoordinatorRequest(key="g", key_type=1, coordinator_keys=["g"]))
