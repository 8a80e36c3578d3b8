"""Whether streams groups of KIP-1071 are served, and the topics of a topology; used by these groups' APIs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from pykafka_broker.cluster.features import STREAMS_VERSION

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


class NamedTopic(Protocol):
    """A topic in a topology."""

    @property
    def name(self) -> str: ...


class TopicsOfSubtopology(Protocol):
    """A subtopology in a request or in an answer."""

    @property
    def source_topics(self) -> Iterable[str]: ...

    @property
    def repartition_sink_topics(self) -> Iterable[str]: ...

    @property
    def repartition_source_topics(self) -> Iterable[NamedTopic]: ...

    @property
    def state_changelog_topics(self) -> Iterable[NamedTopic]: ...


def serves_streams_groups(ctx: RequestContext) -> bool:
    """Whether the streams protocol is enabled."""
    protocols = ctx.node.configs.current["group.coordinator.rebalance.protocols"]
    return ctx.node.metadata.image.features.get(STREAMS_VERSION, 0) >= 1 and "streams" in protocols


def topics_of(subtopologies: Iterable[TopicsOfSubtopology]) -> list[str]:
    """The names of all topics, each once, in the order of Apache Kafka's checks."""
    names: dict[str, None] = {}
    for part in subtopologies:
        names |= dict.fromkeys(part.source_topics)
        names |= dict.fromkeys(part.repartition_sink_topics)
        names |= dict.fromkeys(topic.name for topic in part.repartition_source_topics)
        names |= dict.fromkeys(topic.name for topic in part.state_changelog_topics)
    return list(names)
