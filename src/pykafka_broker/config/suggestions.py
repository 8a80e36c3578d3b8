"""Suggests the key, or another name, meant by an unknown one: for people, in the log and on the command line.

Answers to clients have Apache Kafka's message only. Two mistakes are recognized: a misspelt key, and a key of
another resource, such as the topic key `retention.ms` in a properties file instead of `log.retention.ms`.
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

#: The least similarity, from 0 to 1, of a name to the suggested one.
LEAST_SIMILARITY = 0.8
#: The most names to compare with; more would take longer than half a second.
MOST_NAMES = 10_000
#: A longer name is no misspelt key, and comparing it would take long.
MOST_CHARACTERS = 100
#: The most names in one line for which a key is suggested; each takes up to 3 ms.
MOST_SUGGESTED = 5

_KEYS = {
    TOPIC_RESOURCE: TOPIC_KEYS,
    BROKER_RESOURCE: (*BROKER_KEYS, *OWN_KEYS),
    CLIENT_METRICS_RESOURCE: CLIENT_METRICS_KEYS,
    GROUP_RESOURCE: GROUP_KEYS,
}


def closest(word: str, words: Iterable[str]) -> str | None:
    """The most similar of `words`; None if none is similar enough."""
    if len(word) > MOST_CHARACTERS:
        return None
    # Takes a millisecond to import, and is needed only after a mistake.
    from difflib import get_close_matches

    found = get_close_matches(word, list(words), n=1, cutoff=LEAST_SIMILARITY)
    return found[0] if found else None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question to append to a sentence; empty if no name is similar."""
    found = closest(name, islice(names, MOST_NAMES))
    return "" if found is None else f" Did you mean {found!r}?"


def suggested_key(name: str, resource_type: int = BROKER_RESOURCE) -> str | None:
    """The key of the resource type that the unknown key `name` may mean; None if none is similar."""
    if resource_type == BROKER_RESOURCE and name.startswith(LISTENER_PREFIX):
        listener, _, rest = name.removeprefix(LISTENER_PREFIX).partition(".")
        meant = suggested_key(rest)
        return None if meant is None else f"{LISTENER_PREFIX}{listener}.{meant}"
    meanings = _meanings(resource_type)
    written = closest(name.strip().lower().replace("_", "."), meanings)
    return None if written is None else meanings[written]


def with_suggestion(name: str, resource_type: int = BROKER_RESOURCE) -> str:
    """`name`, and in brackets the key it may mean."""
    meant = suggested_key(name, resource_type)
    return name if meant is None else f"{name} (did you mean {meant}?)"


def listed(names: Iterable[str]) -> str:
    """Unknown broker keys for a log line, the first `MOST_SUGGESTED` with suggestions."""
    return ", ".join(
        with_suggestion(name) if place < MOST_SUGGESTED else name
        for place, name in enumerate(name or "''" for name in names)
    )


def _meanings(resource_type: int) -> dict[str, str]:
    """Names that may be written, including keys of other resources -> the key of this resource type."""
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
