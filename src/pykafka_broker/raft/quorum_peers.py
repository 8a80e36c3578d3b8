"""The connections of a replica of the metadata log to the others: the `Peers` of its driver.

There is one connection for each address, made for the first request, and again after an error or its end. If
a request fails, the core gets no answer, and asks again after a pause.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pykafka_broker.client.aio import AsyncConnection, close_connecting, connect
from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.core.connection import SOFTWARE_NAME, Identity
from pykafka_broker.machine.clock import Clock
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError, error_of
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykafka_broker.raft.core.messages import (
    AddVoter,
    Answer,
    AskVersions,
    BeginQuorumEpoch,
    Current,
    EndQuorumEpoch,
    Fetch,
    FetchSnapshot,
    Refused,
    RemoveVoter,
    Request,
    UpdateVoter,
    Versions,
    Vote,
    VoteAnswer,
)
from pykafka_broker.raft.core.state import Send
from pykafka_broker.raft.wire import (
    add_raft_voter,
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from pykafka_broker.raft.wire.common import MalformedAnswer, NotAvailable, Scope
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.ordered_set import OrderedSet
from pykafka_broker.system.repeated_lines import RepeatedLines

if TYPE_CHECKING:
    from pykafka_broker.client.core.connection import ClientSecurity


logger = logging.getLogger(__name__)

KRAFT_VERSION = "kraft.version"
#: The first version of Vote that knows pre-votes.
PRE_VOTE_VERSION = 2


_VERSIONS = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version="unknown")


class PeerSettings(NamedTuple):
    """`fetch_max_bytes` is `controller.quorum.fetch.max.bytes`."""

    node_id: int
    scope: Scope
    fetch_max_bytes: int = 1 << 20
    request_timeout_ms: int = 2_000
    security: ClientSecurity | None = None


class Traffic(NamedTuple):
    """The traffic of a replica's requests to others, and of the responses."""

    requests: int
    responses: int
    sent_bytes: int
    received_bytes: int


class QuorumPeers:
    """Event loop only."""

    def __init__(self, settings: PeerSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        #: By address; some may still be being made.
        self._connections: dict[Address, asyncio.Task[AsyncConnection]] = {}
        self._requests: OrderedSet[asyncio.Task[None]] = OrderedSet()
        self._sent = 0
        self._answered = 0
        #: The bytes on connections that have ended.
        self._sent_bytes_before = 0
        self._received_bytes_before = 0
        self._lines = RepeatedLines(logger, clock.now_ms)

    def send(self, send: Send, answered: Callable[[Answer | None], None]) -> None:
        """Send a request; `answered` gets the answer, or None if none comes in time."""
        task = asyncio.get_running_loop().create_task(self._ask(send, answered))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    @property
    def traffic(self) -> Traffic:
        """All requests and responses so far."""
        open_ones = [one.result() for one in self._connections.values() if _is_made(one)]
        return Traffic(
            self._sent,
            self._answered,
            self._sent_bytes_before + sum([one.sent_bytes for one in open_ones]),
            self._received_bytes_before + sum([one.received_bytes for one in open_ones]),
        )

    async def close(self) -> None:
        """Give up all requests, and close the connections."""
        requests = tuple(self._requests)
        for task in requests:
            task.cancel()
        await asyncio.gather(*requests, return_exceptions=True)
        for address in tuple(self._connections):
            await self._drop(address)

    async def _ask(self, send: Send, answered: Callable[[Answer | None], None]) -> None:
        address = Address(*send.to.address)
        answer: Answer | None = None
        try:
            connection = await self._connection(address)
            answer = await self._exchange(connection, send.request)
        except ConnectionRefusedError as error:
            logger.debug("Nothing listens at %s: %s", address, error)
            await self._drop(address)
            answer = Refused()
        except (OSError, ProtocolError, NotAvailable) as error:
            logger.debug("No answer of %s: %s", address, error)
            await self._drop(address)
        except (KafkaError, MalformedAnswer) as error:
            self._lines.log(
                logging.WARNING, "useless", str(address), f"{address} gives no answer of use: {error}"
            )
            await self._drop(address)
        except Exception as error:
            self._lines.log(
                logging.ERROR, type(error).__name__, str(address), f"Failed to ask {address}", error
            )
            await self._drop(address)
        answered(answer)

    async def _connection(self, address: Address) -> AsyncConnection:
        connecting = self._connections.get(address)
        if connecting is None or _has_ended(connecting):
            if connecting is not None:
                self._count(connecting)
            settings = self._settings
            identity = Identity(f"raft-client-{settings.node_id}", kind="replica", security=settings.security)
            timeout_ms = settings.request_timeout_ms
            connecting = self._connections[address] = asyncio.get_running_loop().create_task(
                connect(address, identity=identity, clock=self._clock, timeout_ms=timeout_ms)
            )
        return await asyncio.shield(connecting)

    def _count(self, ended: asyncio.Task[AsyncConnection]) -> None:
        if _is_made(ended):
            self._sent_bytes_before += ended.result().sent_bytes
            self._received_bytes_before += ended.result().received_bytes

    async def _drop(self, address: Address) -> None:
        connecting = self._connections.pop(address, None)
        if connecting is not None:
            self._count(connecting)
            await close_connecting(connecting)

    async def _exchange(self, connection: AsyncConnection, request: Request) -> Answer:
        """Send a request and read the response.

        Raises:
            OSError, ProtocolError: the connection has ended, or nothing came in time.
            KafkaError: the other node does not know this request.
            MalformedAnswer: the response is unusable.
        """
        scope = self._settings.scope
        match request:
            case Fetch():
                asked = fetch.request(request, scope, self._settings.fetch_max_bytes)
                return fetch.read_response(await self._send(connection, asked), scope)
            case Vote():
                return await self._ask_for_vote(connection, request)
            case BeginQuorumEpoch():
                begun = await self._send(connection, begin_quorum_epoch.request(request, scope))
                return begin_quorum_epoch.read_response(begun, scope)
            case EndQuorumEpoch():
                ended = await self._send(connection, end_quorum_epoch.request(request, scope))
                return end_quorum_epoch.read_response(ended, scope)
            case FetchSnapshot():
                part = await self._send(connection, fetch_snapshot.request(request, scope))
                return fetch_snapshot.read_response(part, scope)
            case UpdateVoter():
                updated = await self._send(connection, update_raft_voter.request(request, scope))
                return update_raft_voter.read_response(updated, scope)
            case AddVoter():
                added = await self._send(connection, add_raft_voter.request(request, scope))
                return add_raft_voter.read_response(added)
            case RemoveVoter():
                removed = await self._send(connection, remove_raft_voter.request(request, scope))
                return remove_raft_voter.read_response(removed)
            case AskVersions():
                return _kraft_versions(await self._send(connection, _VERSIONS))

    async def _send(self, connection: AsyncConnection, request: object) -> Any:
        self._sent += 1
        response = await connection.send(request, timeout_ms=self._settings.request_timeout_ms)
        self._answered += 1
        return response

    async def _ask_for_vote(self, connection: AsyncConnection, request: Vote) -> VoteAnswer:
        asked = vote.request(request, self._settings.scope)
        if request.pre_vote and connection.newest_version(asked) < PRE_VOTE_VERSION:
            # A voter without KIP-996 would take the request for a real vote.
            return VoteAnswer(ErrorCode.UNSUPPORTED_VERSION, Current(request.epoch))
        return vote.read_response(await self._send(connection, asked), self._settings.scope)


def _has_ended(connecting: asyncio.Task[AsyncConnection]) -> bool:
    """Whether the connection was made and has closed; the node may have restarted since."""
    return (
        connecting.done()
        and not connecting.cancelled()
        and connecting.exception() is None
        and connecting.result().is_closed
    )


def _kraft_versions(response: ApiVersionsResponse) -> Versions:
    """The levels of kraft.version that a node supports."""
    for feature in response.supported_features:
        if feature.name == KRAFT_VERSION:
            return Versions(ErrorCode.NONE, (feature.min_version, feature.max_version))
    return Versions(error_of(response.error_code))


def _is_made(connecting: asyncio.Task[AsyncConnection]) -> bool:
    return connecting.done() and not connecting.cancelled() and connecting.exception() is None
