"""Brokers with a replicated partition, and their controller, through faults that a seed chooses.

Messages may be late, lost, or come after their sender has started again. Brokers learn of metadata when they
do, pause, crash and keep their disk, or come back with an empty one; then others in sync have to be there.
Time jumps, so that followers lag. The controller is the real core, without faults of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from pykafka_broker.cluster.image import ClusterImage, PartitionRegistration
from pykafka_broker.controller.core import events as e
from pykafka_broker.controller.core.state import ControllerState
from pykafka_broker.replication.core.events import IsrChangeAnswered
from tests.controller.deciding import NOW_MS, a_cluster, decide, heartbeat, registration, uuid
from tests.simulation.partition.broker import TOPIC, Broker, Fetch, Fetched, IsrWanted, Message
from tests.simulation.partition.laws import Laws
from tests.simulation.violation import Violation

BROKERS = (1, 2, 3)
STEPS = 400
#: Followers send nothing more while so much is on its way.
MOST_MESSAGES = 12


class Answered(NamedTuple):
    """To a broker in one registration: the controller's answer."""

    wanted: IsrWanted
    answer: IsrChangeAnswered


class PartitionCluster:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        #: What has happened, at which time.
        self.story: list[tuple[int, str, object]] = []
        self.now_ms = NOW_MS
        self.ids = 10_000
        self.values = 0
        self.state: ControllerState = a_cluster(*BROKERS, node_id=9)
        min_isr = str(self.random.choice((1, 1, 2)))
        replicas = tuple(self.random.sample(BROKERS, 3))
        topic = e.NewTopic(
            TOPIC, uuid(7), assignments=((0, replicas),), configs=(("min.insync.replicas", min_isr),)
        )
        self._decide(e.CreateTopics((topic,)))
        #: Every image, and which of them each broker has seen.
        self.images: list[ClusterImage] = [self.state.image]
        self.known = dict.fromkeys(BROKERS, 0)
        self.brokers = {broker_id: Broker(broker_id) for broker_id in BROKERS}
        self.wire: list[Message | Answered] = []
        self.laws = Laws()
        self.kinds, self.weights = self._temper()
        for broker in self.brokers.values():
            broker.start(self.state.image.brokers[broker.broker_id].epoch)
            self.wire += broker.learn(self.state.image, self.now_ms)

    def run(self) -> int:
        """Live, and return how many steps it were; raises a Violation that tells the seed's story."""
        try:
            for _ in range(STEPS):
                self._step()
                self.laws.look(self.brokers, self.partition)
        except AssertionError as error:
            failure = f"partition seed {self.seed}: {error}"
            raise Violation("\n".join([failure, *self.transcript, failure])) from error
        return STEPS

    @property
    def transcript(self) -> list[str]:
        """What has happened, in words."""
        return [f"{now_ms} {text} {what}" for now_ms, text, what in self.story]

    @property
    def partition(self) -> PartitionRegistration:
        """As the controller has it."""
        return self.state.image.topics[TOPIC].partitions[0]

    def _step(self) -> None:
        [kind] = self.random.choices(self.kinds, self.weights)
        kind()

    def _temper(self) -> tuple[list[Callable[[], None]], list[float]]:
        """What may happen, and how often it does with this seed."""
        usual: dict[Callable[[], None], float] = {
            self._deliver: 40,
            self._fetch: 25,
            self._produce: 14,
            self._learn: 14,
            self._lose: 3,
            self._time_passes: 4,
            self._ask_again: 6,
            self._checkpoint: 2,
            self._say: 4,
            self._fence: 2,
            self._crash: 1,
            self._start: 4,
            self._lose_disk: 1,
        }
        return list(usual), [weight * self.random.choice((0.5, 1, 1, 2)) for weight in usual.values()]

    def _note(self, text: str, what: object = "") -> None:
        self.story.append((self.now_ms, text, what))

    def _any(self, *, is_up: bool = True) -> Broker | None:
        found = [broker for broker in self.brokers.values() if broker.is_up is is_up]
        return self.random.choice(found) if found else None

    # -- the network -------------------------------------------------------------------------------

    def _deliver(self) -> None:
        if not self.wire:
            return
        message = self.random.choice(self.wire)
        if isinstance(message, IsrWanted):
            # A broker sends its next attempt over the same connection, or after that was closed.
            sender = message.broker_id
            message = next(m for m in self.wire if isinstance(m, IsrWanted) and m.broker_id == sender)
        self.wire.remove(message)
        self._note("arrives:", message)
        if isinstance(message, Fetch):
            broker = self.brokers[message.to]
            if broker.is_up:
                self.wire += broker.serve(message, self.now_ms)
        elif isinstance(message, Fetched):
            broker = self.brokers[message.to]
            if broker.is_up and broker.broker_epoch == message.asked.broker_epoch:
                broker.fetched(message, self.now_ms)
        elif isinstance(message, IsrWanted):
            self._alter_partition(message)
        else:
            wanted, answer = message
            broker = self.brokers[wanted.broker_id]
            if broker.is_up and (broker.broker_epoch, broker.attempts) == (
                wanted.broker_epoch,
                wanted.attempt,
            ):
                self.wire += broker.isr_answered(answer, self.now_ms)

    def _lose(self) -> None:
        if self.wire:
            self._note("is lost:", self.wire.pop(self.random.randrange(len(self.wire))))

    def _alter_partition(self, wanted: IsrWanted) -> None:
        change = wanted.change
        members = tuple(
            e.IsrMember(broker_id, wanted.broker_epoch if broker_id == wanted.broker_id else epoch)
            for broker_id, epoch in change.new_isr
        )
        asked = e.IsrChange(uuid(7), 0, change.leader_epoch, change.partition_epoch, members)
        results = self._decide(e.AlterPartition(wanted.broker_id, wanted.broker_epoch, (asked,)))
        if isinstance(results, e.EventError):
            return  # as a whole: the broker asks again
        [result] = results
        answer = IsrChangeAnswered(change, result.error, result.partition)
        self.wire.append(Answered(wanted, answer))

    # -- brokers -----------------------------------------------------------------------------------

    def _fetch(self) -> None:
        if len(self.wire) < MOST_MESSAGES and (broker := self._any()) is not None:
            self.wire += broker.fetch(self.now_ms)

    def _produce(self) -> None:
        leaders = [broker for broker in self.brokers.values() if broker.leadership is not None]
        if leaders:
            self.values += 1
            broker = self.random.choice(leaders)
            self._note(f"{self.values} is written to broker {broker.broker_id}")
            broker.produce(self.values, self.now_ms)

    def _learn(self) -> None:
        broker = self._any()
        if broker is None or self.known[broker.broker_id] == len(self.images) - 1:
            return
        known = self.random.randint(self.known[broker.broker_id] + 1, len(self.images) - 1)
        self._learn_up_to(broker, known)

    def _learn_up_to(self, broker: Broker, known: int) -> None:
        self.known[broker.broker_id] = known
        image = self.images[known]
        self._note(f"broker {broker.broker_id} learns of", image.topics[TOPIC].partitions[0])
        self.wire += broker.learn(image, self.now_ms)

    def _time_passes(self) -> None:
        self.now_ms += self.random.choice((100, 5_000, 31_000))
        for broker in self.brokers.values():
            if broker.is_up:
                self.wire += broker.look_for_laggards(self.now_ms)

    def _ask_again(self) -> None:
        if (broker := self._any()) is not None:
            self.wire += broker.ask_again()

    def _checkpoint(self) -> None:
        if (broker := self._any()) is not None:
            broker.checkpoint()

    # -- lives -------------------------------------------------------------------------------------

    def _say(self) -> None:
        """A broker sends a heartbeat, which unfences it if it has caught up."""
        broker = self._any()
        if broker is None:
            return
        beat = heartbeat(self.state, broker.broker_id)
        offset = self.images[self.known[broker.broker_id]].offset
        self._decide(beat._replace(broker_epoch=broker.broker_epoch, metadata_offset=offset))

    def _fence(self) -> None:
        """The session of a broker is over, whether it lives or not."""
        broker_id = self.random.choice(BROKERS)
        self._note(f"broker {broker_id} is fenced")
        self._decide(heartbeat(self.state, broker_id, want_fence=True))

    def _crash(self) -> None:
        if (broker := self._any()) is not None:
            self._note(f"broker {broker.broker_id} crashes")
            broker.crash()

    def _start(self) -> None:
        if (broker := self._any(is_up=False)) is not None:
            self._register(broker)

    def _register(self, broker: Broker) -> None:
        self.ids += 1
        self.now_ms += 9_001  # the session of its former life is over
        answer = self._decide(registration(broker.broker_id, incarnation_id=uuid(self.ids)))
        if isinstance(answer, e.EventError):
            return
        self._note(f"broker {broker.broker_id} starts in epoch {answer}")
        broker.start(answer)
        self._learn_up_to(broker, len(self.images) - 1)

    def _lose_disk(self) -> None:
        """A broker comes back with an empty disk; another in sync has everything."""
        broker = self.random.choice(list(self.brokers.values()))
        if not set(self.partition.isr) - {broker.broker_id}:
            return
        self._note(f"broker {broker.broker_id} loses its disk")
        broker.crash()
        broker.log.truncate(0)
        broker.checkpointed_high_watermark = 0
        self._register(broker)
        assert broker.is_up

    def _decide(self, event: e.Event) -> Any:
        before = self.state.image
        self.state, _, answer = decide(self.state, event, self.now_ms)
        if self.state.image is not before and hasattr(self, "images"):
            self.images.append(self.state.image)
        return answer
