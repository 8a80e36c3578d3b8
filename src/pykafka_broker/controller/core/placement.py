"""The placement of the replicas of new partitions: striped over racks and brokers, as in Kafka.

Racks take turns, and so do the brokers within a rack. The first replica, the preferred leader, is always on
an unfenced broker. A follower is placed on a fenced broker only if its rack has no unfenced broker left. The
start of the stripes depends on a seed, so that many small topics spread evenly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pykafka_broker.cluster.image import BrokerRegistration
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


def place_replicas(
    brokers: Iterable[BrokerRegistration], partitions: int, replication_factor: int, seed: int
) -> list[tuple[int, ...]]:
    """The replicas of each of `partitions` new partitions, preferred leader first.

    Raises KafkaError (INVALID_REPLICATION_FACTOR) with Kafka's reason.
    """
    usable = [broker for broker in brokers if not _is_stopping(broker) and not _is_cordoned(broker)]
    if replication_factor <= 0:
        raise _refused(
            f"Invalid replication factor {replication_factor}: the replication factor must be positive."
        )
    if all(broker.fenced for broker in usable):
        raise _refused("All brokers are currently fenced.")
    if replication_factor > len(usable):
        raise _refused(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(usable)} broker(s) are registered or some brokers have all their log directories cordoned."
        )
    if len(usable) == 1:
        return [(usable[0].broker_id,)] * partitions
    stripes = _Stripes(usable, seed)
    return [stripes.place(replication_factor) for _ in range(partitions)]


def _is_stopping(broker: BrokerRegistration) -> bool:
    """Whether the broker is in controlled shutdown; a fenced one has finished it and may come back."""
    return broker.in_controlled_shutdown and not broker.fenced


def _is_cordoned(broker: BrokerRegistration) -> bool:
    """Whether every directory of the broker is closed for new replicas (KIP-1066)."""
    cordoned = broker.cordoned_directories or ()
    return bool(broker.directories) and all(directory in cordoned for directory in broker.directories)


def _refused(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)


#: Whether a broker has a rack, and its name. All brokers without a rack form one rack, the first.
_Rack = tuple[bool, str]


def _rack_of(broker: BrokerRegistration) -> _Rack:
    return broker.rack is not None, broker.rack or ""


class _Ring:
    """Brokers in an order whose start moves on by one each round."""

    __slots__ = ("_brokers", "_offset", "_round", "_taken")

    def __init__(self, brokers: list[int], random: Iterator[int]) -> None:
        self._brokers = brokers
        self._offset = next(random) % len(brokers) if brokers else 0
        self._round = 0
        self._taken = 0

    def next(self, round_number: int) -> int | None:
        """The next broker of this round, None when each has had its turn."""
        if not self._brokers:
            return None
        if self._round != round_number:
            self._round = round_number
            self._taken = 0
            self._offset = (self._offset + 1) % len(self._brokers)
        if self._taken == len(self._brokers):
            return None
        broker = self._brokers[(self._taken + self._offset) % len(self._brokers)]
        self._taken += 1
        return broker

    def shuffle(self, random: Iterator[int]) -> None:
        _shuffle(self._brokers, random)


class _Stripes:
    """The racks, and the rack whose turn it is."""

    __slots__ = ("_fenced", "_offset", "_racks", "_random", "_round", "_unfenced", "_unfenced_count")

    def __init__(self, brokers: list[BrokerRegistration], seed: int) -> None:
        self._random = _numbers(seed)
        self._racks = sorted({_rack_of(broker) for broker in brokers})
        ordered = sorted(brokers, key=lambda broker: broker.broker_id)
        self._unfenced = {rack: self._ring(ordered, rack, fenced=False) for rack in self._racks}
        self._fenced = {rack: self._ring(ordered, rack, fenced=True) for rack in self._racks}
        self._unfenced_count = sum(not broker.fenced for broker in brokers)
        self._offset = next(self._random) % len(self._racks)
        self._round = 0

    def _ring(self, brokers: list[BrokerRegistration], rack: _Rack, *, fenced: bool) -> _Ring:
        ids = [b.broker_id for b in brokers if _rack_of(b) == rack and b.fenced == fenced]
        return _Ring(ids, self._random)

    def place(self, replication_factor: int) -> tuple[int, ...]:
        if self._round == self._unfenced_count > 1:
            self._shuffle()
        racks = len(self._racks)
        self._offset %= racks
        leader_rack = self._offset
        while (leader := self._unfenced[self._racks[leader_rack]].next(self._round)) is None:
            leader_rack = (leader_rack + 1) % racks
        replicas = [leader]
        skip: int | None = leader_rack
        rack = self._offset
        while len(replicas) < replication_factor:
            if rack == skip:
                # The leader is in this rack: skip it once.
                skip = None
            else:
                name = self._racks[rack]
                broker = self._unfenced[name].next(self._round)
                if broker is None:
                    broker = self._fenced[name].next(self._round)
                if broker is not None:
                    replicas.append(broker)
            rack = (rack + 1) % racks
        self._round += 1
        self._offset += 1
        return tuple(replicas)

    def _shuffle(self) -> None:
        """Change the order once every unfenced broker has led, so that replica sets do not repeat."""
        _shuffle(self._racks, self._random)
        for rings in (self._unfenced, self._fenced):
            for ring in rings.values():
                ring.shuffle(self._random)
        self._round = 0


def _numbers(seed: int) -> Iterator[int]:
    """Random numbers from a seed (splitmix64), so that a repeated decision gives the same placement."""
    mask = (1 << 64) - 1
    state = seed & mask
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
        yield mixed ^ (mixed >> 31)


def _shuffle(items: list[_Rack] | list[int], random: Iterator[int]) -> None:
    for last in range(len(items) - 1, 0, -1):
        other = next(random) % (last + 1)
        items[last], items[other] = items[other], items[last]  # type: ignore[assignment]
