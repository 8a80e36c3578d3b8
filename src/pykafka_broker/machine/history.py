"""What a node has decided lately, and why: for `pykafka-broker explain`.

Shells write here what their cores have decided: a member that timed out, a producer that was fenced, a
replica that lags, a request that was denied or throttled. They read it from the state before and after an
event, from the event, and from the effects; nothing is counted or kept for explanations alone. A request that
goes well writes nothing. A decision takes 11 us, a repeated one 3.5 us, its words about as long again
(CPython 3.11, with two cores that others used, too).

There is a ring for each kind, so that denials do not push out what happened to groups. A decision that is
repeated, such as the denials of one client, stays one entry with a count. A ring that is full forgets the
entry that was repeated least recently. Nothing survives a restart.

Kafka has no API for this, and none is invented: of the present, `explain` asks Kafka's APIs. The entries have
principals, client ids and addresses, and the listeners that serve them over HTTP (`metrics.listeners`) know
no users. So only listeners on loopback addresses serve them (`metrics/http_connection.py`), to those who are
on the machine of the node. The console that a broker serves knows its users, and shows them to those who may
describe the configs of the broker.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from itertools import islice

from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import MOST_CHARACTERS as TEXT_CHARACTERS
from pykafka_broker.system.wording import cut

#: The limits of the ring of each kind. A text, and a name, is cut to `wording.MOST_CHARACTERS` characters.
MOST_ENTRIES = 10_000
MOST_CHARACTERS = 4 * 1024 * 1024
#: The most entries of an answer; the newest are in it.
MOST_TOLD = 100


class Kind(StrEnum):
    """What a decision is about, as `explain` names it."""

    GROUP = "group"
    PRODUCER = "producer"
    PARTITION = "partition"
    REQUEST = "request"


class Decision(NamedTuple):
    """A decision: a sentence with the actor first. `remedy` says what to do next, "" if nothing is wrong.

    Decisions with the same names and text are repetitions of each other.
    """

    kind: Kind
    #: The names under which it is found: a group, a transactional id, a producer id, a partition such as
    #: `orders-0`, a client id, a principal.
    names: tuple[str, ...]
    text: str
    remedy: str = ""
    #: What the newest repetition adds to the text, such as the time to wait.
    measured: str = ""
    #: Who has done what in it, for those who count that over several decisions: `("shop at ::1", "joined")`.
    deeds: tuple[tuple[str, str], ...] = ()


#: Takes a decision that has just been made.
Tell = Callable[[Decision], None]


def unheard(decision: Decision) -> None:
    """The `Tell` of a part without a history."""


class Entry(NamedTuple):
    """A decision in the history, and when it was made (Unix time in milliseconds)."""

    first_ms: int
    last_ms: int
    times: int
    text: str
    remedy: str
    deeds: tuple[tuple[str, str], ...] = ()


class _Ring:
    """The decisions of one kind: the least recently repeated one first."""

    __slots__ = ("_characters", "_entries", "_most_characters", "_most_entries")

    def __init__(self, most_entries: int, most_characters: int) -> None:
        self._most_entries = most_entries
        self._most_characters = most_characters
        self._characters = 0
        #: (names, text) -> the entry; its text without the part that is in the key.
        self._entries: dict[tuple[tuple[str, ...], str], Entry] = {}

    def add(self, decision: Decision, now_ms: int) -> None:
        names = decision.names
        if any(len(name) > TEXT_CHARACTERS for name in names):
            names = tuple(cut(name) for name in names)
        key = names, cut(decision.text)
        before = self._entries.pop(key, None)
        first_ms, times = now_ms, 1
        if before is None:
            self._characters += _size(key)
        else:
            first_ms, times = before.first_ms, before.times + 1
            self._characters -= _size_of(before)
        entry = Entry(first_ms, now_ms, times, cut(decision.measured), cut(decision.remedy), decision.deeds)
        self._characters += _size_of(entry)
        self._entries[key] = entry
        while len(self._entries) > self._most_entries or self._characters > self._most_characters:
            oldest = next(iter(self._entries))
            gone = self._entries.pop(oldest)
            self._characters -= _size(oldest) + _size_of(gone)

    def about(self, name: str, most: int) -> list[Entry]:
        """The newest entries, at most `most`: the oldest of them first."""
        name = cut(name)
        found = (
            entry._replace(text=text + entry.text)
            for (names, text), entry in reversed(self._entries.items())
            if name in names
        )
        return [*islice(found, most)][::-1]


def _size(key: tuple[tuple[str, ...], str]) -> int:
    names, text = key
    return len(text) + sum(map(len, names))


def _size_of(entry: Entry) -> int:
    return len(entry.text) + len(entry.remedy) + sum(len(who) + len(did) for who, did in entry.deeds)


class History:
    """The newest decisions of a node. Event loop only."""

    def __init__(
        self,
        now_ms: Callable[[], int],
        most_entries: int = MOST_ENTRIES,
        most_characters: int = MOST_CHARACTERS,
    ) -> None:
        self._now_ms = now_ms
        self._rings = {kind: _Ring(most_entries, most_characters) for kind in Kind}

    def tell(self, decision: Decision) -> None:
        """Remember a decision that has just been made."""
        self._rings[decision.kind].add(decision, self._now_ms())

    def about(self, kind: Kind, name: str, most: int = MOST_TOLD) -> list[Entry]:
        """The newest decisions on a thing, at most `most`: the oldest first."""
        return self._rings[kind].about(name, most)
