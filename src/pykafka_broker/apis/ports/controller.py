"""The controller, which decides on metadata changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pykafka_broker.cluster.events import (
        AlterConfigsResult,
        ConfigChange,
        CreatePartitionsResult,
        CreateTopicResult,
        DeleteTopicResult,
        NewConfigs,
        NewPartitions,
        NewTopic,
    )


class Controller(Protocol):
    """Answers come when a change is committed, and this node has applied it.

    `timeout_ms` is the caller's patience: REQUEST_TIMED_OUT after it, though the change may still happen.
    """

    async def create_topics(
        self, topics: Sequence[NewTopic], *, timeout_ms: int, validate_only: bool = False
    ) -> Sequence[CreateTopicResult]: ...

    async def delete_topics(
        self, topics: Sequence[tuple[str | None, bytes]], *, timeout_ms: int
    ) -> Sequence[DeleteTopicResult]: ...

    async def create_partitions(
        self, topics: Sequence[NewPartitions], *, timeout_ms: int, validate_only: bool = False
    ) -> Sequence[CreatePartitionsResult]: ...

    async def incremental_alter_configs(
        self, resources: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> Sequence[AlterConfigsResult]: ...

    async def alter_configs(
        self, resources: Sequence[NewConfigs], *, validate_only: bool = False
    ) -> Sequence[AlterConfigsResult]: ...
