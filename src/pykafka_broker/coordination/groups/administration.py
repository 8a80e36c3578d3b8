"""What administrators ask: which groups there are, what they are like, and to forget them."""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.coordination.groups.group_shards import GroupShards
from pykafka_broker.coordination.shards import as_answered, let_others_run
from pykafka_broker.coordinator.group import events
from pykafka_broker.coordinator.group.events import DescribedConsumerGroup, DescribedGroup, ListedGroup
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


class Administration:
    """The requests of administrators."""

    def __init__(self, shards: GroupShards) -> None:
        self._shards = shards

    async def list(
        self, *, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> tuple[ErrorCode, tuple[ListedGroup, ...]]:
        """ListGroups: the groups coordinated here. While a partition loads, the list would not be true."""
        wanted_states, wanted_types = tuple(states), tuple(types)
        listed: tuple[ListedGroup, ...] = ()
        try:
            shards = self._shards.all_loaded()
        except KafkaError as error:
            return error.code, ()
        for shard in shards:
            try:
                listed += await shard.ask(lambda token: events.ListGroups(token, wanted_states, wanted_types))
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_COORDINATOR:
                    return as_answered(error).code, ()
        return ErrorCode.NONE, listed

    async def describe(self, group_id: str, *, version: int) -> DescribedGroup:
        """DescribeGroups, for one classic group."""
        return await self._shards.answer(
            group_id,
            lambda token: events.DescribeGroup(token, version, group_id),
            refused=lambda error: DescribedGroup(error.code, group_id),
        )

    async def describe_consumer_group(self, group_id: str) -> DescribedConsumerGroup:
        """ConsumerGroupDescribe, for one consumer group."""
        if not group_id:
            return DescribedConsumerGroup(ErrorCode.INVALID_GROUP_ID, group_id)
        return await self._shards.answer(
            group_id,
            lambda token: events.DescribeConsumerGroup(token, group_id),
            refused=lambda error: DescribedConsumerGroup(error.code, group_id, error.message),
        )

    async def delete(self, group_id: str) -> ErrorCode:
        """DeleteGroups, for one group."""
        error = await self._shards.answer(
            group_id,
            lambda token: events.DeleteGroup(token, group_id),
            refused=lambda error: error.code,
        )
        await let_others_run()  # a request may name thousands of groups
        return error
