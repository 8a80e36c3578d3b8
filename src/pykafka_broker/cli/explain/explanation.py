"""An explanation as plain data: whatever shows it, lines, JSON or a page, adds nothing to it."""

from __future__ import annotations

from collections.abc import Callable

from pykafka_broker.system.named_tuple import NamedTuple


class Fact(NamedTuple):
    """A sentence, and what to do next ("" if nothing is wrong). A fact of the present has no times, and
    counts once; one of the history was decided `times` times, first and last at these times. `node_id` is the
    broker that told it, null if Kafka's APIs did.
    """

    text: str
    remedy: str = ""
    node_id: int | None = None
    first_ms: int | None = None
    last_ms: int | None = None
    times: int = 1


class Explanation(NamedTuple):
    """What is so now, and what brokers have decided, the oldest first. `asked_nodes` have told their history;
    `missing` says of which brokers it is not available, and why.
    """

    kind: str
    name: str
    now: list[Fact]
    history: list[Fact]
    asked_nodes: list[int]
    missing: list[str]

    def with_commands(self, completed: Callable[[str], str]) -> Explanation:
        """The same; `completed` adds to the commands that a remedy proposes which cluster they ask."""
        now, history = (
            [fact._replace(remedy=completed(fact.remedy)) for fact in facts]
            for facts in (self.now, self.history)
        )
        return self._replace(now=now, history=history)
