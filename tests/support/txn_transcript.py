"""Transcripts of transactions: what is asked stands at the margin, what follows from it is indented.

    init a [holds]               a initialises the transactional id; with `holds` it says what it holds
    add a t-0 t-1                a adds partitions
    commit a | abort a           a ends its transaction; `commit a again` repeats the last end
    markers                      every marker on its way is written
    reload                       another broker takes over
    at 30000                     time passes; timers fire

    epochs a 32765               as after that many transactions of a

a, b, ... are producer instances of one transactional id; options are `version=1` (else 2) and `timeout=`.
"""

from __future__ import annotations

from pykafka_broker.coordinator.transactions.core import events
from pykafka_broker.coordinator.transactions.core.events import ProducerIdResult
from pykafka_broker.coordinator.transactions.core.state import TransactionMetadata
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.transactions import START_MS, TransactionWorld, partitions


class Teller:
    """Runs commands against a `TransactionWorld` and tells what happened."""

    def __init__(self) -> None:
        self.world = TransactionWorld()
        self.world.submit(events.Loaded(self.world.now_ms))
        #: The id and epoch that each producer instance holds, and held when it last ended a transaction.
        self.holds: dict[str, tuple[int, int]] = {}
        self.ended_with: dict[str, tuple[int, int]] = {}

    def tell(self, line: str) -> list[str]:
        command, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        told = len(self.world.log), len(self.world.markers)
        answer = getattr(self, f"do_{command}")(names, options)
        lines = [] if answer is None else [f"answer: {answer}"]
        lines += [f"write {self.shown(record.metadata)}" for record in self.world.log[told[0] :]]
        if command not in ("markers", "reload"):
            lines += [
                f"markers: {'commit' if marker.commit else 'abort'} epoch={marker.producer_epoch} "
                + " ".join(f"{topic}-{partition}" for topic, partition in sorted(marker.partitions))
                for marker in self.world.markers[told[1] :]
            ]
        return lines

    def shown(self, metadata: TransactionMetadata | None) -> str:
        if metadata is None:
            return "nothing: the id is forgotten"
        parts = [
            metadata.state.display_name,
            f"id={metadata.producer_id}",
            f"epoch={metadata.producer_epoch}",
        ]
        if metadata.next_producer_id != -1:
            parts.append(f"next={metadata.next_producer_id}")
        parts += [f"{topic}-{partition}" for topic, partition in sorted(metadata.partitions)]
        return " ".join(parts)

    def result(self, name: str, result: ProducerIdResult) -> str:
        if result.error is not ErrorCode.NONE:
            return result.error.name
        if result.producer_id != -1:
            self.holds[name] = result.producer_id, result.producer_epoch
            return f"id={result.producer_id} epoch={result.producer_epoch}"
        return "NONE"

    # ---- commands ----

    def do_init(self, names: list[str], options: dict[str, str]) -> str:
        name = names[0]
        holds = self.holds[name] if "holds" in names else (-1, -1)
        timeout_ms = int(options.get("timeout", "60000"))
        return self.result(name, self.world.init(holds, timeout_ms=timeout_ms))

    def do_add(self, names: list[str], options: dict[str, str]) -> str:
        version = int(options.get("version", "2"))
        return self.world.add(self.holds[names[0]], *partitions(names[1:]), version=version).name

    def do_commit(self, names: list[str], options: dict[str, str]) -> str:
        return self.end(names, options, commit=True)

    def do_abort(self, names: list[str], options: dict[str, str]) -> str:
        return self.end(names, options, commit=False)

    def end(self, names: list[str], options: dict[str, str], *, commit: bool) -> str:
        name = names[0]
        producer = self.ended_with[name] if "again" in names else self.holds[name]
        self.ended_with[name] = producer
        version = int(options.get("version", "2"))
        return self.result(name, self.world.end(producer, commit=commit, version=version))

    def do_markers(self, names: list[str], options: dict[str, str]) -> None:
        self.world.finish()

    def do_reload(self, names: list[str], options: dict[str, str]) -> str:
        self.world = self.world.reload()
        return f"{len(self.world.markers)} decisions to carry out"

    def do_at(self, names: list[str], options: dict[str, str]) -> None:
        self.world.advance(START_MS + int(names[0]) - self.world.now_ms)

    def do_epochs(self, names: list[str], options: dict[str, str]) -> None:
        """As after so many transactions."""
        [metadata] = self.world.state.by_id.values()
        used = metadata._replace(producer_epoch=int(names[1]))
        self.world.state = self.world.state.with_metadata(used)
        self.holds[names[0]] = used.producer_id, used.producer_epoch
