"""Images of the cluster's metadata, built from committed records only and shown one after the other.

    committed batch -> image -> prepared for -> published to subscribers -> told to watchers

Every part of a node that acts on metadata subscribes, and sees each image once, with the one before it.
Watchers come after all subscribers: they answer requests, so a client that asks this node next sees the
changes of its request. Work that takes long (making folders of thousands of new partitions) is done before an
image is published, while the node goes on with the image it has: see `prepare_with`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Optional

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.cluster.loader import MetadataLoader
from pykafka_broker.metadata.batch import MetadataBatch
from pykafka_broker.raft.core.log_view import SnapshotId

logger = logging.getLogger(__name__)

#: Is given the image before and the new one.
Subscriber = Callable[[ClusterImage, ClusterImage], None]
#: Is given the image to come, and may return something to await.
Preparer = Callable[[ClusterImage], Optional[Awaitable[None]]]
#: Is given the published image, and the offset below which everything has been published.
Watcher = Callable[[ClusterImage, int], None]


class MetadataPublisher:
    """Follows the committed metadata log (the `MetadataListener` of a raft host), and shows its images."""

    def __init__(self, cluster_id: str = "") -> None:
        self.begin(cluster_id)
        self._published_offset = 0
        #: The offset after the newest record taken in, and that after the newest image to be published.
        self._taken_in = self._committed = 0
        self._subscribers: list[Subscriber] = []
        self._watchers: list[Watcher] = []
        self._prepare: Preparer = lambda image: None
        #: Images that are committed, each with the offset after it.
        self._unpublished: deque[tuple[int, ClusterImage]] = deque()
        #: Runs while the next image is prepared for.
        self._preparing: asyncio.Task[None] | None = None
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        #: Everything below is committed; 0 until the quorum has a leader that knows more.
        self._high_watermark = 0
        self._waiting_for_leader: list[asyncio.Future[None]] = []

    def begin(self, cluster_id: str) -> None:
        """Begin with an image of this cluster, whose id was not known before; nothing is published yet."""
        self._cluster_id = cluster_id
        self._loader = MetadataLoader(ClusterImage(cluster_id))
        self._image = ClusterImage(cluster_id)

    # -- reading ---------------------------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        """The newest published metadata."""
        return self._image

    @property
    def published_offset(self) -> int:
        """Everything below has been published."""
        return self._published_offset

    @property
    def replayed_image(self) -> ClusterImage:
        """The image of all records taken in, published or not, with which a new leader of the log begins."""
        return self._loader.image

    @property
    def in_transaction(self) -> bool:
        """Whether a metadata transaction has begun and not ended in the records taken in."""
        return self._loader.in_transaction

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber(old, new)` whenever an image is published. Returns how to stop that."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher(image, offset)` after all subscribers, in the order in which watchers came."""
        self._watchers.append(watcher)

    def prepare_with(self, preparer: Preparer) -> None:
        """Call `preparer(new)` before an image is published; if it returns something to await, await that.

        Meanwhile nothing newer is published, and requests that wait for it are not answered.
        """
        self._prepare = preparer

    async def published(self, offset: int) -> None:
        """Return when everything below `offset` has been published.

        Raises:
            Exception: the error that `fail` was told meanwhile.
        """
        await self._until(lambda: self._published_offset >= offset)

    async def shows(self, is_shown: Callable[[ClusterImage], bool]) -> None:
        """Return when the newest image that has been published is such a one.

        Raises:
            Exception: the error that `fail` was told meanwhile.
        """
        await self._until(lambda: is_shown(self._image))

    async def _until(self, is_reached: Callable[[], bool]) -> None:
        if not is_reached():
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((is_reached, waiter))
            await waiter

    async def caught_up(self) -> None:
        """Return when everything has been published that the quorum has committed.

        Before the quorum has a leader, that is not known, and this waits for one.

        Raises:
            Exception: the error that `fail` was told meanwhile.
        """
        if not self._high_watermark:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting_for_leader.append(waiter)
            await waiter
        await self.published(self._high_watermark)

    # -- calls of the raft host ------------------------------------------------------------------------

    def start_over(self, snapshot_id: SnapshotId, records: Iterable[object]) -> None:
        """Start over from a snapshot, which replaces all that came before; it is published once it is known
        to be committed.
        """
        loader = self._loader = MetadataLoader(ClusterImage(self._cluster_id))
        # Where each record once lay is not known any more: it was below the snapshot's end.
        last_offset = snapshot_id.end_offset - 1
        for record in records:
            loader.apply((record,), offset=last_offset, epoch=snapshot_id.epoch)
        loader.skip_to(last_offset, snapshot_id.epoch)
        self._taken_in = snapshot_id.end_offset

    def replay(self, batch: MetadataBatch) -> None:
        """Take in a batch, to be shown with the next commit."""
        if batch.records:
            self._loader.apply(batch.records, offset=batch.base_offset, epoch=batch.epoch)
        else:
            self._loader.skip_to(batch.next_offset - 1, batch.epoch)
        self._taken_in = batch.next_offset

    def commit(self, batch: MetadataBatch) -> None:
        """Take in a committed batch, and publish the image with it when those before it are published."""
        self.replay(batch)
        self._publish_taken_in()

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Everything below is committed, and was taken in."""
        self._high_watermark = high_watermark
        if self._committed < self._taken_in:  # a snapshot, after which nothing has been committed yet
            self._publish_taken_in()
        waiting, self._waiting_for_leader = self._waiting_for_leader, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, error: Exception) -> None:
        """Nothing more will be committed: those who wait for it get `error`."""
        waiting = [*self._waiting_for_leader, *(waiter for _, waiter in self._waiting)]
        self._waiting_for_leader, self._waiting = [], []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_exception(error)

    async def close(self) -> None:
        """Return when the image that is being prepared for is published."""
        if self._preparing is not None:
            await self._preparing

    # -- publishing ------------------------------------------------------------------------------------

    def _publish_taken_in(self) -> None:
        """All that has been taken in is committed."""
        self._committed = self._taken_in
        self._unpublished.append((self._taken_in, self._loader.image))
        if self._preparing is None:
            self._publish_committed()

    def _publish_committed(self) -> None:
        """Publish the committed images, up to one that takes long to prepare for."""
        while self._unpublished:
            next_offset, image = self._unpublished[0]
            preparation = self._prepare(image)
            if preparation is not None:
                self._preparing = asyncio.get_running_loop().create_task(self._publish_prepared(preparation))
                return
            self._unpublished.popleft()
            self._publish(image, next_offset)

    async def _publish_prepared(self, preparation: Awaitable[None]) -> None:
        """Publish the image at the head of the queue when it has been prepared for, then the later ones."""
        try:
            await preparation
        except Exception:
            logger.exception("What the metadata asks for could not be prepared in advance")
        next_offset, image = self._unpublished.popleft()
        self._preparing = None
        try:
            self._publish(image, next_offset)
        finally:
            self._publish_committed()

    def _publish(self, image: ClusterImage, next_offset: int) -> None:
        old, self._image = self._image, image
        self._published_offset = next_offset
        for subscriber in tuple(self._subscribers):
            subscriber(old, image)
        for watcher in self._watchers:
            watcher(image, next_offset)
        waiting, self._waiting = self._waiting, []
        for is_reached, waiter in waiting:
            if waiter.done():
                continue
            if is_reached():
                waiter.set_result(None)
            else:
                self._waiting.append((is_reached, waiter))
