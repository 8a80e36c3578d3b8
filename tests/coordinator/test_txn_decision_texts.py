"""What the coordinator tells about producers of a transactional id: who took over, who was fenced."""

from __future__ import annotations

from pykafka_broker.coordinator.transactions.core.events import Event, InitProducerId, Loaded
from pykafka_broker.coordinator.transactions.core.state import Transactions
from pykafka_broker.coordinator.transactions.decision_texts import CLOSED, SAME_ID, TOO_LONG, decisions
from pykafka_broker.machine.history import Decision, Kind
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.transactions import ID, MINUTE_MS, TransactionWorld


class Told(TransactionWorld):
    """A world that writes down what has been decided."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Decision] = []

    def step(self, event: Event) -> Step[Transactions]:
        step = super().step(event)
        self.told += decisions(self.state, event, step)
        return step


def test_a_producer_that_is_replaced_is_fenced_and_told_so() -> None:
    world = Told()
    first = world.producer()
    world.add(first)
    world.end(first, version=1)
    world.finish()
    assert world.told == []

    second = world.producer()
    assert world.add(first) is ErrorCode.PRODUCER_FENCED

    assert (first, second) == ((1_000, 0), (1_000, 1))
    assert world.told == [
        Decision(
            Kind.PRODUCER,
            (ID, "1000"),
            "A client became the producer of payments, with epoch 1 of producer id 1000. The producer before "
            "it, with epoch 0, is fenced.",
            SAME_ID,
        ),
        Decision(
            Kind.PRODUCER,
            (ID, "1000"),
            "A producer of payments with epoch 0 of producer id 1000 asked for a write and was refused with "
            "PRODUCER_FENCED. The producer is the one with epoch 1 of producer id 1000.",
            CLOSED,
        ),
    ]


def test_a_transaction_that_is_open_for_too_long_is_aborted_and_its_producer_fenced() -> None:
    world = Told()
    world.submit(Loaded(world.now_ms))
    producer = world.producer()
    world.add(producer)

    world.advance(MINUTE_MS + world.config.transaction_abort_timed_out_interval_ms)
    world.finish()
    assert world.add(producer) is ErrorCode.PRODUCER_FENCED

    timed_out, refused = world.told
    assert (timed_out.names, timed_out.remedy) == ((ID, "1000"), TOO_LONG)
    assert timed_out.text == (
        "The transaction of payments was aborted, and its producer with epoch 0 was fenced, because the "
        "transaction was open for longer than its transaction.timeout.ms of 1 min."
    )
    assert "asked for a write and was refused with PRODUCER_FENCED" in refused.text


def test_a_client_that_names_itself_is_in_the_text() -> None:
    world = Told()
    world.producer()
    world.ask(InitProducerId, world.now_ms, ID, MINUTE_MS, client="Client app (User:alice, 10.0.0.5)")

    assert world.told[0].text.startswith("Client app (User:alice, 10.0.0.5) became the producer of payments")
