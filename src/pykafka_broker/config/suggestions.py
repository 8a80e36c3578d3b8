"""Suggests the key, or another name, meant by an unknown one: for people, in the log and on the command line.

Over the wire an unknown key is refused in Apache Kafka's words alone. Two mistakes are looked for: a name
that is almost a key, and a key of another resource, as `retention.ms` (of topics) in a properties file, where
it is `log.retention.ms`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from pykafka_broker.config.broker import BROKER, BROKER_KEYS, OWN_KEYS
from pykafka_broker.config.client_metrics import CLIENT_METRICS_KEYS
from pykafka_broker.config.group import GROUP_KEYS
from pykafka_broker.config.resources import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from pykafka_broker.config.settings import LISTENER_PREFIX
from pykafka_broker.config.topic import BROKER_SYNONYMS, TOPIC_KEYS

#: The similarity of two names, from 0 to 1, from which one is taken for the other.
LEAST_SIMILARITY = 0.8
#: Names looked at for another name; comparing with more would take longer than half a second.
MOST_NAMES = 10_000
#: A longer name is none of a key misspelt. Looking for it would take the longer, the longer it is.
MOST_CHARACTERS = 100
#: Names in one line for which a key is suggested; looking for each takes up to 3 ms.
MOST_SUGGESTED = 5

_KEYS = {
    TOPIC_RESOURCE: TOPIC_KEYS,
    BROKER_RESOURCE: (*BROKER_KEYS, *OWN_KEYS),
    CLIENT_METRICS_RESOURCE: CLIENT_METRICS_KEYS,
    GROUP_RESOURCE: GROUP_KEYS,
}


def closest(word: str, words: Iterable[str]) -> str | None:
    """The one of `words` that is most like `word`, if any is like it."""
    if len(word) > MOST_CHARACTERS:
        return None
    # Takes a millisecond to import, and is wanted after a mistake only.
    from difflib import get_close_matches

    found = get_close_matches(word, list(words), n=1, cutoff=LEAST_SIMILARITY)
    return found[0] if found else None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question to stand behind a sentence; empty if nothing is like the name."""
    found = closest(name, islice(names, MOST_NAMES))
    return "" if found is None else f" Did you mean {found!r}?"


def suggested_key(name: str, resource_type: int = BROKER_RESOURCE) -> str | None:
    """The key of a resource type of the protocol that the unknown key `name` may stand for."""
    if resource_type == BROKER_RESOURCE and name.startswith(LISTENER_PREFIX):
        listener, _, rest = name.removeprefix(LISTENER_PREFIX).partition(".")
        meant = suggested_key(rest)
        return None if meant is None else f"{LISTENER_PREFIX}{listener}.{meant}"
    meanings = _meanings(resource_type)
    written = closest(name.strip().lower().replace("_", "."), meanings)
    return None if written is None else meanings[written]


def with_suggestion(name: str, resource_type: int = BROKER_RESOURCE) -> str:
    """`name`, and in brackets the key it may stand for."""
    meant = suggested_key(name, resource_type)
    return name if meant is None else f"{name} (did you mean {meant}?)"


def listed(names: Iterable[str]) -> str:
    """Unknown broker keys, for a line of the log, the first few with the keys that they may stand for."""
    return ", ".join(
        with_suggestion(name) if place < MOST_SUGGESTED else name
        for place, name in enumerate(name or "''" for name in names)
    )


def _meanings(resource_type: int) -> dict[str, str]:
    """Names that may be written, keys of other resources among them -> the key of the resource type meant."""
    meanings = {key.name: key.name for key in _KEYS.get(resource_type, ()) if not key.internal}
    if resource_type == TOPIC_RESOURCE:
        others = {broker: topic for topic, synonyms in BROKER_SYNONYMS.items() for broker, _ in synonyms}
    elif resource_type == BROKER_RESOURCE:
        others = {topic: synonyms[0][0] for topic, synonyms in BROKER_SYNONYMS.items()}
        others |= {key.name: name for key in GROUP_KEYS if (name := f"group.{key.name}") in BROKER}
    elif resource_type == GROUP_RESOURCE:
        others = {f"group.{key.name}": key.name for key in GROUP_KEYS}
    else:
        others = {}
    return {**others, **meanings}
