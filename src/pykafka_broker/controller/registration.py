"""The registration of this node's controller (KIP-919), as by Apache Kafka's ControllerRegistrationManager.

The controller asks to be registered while the metadata does not show its present incarnation, if
metadata.version has the records for that. After a failure it asks again, with growing pauses.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from pykafka_broker.cluster.features import CONTROLLER_REGISTRATIONS_SINCE, NODE_FEATURES
from pykafka_broker.cluster.image import ClusterImage, RegisteredEndpoint
from pykafka_broker.controller.channel import ControllerChannel, PublishedImages
from pykafka_broker.controller.core.events import RegisterController
from pykafka_broker.machine.backoff import Backoff
from pykafka_broker.machine.clock import Clock
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.raft.format import random_uuid

logger = logging.getLogger("kafka.server.ControllerRegistrationManager")

BACKOFF = Backoff(first_ms=100, greatest_ms=120_000)


def needs_registration(image: ClusterImage, node_id: int, incarnation_id: bytes) -> bool:
    """Whether the metadata does not show this incarnation, though its metadata.version could."""
    if image.metadata_version < CONTROLLER_REGISTRATIONS_SINCE:
        return False
    registered = image.controllers.get(node_id)
    return registered is None or registered.incarnation_id != incarnation_id


class ControllerRegistrar:
    """Keeps this incarnation of the controller registered, from `start` to `close`. Event loop only."""

    def __init__(
        self,
        channel: ControllerChannel,
        metadata: PublishedImages,
        clock: Clock,
        node_id: int,
        listeners: Mapping[str, RegisteredEndpoint],
    ) -> None:
        self._channel = channel
        self._metadata = metadata
        self._clock = clock
        self._node_id = node_id
        self._listeners = listeners
        #: Identifies this start of the controller.
        self.incarnation_id = random_uuid()
        self._asking: asyncio.Task[None] | None = None
        self._unsubscribe: Callable[[], None] | None = None

    def start(self) -> None:
        """Register now, and again whenever the metadata does not show this controller."""
        self._unsubscribe = self._metadata.subscribe(self._published)
        self._published(self._metadata.image, self._metadata.image)

    async def close(self) -> None:
        """Stop registering."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    def _published(self, _: ClusterImage, image: ClusterImage) -> None:
        if self._asking is None and needs_registration(image, self._node_id, self.incarnation_id):
            self._asking = asyncio.get_running_loop().create_task(self._ask())
            self._asking.add_done_callback(self._asked)

    def _asked(self, _: asyncio.Task[None]) -> None:
        self._asking = None

    async def _ask(self) -> None:
        failures = 0
        while needs_registration(self._metadata.image, self._node_id, self.incarnation_id):
            try:
                await self._channel.ask(
                    RegisterController(self._node_id, self.incarnation_id, self._listeners, NODE_FEATURES)
                )
                failures = 0
            except KafkaError as error:
                logger.info("The active controller could not note where this controller is: %s", error)
                failures += 1
            except Exception:
                logger.exception("The controller could not be registered")
                failures += 1
            # After this pause an accepted registration is in the published metadata.
            await self._clock.sleep(BACKOFF.pause_ms(max(0, failures - 1)))
