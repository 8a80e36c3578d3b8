"""The group coordinator as the broker's API handlers see it: what is asked of members, of offsets and by
administrators, over one shard per partition of `__consumer_offsets`.

Before the topic exists nobody is a group's coordinator: NOT_COORDINATOR, except that no groups can be listed
without an error.

Nothing here raises for what a client did: errors are `ErrorCode`s in the results. The log is reached through
`append`; the owner says with `on_high_watermark` what is committed.
"""

from __future__ import annotations

from collections.abc import Callable

from pykafka_broker.coordination.batches import Append, MaxBatchBytes
from pykafka_broker.coordination.groups.administration import Administration
from pykafka_broker.coordination.groups.group_shards import GroupShards
from pykafka_broker.coordination.groups.membership import Membership
from pykafka_broker.coordination.groups.offsets import Offsets
from pykafka_broker.coordination.groups.regexes import RunBlocking, run_at_once
from pykafka_broker.coordinator.group.config import GroupCoordinatorConfig
from pykafka_broker.machine.scheduler import Scheduler


class GroupService(GroupShards):
    """Everything that can be asked of the groups coordinated here.

    `new_uuid` makes the text of a random UUID. `run_blocking` runs a function where it does not hold up the
    event loop.
    """

    def __init__(
        self,
        *,
        config: GroupCoordinatorConfig,
        append: Append,
        max_batch_bytes: MaxBatchBytes,
        scheduler: Scheduler,
        new_uuid: Callable[[], str],
        run_blocking: RunBlocking = run_at_once,
    ) -> None:
        super().__init__(
            config=config,
            append=append,
            max_batch_bytes=max_batch_bytes,
            scheduler=scheduler,
            run_blocking=run_blocking,
        )
        self.members = Membership(self, new_uuid)
        self.offsets = Offsets(self)
        self.administration = Administration(self)
