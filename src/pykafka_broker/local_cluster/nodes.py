"""The nodes of a cluster that run in this process, and what they know.

Each is a `Broker` over the folder of its node. Answers come from the metadata images that the nodes have
published; if nodes differ, because a change has not reached all of them, there is no answer yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Optional

from pykafka_broker.broker.broker import Broker
from pykafka_broker.cluster.image import ClusterImage, PartitionRegistration
from pykafka_broker.controller.channel import ClusterAdministration
from pykafka_broker.local_cluster.folder import ClusterFolder, checked
from pykafka_broker.local_cluster.waiting import Waiting

IS_OVER = "this cluster has been stopped: make another one"
#: How long a start waits until the other nodes have found that the node was killed.
FENCED_WITHIN_S = 3.0


class Nodes:
    """Starts and stops the nodes of a folder. Event loop only.

    `overrides` are keys that count for all nodes, above what is in their files.
    """

    def __init__(self, folder: ClusterFolder, overrides: Mapping[str, str]) -> None:
        self._folder = folder
        self._overrides = overrides
        self._roles = {node_id: folder.roles(node_id) for node_id in folder.node_ids()}
        #: Where clients reach each node, whether it runs or not.
        self.addresses = {node_id: folder.address(node_id) for node_id in self._roles}
        #: Those that have started and not stopped yet.
        self._started: dict[int, Broker] = {}
        #: Those of them that are not being stopped.
        self._serving: set[int] = set()
        #: Those that were killed and have not started since.
        self._killed: set[int] = set()
        self._starting: set[asyncio.Task[None]] = set()
        self._is_over = False
        self._changing = {node_id: asyncio.Lock() for node_id in self._roles}
        self.waiting = Waiting()

    # -- life
    # -------

    @property
    def node_ids(self) -> tuple[int, ...]:
        """All nodes, in order, whether they run or not."""
        return tuple(self._roles)

    def checked(self, node_ids: Iterable[int]) -> list[int]:
        """These nodes, each once.

        Raises:
            NoSuchNodeError: one of them is not of this cluster.
        """
        return checked(node_ids, self.node_ids)

    @property
    def brokers(self) -> tuple[int, ...]:
        """The nodes that are brokers."""
        return tuple(node_id for node_id, roles in self._roles.items() if "broker" in roles)

    async def start(self, node_ids: Iterable[int]) -> None:
        """Start those of these nodes that are down; return when they serve and all running nodes know it.

        If one cannot start, those that are starting are stopped again.

        Raises:
            LogDirError, StorageFormatError, OSError: as `Broker.start` and `ClusterFolder.format`.
            RuntimeError: all nodes have been stopped.
        """
        try:
            async with asyncio.TaskGroup() as starting:
                for node_id in node_ids:
                    task = starting.create_task(self._start(node_id))
                    self._starting.add(task)
                    task.add_done_callback(self._starting.discard)
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        if self._is_over:
            raise RuntimeError(IS_OVER)
        await self.all_know()

    async def all_know(self) -> None:
        """Return when every serving node has published everything that any of them has published before."""
        newest = max(self._published(), default=0)
        await self.waiting.until(
            lambda: _true(offset >= newest for offset in self._published()), None, lambda: ""
        )

    async def stop(self, node_ids: Iterable[int]) -> None:
        """Stop nodes in good order: brokers hand over their partitions while there are controllers."""
        asked = tuple(node_ids)
        brokers = [node_id for node_id in asked if self._roles[node_id] == ["broker"]]
        await _all(self._end(node_id, Broker.stop) for node_id in brokers)
        await _all(self._end(node_id, Broker.stop) for node_id in asked if node_id not in brokers)

    async def stop_all(self) -> None:
        """Stop all nodes, also those that are starting; none can start again.

        Brokers are fenced while the controllers run, so that the next start need not wait; none of them waits
        for others to take over.
        """
        self._is_over = True
        for task in self._starting:
            task.cancel()
        if self._has_majority():
            await _all(self._started[node_id].hand_over() for node_id in self._serving)
        await _all(self._end(node_id, partial(Broker.stop, hands_over=False)) for node_id in self._roles)

    def _has_majority(self) -> bool:
        controllers = {node_id for node_id, roles in self._roles.items() if "controller" in roles}
        return 2 * len(controllers & self._serving) > len(controllers)

    async def kill(self, node_ids: Sequence[int]) -> None:
        """Stop nodes as `Broker.kill` does."""
        self._killed.update(node_id for node_id in node_ids if node_id in self._serving)
        await _all(self._end(node_id, Broker.kill) for node_id in node_ids)

    async def _start(self, node_id: int) -> None:
        async with self._changing[node_id]:
            if self._is_over:
                raise RuntimeError(IS_OVER)
            if node_id in self._started:
                return
            if node_id in self._killed:
                await self._fenced(node_id)
            self._folder.format([node_id])
            broker = Broker(self._folder.config(node_id, self._overrides))
            await broker.start()
            self._killed.discard(node_id)
            self._started[node_id] = broker
            self._serving.add(node_id)
            broker.node.metadata.watch(self.waiting.news)
            broker.node.raft.watch_leader(self.waiting.news)
            self.waiting.news()

    async def _fenced(self, node_id: int) -> None:
        """Return when a node that was killed is fenced, as far as the others know.

        A process that came back earlier would be taken for the old one until the old session is over.
        """
        if self._has_majority():
            with suppress(TimeoutError):
                await self.waiting.until(lambda: self._is_gone(node_id), FENCED_WITHIN_S, lambda: "")

    async def _end(self, node_id: int, end: Callable[[Broker], Awaitable[None]]) -> None:
        self._serving.discard(node_id)
        async with self._changing[node_id]:
            if (broker := self._started.get(node_id)) is not None:
                await end(broker)
                del self._started[node_id]

    # -- what they know
    # -----------------

    def _is_gone(self, node_id: int) -> Optional[bool]:
        return _true(
            (known := image.brokers.get(node_id)) is None or not known.active for image in self._images()
        )

    def controller(self) -> Optional[int]:
        """The node whose controller decides."""
        for node_id in self._serving:
            role = self._started[node_id].node.role
            if role is not None and role.is_active:
                return node_id
        return None

    def administration(self, node_id: int) -> ClusterAdministration:
        """The administration that the controller of a serving node offers clients."""
        return self._started[node_id].node.administration

    def leader(self, topic: str, partition: int) -> Optional[int]:
        """The broker that leads a partition: it serves, and all nodes know that it leads."""
        known = {
            None if (found := image.partition(topic, partition)) is None else found.leader
            for image in self._images()
        }
        leader = known.pop() if len(known) == 1 else None
        return leader if leader in self._serving else None

    def are_in_sync(self, topic: str | None) -> Optional[bool]:
        """True if all replicas of a topic, or of all topics, serve and are in sync by all images.

        A topic that a node does not know is not in sync; nor is any topic while no node serves.
        """
        images = self._images()
        if not images:
            return None
        return _true(
            found is not None and set(found.isr) == set(found.replicas) <= self._serving
            for image in images
            for found in _partitions(image, topic)
        )

    def lagging(self) -> set[tuple[str, int, int]]:
        """The replicas on brokers that serve that are not in sync by one of the images: topic, partition and
        broker.
        """
        return {
            (name, index, broker_id)
            for image in self._images()
            for name, topic in image.topics.items()
            for index, found in topic.partitions.items()
            for broker_id in (set(found.replicas) & self._serving) - set(found.isr)
        }

    def _published(self) -> list[int]:
        return [self._started[node_id].node.metadata.published_offset for node_id in self._serving]

    def _images(self) -> list[ClusterImage]:
        return [self._started[node_id].node.image for node_id in self._serving]


def _partitions(image: ClusterImage, topic: str | None) -> Iterator[Optional[PartitionRegistration]]:
    """The partitions of a topic, or of all; None for a topic that is unknown."""
    if topic is not None and topic not in image.topics:
        yield None
        return
    for found in image.topics.values() if topic is None else (image.topics[topic],):
        yield from found.partitions.values()


def _true(facts: Iterable[bool]) -> Optional[bool]:
    return all(facts) or None


async def _all(actions: Iterable[Awaitable[None]]) -> None:
    """Do all of these side by side, to the end of each; then raise the first error."""
    for outcome in await asyncio.gather(*actions, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
