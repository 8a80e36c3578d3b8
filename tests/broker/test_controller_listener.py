"""The listener of controllers: who is served on it, how it ends, and what hostile peers can do to it."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import struct
from typing import Any

import pytest

from pykafka_broker.apis import APIS
from pykafka_broker.apis.api import Api
from pykafka_broker.apis.controller_apis import CONTROLLER_APIS
from pykafka_broker.client.core.frames import framed, request_header
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.config.authorizer import STANDARD_AUTHORIZER
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.fields import blank, schema_of
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.protocol.messages.broker_registration import BrokerRegistrationRequest
from pykafka_broker.protocol.messages.describe_acls import DescribeAclsRequest
from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterRequest
from pykafka_broker.protocol.messages.produce import ProduceRequest
from pykafka_broker.testing.clock import settle
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.messages import as_of
from pykafka_broker.testing.processes import free_port
from pykafka_broker.testing.user import User
from tests.support.controllers import combined_home, controller_address, heartbeat, registration, unfenced
from tests.support.hostile import FULL, damaged, join

#: So many damaged frames of each version of each API.
FRAMES = int(os.environ.get("FUZZ_FRAMES", "8"))
PATIENCE_SECONDS = 60
CONTROLLERS = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=2)
ASKING = ApiVersionsRequest(client_software_name="tests", client_software_version="1.0")
VERSIONS = [(api, version) for api in CONTROLLER_APIS for version in schema_of(api.request).served_versions]


async def keys(address: str) -> list[int]:
    async with await User.connect(address) as user:
        return [api.api_key for api in (await user.send(ASKING, 4)).api_keys]


async def test_each_kind_of_listener_serves_and_lists_its_own_apis() -> None:
    home = combined_home({"telemetry.receiver.enable": "true"})
    async with home.running(), await User.connect(controller_address(home.broker)) as controllers:
        assert await keys(home.broker.bootstrap_servers) == [api.key for api in APIS]
        assert await keys(controller_address(home.broker)) == [api.key for api in CONTROLLER_APIS]
        controllers.write(ProduceRequest(acks=1, timeout_ms=1, topic_data=[]), 7)
        assert await controllers.is_closed()
        async with await User.connect(home.broker.bootstrap_servers) as user:
            user.write(registration(cluster_id="any"), 4)
            assert await user.is_closed()


async def test_brokers_and_their_clients_do_not_see_the_listener_of_controllers() -> None:
    home = combined_home()
    async with home.running() as user:
        assert set(home.broker.node.image.brokers[1].listeners) == {"PLAINTEXT"}
        [broker] = (await user.metadata()).brokers
        assert (
            f"{broker.host}:{broker.port}" == home.broker.bootstrap_servers != controller_address(home.broker)
        )


async def test_a_listener_of_controllers_stays_when_the_listeners_of_brokers_are_changed() -> None:
    protocols = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECOND:PLAINTEXT"
    home = combined_home({"listener.security.protocol.map": protocols})
    async with home.running() as user:
        before = controller_address(home.broker)
        others = "CONTROLLER://127.0.0.1:1,PLAINTEXT://127.0.0.1:0,SECOND://127.0.0.1:0"
        await user.alter_broker(1, listeners=others)
        assert controller_address(home.broker) == before
        assert await keys(before)


def is_listening(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


async def test_a_listener_that_is_not_to_start_early_waits_for_the_acls() -> None:
    """The other voter does not come, so that there is no metadata to read; LATE opens with it."""
    port, late = free_port(), free_port()
    home = combined_home(
        {
            "listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port},LATE://127.0.0.1:{late}",
            "controller.listener.names": "CONTROLLER,LATE",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,LATE:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "early.start.listeners": "CONTROLLER",
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:ANONYMOUS",
            "controller.quorum.voters": f"1@127.0.0.1:{port}",
        }
    )
    del home.overrides["controller.quorum.bootstrap.servers"]
    async with home.running():
        assert await keys(f"127.0.0.1:{port}") == await keys(f"127.0.0.1:{late}")

    home.overrides["controller.quorum.voters"] += ",2@127.0.0.1:1"
    start = asyncio.ensure_future(home.new_broker().start())
    await until(lambda: is_listening(late))
    async with await User.connect(f"127.0.0.1:{late}") as user:
        user.write(ASKING, 4)
        assert await keys(f"127.0.0.1:{port}")
        waiting = asyncio.ensure_future(user.read_frame())
        await settle()
        assert not (waiting.done() or start.done())
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start
        with pytest.raises(ConnectionError):
            await waiting


async def test_an_address_that_is_taken_keeps_the_node_from_starting_and_nothing_is_left() -> None:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    home = combined_home({"listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}"})
    async with server:
        with pytest.raises(OSError, match="failed to bind"):
            await home.new_broker().start()
    async with home.running():
        assert controller_address(home.broker) == f"127.0.0.1:{port}"


async def test_a_stop_waits_for_another_broker_over_the_listener_of_controllers() -> None:
    """The other broker has to say that it knows who leads now, while this broker is about to stop."""
    home = combined_home()
    async with home.new_broker() as broker, await User.connect(controller_address(broker)) as controllers:
        epoch = await unfenced(controllers, home)
        async with await User.connect(broker.bootstrap_servers) as user:
            await user.create_topic("orders", partitions=2)
        stops = asyncio.Event()

        def published(_: ClusterImage, new: ClusterImage) -> None:
            if new.brokers[1].in_controlled_shutdown:
                stops.set()

        broker.node.metadata.subscribe(published)
        stop = asyncio.ensure_future(broker.stop())
        async with asyncio.timeout(PATIENCE_SECONDS):
            await stops.wait()
        offset = broker.node.image.offset
        answer = await controllers.send(heartbeat(epoch, offset), 2)
        assert (answer.error_code, answer.is_fenced) == (ErrorCode.NONE, False)
        await home.clock.pass_time(2_000)
        await stop
        assert await controllers.is_closed()
        assert broker.node.image.brokers[1].fenced


# --- hostile peers ------------------------------------------------------------------------------------


def header(api_key: int, version: int) -> bytes:
    return request_header(api_key, version, 7, "hostile")


def any_header(api_key: int, version: int) -> bytes:
    """The header of a request that may not exist."""
    return struct.pack(">hhih", api_key, version, 7, -1)


async def talk(home: Home, data: bytes) -> bytes:
    """Send `data` and no more; all that the node says before it closes the connection."""
    host, _, port = controller_address(home.broker).rpartition(":")
    async with asyncio.timeout(PATIENCE_SECONDS):
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(data)
            writer.write_eof()
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()


def hostile_frames() -> list[bytes]:
    """Damaged in their body, in the header, or in their size; in a random but always the same order."""
    chance = random.Random(14)
    frames = []
    for api, version in VERSIONS:
        head = header(api.key, version)
        cases = [data for _, data in damaged(FULL[api.request, version], values=True)]
        frames += [framed(head + body) for body in chance.sample(cases, min(FRAMES, len(cases)))]
        spoilt_head = bytearray(head)
        spoilt_head[chance.randrange(4, len(head))] = chance.randrange(256)
        whole = join(FULL[api.request, version])
        frames.append(framed(bytes(spoilt_head) + whole))
        frames.append(struct.pack(">i", len(head) + len(whole) + 9) + head + whole)
    frames += [struct.pack(">i", size) + b"junk" for size in (-(2**31), -1, 0, 1, 3, 100 << 20, 2**31 - 1)]
    frames += [framed(any_header(key, version)) for key in range(-1, 95) for version in (-1, 0, 99)]
    frames += [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\x00", b""]
    chance.shuffle(frames)
    return frames


async def test_hostile_frames_close_at_most_their_own_connection() -> None:
    home = combined_home()
    async with (
        home.running() as user,
        await User.connect(controller_address(home.broker)) as controllers,
    ):
        epoch = await unfenced(controllers, home)
        for frame in hostile_frames():
            await talk(home, frame)

        answer = await controllers.send(heartbeat(epoch, epoch, want_fence=True), 2)
        assert answer.error_code in (ErrorCode.NONE, ErrorCode.STALE_BROKER_EPOCH)
        assert (await controllers.send(CONTROLLERS, 2)).controller_id == 1
        await user.create_topic("orders")
        await leave(home)


async def leave(home: Home) -> None:
    """Fence every other broker, so that this node's broker does not wait for them when it stops."""
    async with await User.connect(controller_address(home.broker)) as controllers:
        for broker in home.broker.node.image.brokers.values():
            if broker.broker_id != 1 and not broker.fenced:
                await controllers.send(
                    heartbeat(broker.epoch, broker.epoch, broker.broker_id, want_fence=True), 2
                )


@pytest.mark.parametrize(
    ("api", "version"),
    [(api, version) for api, version in VERSIONS if api.request is not DescribeAclsRequest],
    ids=lambda one: getattr(one, "name", f"v{one}"),
)
async def test_a_request_in_which_everything_is_empty_is_answered(api: Api[Any], version: int) -> None:
    """As CVE-2026-83525 did to Apache Kafka's controller, with a FetchSnapshot without topics."""
    home = combined_home()
    async with home.running(), await User.connect(controller_address(home.broker)) as controllers:
        await controllers.send(as_of(blank(api.request), version), version)

        assert (await controllers.send(CONTROLLERS, 2)).controller_id == 1


@pytest.mark.parametrize("version", schema_of(DescribeAclsRequest).served_versions)
async def test_a_filter_of_acls_in_which_everything_is_empty_closes_its_connection(version: int) -> None:
    """Its numbers must not be 0. As by Apache Kafka, its connection is closed, and no other."""
    home = combined_home()
    async with home.running(), await User.connect(controller_address(home.broker)) as healthy:
        async with await User.connect(controller_address(home.broker)) as controllers:
            with pytest.raises(ConnectionError):
                await controllers.send(as_of(blank(DescribeAclsRequest), version), version)

        assert (await healthy.send(CONTROLLERS, 2)).controller_id == 1


def test_the_registration_of_a_broker_is_for_controllers_alone() -> None:
    assert schema_of(BrokerRegistrationRequest).listeners == frozenset({"controller"})
