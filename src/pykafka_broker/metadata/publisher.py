"""Images of the cluster's metadata, built from committed records only and published one after the other.

    committed batch -> image -> preparation -> subscribers -> watchers

Every part of a node that acts on metadata subscribes, and sees each image once, with the one before it.
Watchers are called after all subscribers. They answer requests, so the next request to this node sees the
changes of an answered one. An error of one is logged and counted, and the others are called. Slow work
(making folders of thousands of new partitions) is done before an image is published, while the node works
with the old image: see `prepare_with`.
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

logger = logging.getLogger("org.apache.kafka.image.loader.MetadataLoader")

#: Called with the old and the new image.
Subscriber = Callable[[ClusterImage, ClusterImage], None]
#: Called with the next image; may return an awaitable.
Preparer = Callable[[ClusterImage], Optional[Awaitable[None]]]
#: Called with the published image, and the offset below which everything has been published.
Watcher = Callable[[ClusterImage, int], None]


class MetadataPublisher:
    """Follows the committed metadata log (the raft host's `MetadataListener`), and publishes its images."""

    def __init__(self, cluster_id: str = "") -> None:
        self.begin(cluster_id)
        self._published_offset = 0
        #: Calls of subscribers and watchers that have failed: a part of this node missed an image.
        self.apply_errors = 0
        #: The offset after the newest replayed record, and the offset after the newest committed image.
        self._taken_in = self._committed = 0
        self._subscribers: list[Subscriber] = []
        self._watchers: list[Watcher] = []
        self._prepare: Preparer = lambda image: None
        #: Committed images that are not published yet, each with the offset after it.
        self._unpublished: deque[tuple[int, ClusterImage]] = deque()
        #: Runs during the preparation for the next image.
        self._preparing: asyncio.Task[None] | None = None
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        #: Everything below this offset is committed; 0 until the quorum's leader tells more.
        self._high_watermark = 0
        self._waiting_for_leader: list[asyncio.Future[None]] = []

    def begin(self, cluster_id: str) -> None:
        """Begin with an empty image of this cluster; nothing has been published before."""
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
        """The offset below which everything has been published."""
        return self._published_offset

    @property
    def high_watermark(self) -> int:
        """The offset below which everything is committed; 0 before a leader is known."""
        return self._high_watermark

    @property
    def is_caught_up(self) -> bool:
        """Whether everything that is known to be committed is published; False before a leader is known."""
        return 0 < self._high_watermark <= self._published_offset

    @property
    def replayed_image(self) -> ClusterImage:
        """The image of all replayed records, published or not, with which a new leader of the log begins."""
        return self._loader.image

    @property
    def in_transaction(self) -> bool:
        """Whether a metadata transaction has begun and not ended in the replayed records."""
        return self._loader.in_transaction

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber(old, new)` whenever an image is published. Returns how to unsubscribe."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher(image, offset)` after all subscribers, in the order of the calls of `watch`."""
        self._watchers.append(watcher)

    def prepare_with(self, preparer: Preparer) -> None:
        """Call `preparer(new)` before an image is published; await what it returns, unless that is None.

        Until then no newer image is published, and requests that wait for one are not answered.
        """
        self._prepare = preparer

    async def published(self, offset: int) -> None:
        """Return when everything below `offset` has been published.

        Raises:
            Exception: the error of a call of `fail` while waiting.
        """
        await self._until(lambda: self._published_offset >= offset)

    async def shows(self, is_shown: Callable[[ClusterImage], bool]) -> None:
        """Return when `is_shown` is true of the newest published image.

        Raises:
            Exception: the error of a call of `fail` while waiting.
        """
        await self._until(lambda: is_shown(self._image))

    async def _until(self, is_reached: Callable[[], bool]) -> None:
        if not is_reached():
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((is_reached, waiter))
            await waiter

    async def caught_up(self) -> None:
        """Return when everything that the quorum has committed is published.

        Without a leader of the quorum that is unknown, so this waits for a leader first.

        Raises:
            Exception: the error of a call of `fail` while waiting.
        """
        if not self._high_watermark:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting_for_leader.append(waiter)
            await waiter
        await self.published(self._high_watermark)

    # -- calls of the raft host ------------------------------------------------------------------------

    def start_over(self, snapshot_id: SnapshotId, records: Iterable[object]) -> None:
        """Start over from a snapshot, which replaces all before; published once known to be committed."""
        loader = self._loader = MetadataLoader(ClusterImage(self._cluster_id))
        # The original offsets of the records are unknown; they were below the snapshot's end.
        last_offset = snapshot_id.end_offset - 1
        for record in records:
            loader.apply((record,), offset=last_offset, epoch=snapshot_id.epoch)
        loader.skip_to(last_offset, snapshot_id.epoch)
        self._taken_in = snapshot_id.end_offset

    def replay(self, batch: MetadataBatch) -> None:
        """Replay a batch; it is published with the next commit."""
        if batch.records:
            self._loader.apply(batch.records, offset=batch.base_offset, epoch=batch.epoch)
        else:
            self._loader.skip_to(batch.next_offset - 1, batch.epoch)
        self._taken_in = batch.next_offset

    def commit(self, batch: MetadataBatch) -> None:
        """Replay a committed batch, and publish its image after the earlier ones."""
        self.replay(batch)
        self._publish_taken_in()

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Everything below `high_watermark` is committed, and has been replayed."""
        self._high_watermark = high_watermark
        if self._committed < self._taken_in:  # a snapshot without a committed record after it
            self._publish_taken_in()
        waiting, self._waiting_for_leader = self._waiting_for_leader, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, error: Exception) -> None:
        """Nothing more will be committed: waiting callers get `error`."""
        waiting = [*self._waiting_for_leader, *(waiter for _, waiter in self._waiting)]
        self._waiting_for_leader, self._waiting = [], []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_exception(error)

    async def close(self) -> None:
        """Return when the image under preparation is published."""
        if self._preparing is not None:
            await self._preparing

    # -- publishing ------------------------------------------------------------------------------------

    def _publish_taken_in(self) -> None:
        """Queue the image of everything replayed, which is committed, and publish it if possible."""
        self._committed = self._taken_in
        self._unpublished.append((self._taken_in, self._loader.image))
        if self._preparing is None:
            self._publish_committed()

    def _publish_committed(self) -> None:
        """Publish the committed images, up to one whose preparation must be awaited."""
        while self._unpublished:
            next_offset, image = self._unpublished[0]
            preparation = self._prepare(image)
            if preparation is not None:
                self._preparing = asyncio.get_running_loop().create_task(self._publish_prepared(preparation))
                return
            self._unpublished.popleft()
            self._publish(image, next_offset)

    async def _publish_prepared(self, preparation: Awaitable[None]) -> None:
        """Publish the first image of the queue after its preparation, then the later ones."""
        try:
            await preparation
        except Exception:
            logger.exception("What the metadata asks for could not be prepared in advance")
        next_offset, image = self._unpublished.popleft()
        self._preparing = None
        self._publish(image, next_offset)
        self._publish_committed()

    def _tell(self, called: Callable[..., None], *arguments: object) -> None:
        """Call a subscriber or a watcher. As in Kafka, its error keeps no other part from the image."""
        try:
            called(*arguments)
        except Exception:
            self.apply_errors += 1
            text = "Unhandled error publishing the new metadata image ending at %d with publisher %s"
            logger.exception(text, self._published_offset - 1, getattr(called, "__qualname__", called))

    def _publish(self, image: ClusterImage, next_offset: int) -> None:
        old, self._image = self._image, image
        self._published_offset = next_offset
        for subscriber in tuple(self._subscribers):
            self._tell(subscriber, old, image)
        for watcher in self._watchers:
            self._tell(watcher, image, next_offset)
        waiting, self._waiting = self._waiting, []
        for is_reached, waiter in waiting:
            if waiter.done():
                continue
            if is_reached():
                waiter.set_result(None)
            else:
                self._waiting.append((is_reached, waiter))
