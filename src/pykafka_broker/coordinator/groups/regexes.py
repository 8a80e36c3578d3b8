"""Matches the regular expressions of a group against all topics, off the event loop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from pykafka_broker.coordinator.groups.core.consumer.regexes import matching_topics
from pykafka_broker.coordinator.groups.core.consumer.turn import ResolveRegexes
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.machine.threads import RunBlocking

logger = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")


#: (principal, client's host, topics) -> those of the topics that the client may describe.
DescribableTopics = Callable[[str, str, Collection[str]], Collection[str]]


async def resolve(
    work: ResolveRegexes, topics: TopicDirectory, run_blocking: RunBlocking, describable: DescribableTopics
) -> tuple[tuple[str, frozenset[str]], ...] | None:
    """The topics that match each expression, as (expression, topics); None if the search failed."""
    names = list(topics.names())
    try:
        resolved: tuple[tuple[str, frozenset[str]], ...] = await run_blocking(
            lambda: matching_topics(work.regexes, names)
        )
    except Exception:
        logger.exception("The regular expressions of group %s could not be resolved", work.group_id)
        return None
    matched = frozenset().union(*(found for _, found in resolved))
    seen = frozenset(describable(work.principal, work.client_host, matched))
    return resolved if seen == matched else tuple((regex, found & seen) for regex, found in resolved)
