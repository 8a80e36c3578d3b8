"""The metadata of a running cluster, read from its controllers: `Observer` over sockets.

`newest` reads on from the last offset, so that an open shell always shows the newest image. If a controller
is gone, another one is asked.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from pykafka_broker.cli.cluster import COMMAND, Cluster
from pykafka_broker.cli.metadata_shell.observer import Observer, Progress
from pykafka_broker.cli.metadata_shell.tree import View
from pykafka_broker.client.blocking import NEXT_ADDRESS_AFTER_S, BlockingConnection
from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.core.connection import Identity
from pykafka_broker.cluster.image import CorruptMetadataError
from pykafka_broker.log.disk.checkpoints import MalformedFile
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.raft.wire.common import MalformedAnswer

#: The pause between requests while the quorum elects a leader, or a controller is gone.
PAUSE_S = 0.05


class LiveMetadata:
    """Follows the metadata log of a cluster through the controllers at these addresses."""

    def __init__(
        self, controllers: Sequence[Address], timeout_s: float, identity: Identity = COMMAND
    ) -> None:
        self._controllers = controllers
        self._timeout_s = timeout_s
        self._identity = identity
        self._observer = Observer()
        self._connection: BlockingConnection | None = None
        self._address: Address | None = None
        self._tried = 0

    def newest(self) -> View:
        """The metadata with all that is committed now.

        Raises:
            click.ClickException: what the controllers send is damaged.
            ConnectionError: no controller answers in time.
            KafkaError: a controller refuses, or the quorum has no leader (NOT_CONTROLLER).
        """
        deadline = time.monotonic() + self._timeout_s
        try:
            while (progress := self._ask(deadline)) is not Progress.CAUGHT_UP:
                if progress is Progress.WAIT:
                    if time.monotonic() >= deadline:
                        text = "The quorum of controllers has no leader that answers."
                        raise KafkaError(ErrorCode.NOT_CONTROLLER, text)
                    time.sleep(PAUSE_S)
        except (CorruptMetadataError, MalformedAnswer, MalformedFile) as error:
            raise click.ClickException(f"{self._address}: {error}") from None
        return self._observer.replaying.view

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, deadline: float) -> Progress:
        """Send one request, and return what its answer means; if the controller is gone, a pause."""
        if self._connection is None:
            address = self._address or self._controllers[self._tried % len(self._controllers)]
            self._tried += 1
            try:
                self._connection = BlockingConnection(
                    address,
                    self._timeout_s,
                    setup_timeout_s=None if len(self._controllers) == 1 else NEXT_ADDRESS_AFTER_S,
                    identity=self._identity,
                )
            except ConnectionError as error:
                return self._gone(deadline, error)
            self._address = address
        try:
            progress = self._observer.take(self._connection.send(self._observer.request()))
        except ConnectionError as error:
            return self._gone(deadline, error)
        if progress is Progress.ASK_LEADER:
            if self._address == self._observer.leader:
                return Progress.WAIT
            self.close()
            self._address = self._observer.leader
        elif progress is Progress.WAIT:
            # This controller may be cut off from the quorum.
            self.close()
            self._address = None
        return progress

    def _gone(self, deadline: float, error: ConnectionError) -> Progress:
        """The connection is lost, or was not made."""
        self.close()
        self._address = None
        # Before the first answer, raise instead of waiting: no controller may be there at all.
        is_never_there = self._tried >= len(self._controllers) and not self._observer.replaying.next_offset
        if is_never_there or time.monotonic() >= deadline:
            raise error
        return Progress.WAIT


def controllers_of(cluster: Cluster) -> list[Address]:
    """The addresses of the controllers, as brokers know them.

    Raises:
        click.ClickException: the brokers are older than Kafka 3.9, and do not tell them; or none listens.
    """
    from pykafka_broker.client.quorum import describe_quorum

    with cluster.connect() as client:
        answer = describe_quorum(client)
    addresses = [Address(one.host, one.port) for node in answer.nodes for one in node.listeners]
    if answer.nodes and not addresses:
        raise click.ClickException(
            "the controller of this node has no listener of its own: read its files with --folder"
        )
    if not addresses:
        raise click.ClickException(
            "the brokers do not tell where the controllers are: name one with --bootstrap-controller"
        )
    return addresses
