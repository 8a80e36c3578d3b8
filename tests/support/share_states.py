"""Share coordinators of a cluster, as the group coordinator asks them, over a few lists."""

from __future__ import annotations

from pykafka_broker.coordinator.share.core.events import Refusal, StateResult, SummaryResult
from pykafka_broker.protocol.topic_partition import SharePartitionKey


class ShareStatesInMemory:
    """Keeps the start offset of each share partition; those that are `refused` stay as they are."""

    def __init__(self) -> None:
        self.start_offsets: dict[SharePartitionKey, int] = {}
        self.state_epochs: dict[SharePartitionKey, int] = {}
        self.refused: dict[SharePartitionKey, Refusal] = {}

    async def initialize(self, key: SharePartitionKey, *, state_epoch: int, start_offset: int) -> StateResult:
        if key not in self.refused:
            self.start_offsets[key] = start_offset
            self.state_epochs[key] = state_epoch
        return StateResult(self.refused.get(key))

    async def delete(self, key: SharePartitionKey) -> StateResult:
        if key not in self.refused:
            self.start_offsets.pop(key, None)
        return StateResult(self.refused.get(key))

    async def read_summary(self, key: SharePartitionKey) -> SummaryResult:
        if key in self.refused:
            return SummaryResult(self.refused[key])
        start_offset = self.start_offsets.get(key, -1)
        complete = -1 if start_offset == -1 else 0
        return SummaryResult(None, self.state_epochs.get(key, 0), 0, start_offset, complete)
