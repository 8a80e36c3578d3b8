"""What three controllers of Apache Kafka 4.3.1 and two of its brokers said to each other, byte for byte.

`frames/<api>.txt` holds exchanges of nodes that were elected, killed, stopped, emptied, moved, removed and
added; `python -m interop.frames.nodes_of_apache` captures them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykafka_broker.protocol.compile import encode
from pykafka_broker.raft.core.messages import Current
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
from pykafka_broker.raft.wire.common import Scope
from tests.support.frames import Frame, frames_of

FRAMES = [
    frame for path in sorted((Path(__file__).parent / "frames").glob("*.txt")) for frame in frames_of(path)
]
SCOPE = Scope("4L6g3nShT-eMCtK--X86sw")

#: What a message becomes that is read into the core and written again.
Again = Callable[[Any], Any]
MAX_BYTES = 1 << 20
REQUESTS: dict[str, Again] = {
    "add_raft_voter": lambda m: add_raft_voter.request(
        core(add_raft_voter.read_request, m, SCOPE.cluster_id), SCOPE
    ),
    "begin_quorum_epoch": lambda m: begin_quorum_epoch.request(
        core(begin_quorum_epoch.read_request, m), SCOPE
    ),
    "end_quorum_epoch": lambda m: end_quorum_epoch.request(core(end_quorum_epoch.read_request, m), SCOPE),
    "fetch": lambda m: fetch.request(core(fetch.read_request, m), SCOPE, MAX_BYTES),
    "fetch_snapshot": lambda m: fetch_snapshot.request(core(fetch_snapshot.read_request, m), SCOPE),
    "remove_raft_voter": lambda m: remove_raft_voter.request(
        core(remove_raft_voter.read_request, m, SCOPE.cluster_id), SCOPE
    ),
    "update_raft_voter": lambda m: update_raft_voter.request(
        core(update_raft_voter.read_request, m, SCOPE, Current(1)), SCOPE
    ),
    "vote": lambda m: vote.request(core(vote.read_request, m), SCOPE),
}
ANSWERS: dict[str, Again] = {
    "add_raft_voter": lambda m: add_raft_voter.response(add_raft_voter.read_response(m)),
    "begin_quorum_epoch": lambda m: begin_quorum_epoch.response(
        core(begin_quorum_epoch.read_response, m), SCOPE
    ),
    "end_quorum_epoch": lambda m: end_quorum_epoch.response(core(end_quorum_epoch.read_response, m), SCOPE),
    "fetch": lambda m: fetch.response(
        core(fetch.read_response, m), SCOPE, m.responses[0].partitions[0].records
    ),
    "remove_raft_voter": lambda m: remove_raft_voter.response(remove_raft_voter.read_response(m)),
    "update_raft_voter": lambda m: update_raft_voter.response(
        core(update_raft_voter.read_response, m), SCOPE
    ),
    "vote": lambda m: vote.response(core(vote.read_response, m), SCOPE),
}


def core(read: Callable[..., Any], message: Any, known: object = SCOPE, *more: object) -> Any:
    return read(message, known, *more)


def numbered(frames: list[Frame]) -> list[Any]:
    """The frames as cases of a test."""
    return [pytest.param(frame, id=f"{frame}-{number}") for number, frame in enumerate(frames)]


@pytest.mark.parametrize("frame", numbered(FRAMES))
def test_a_captured_frame_decodes_and_encodes_to_the_same_bytes(frame: Frame) -> None:
    _, header_version, _ = frame.codec()
    header, body = frame.decoded()

    assert encode(header, header_version) + encode(body, frame.version) == frame.data


def test_every_rpc_of_the_quorum_was_captured() -> None:
    assert set(REQUESTS) | set(ANSWERS) <= {frame.api for frame in FRAMES}


@pytest.mark.parametrize(
    "frame",
    numbered([f for f in FRAMES if f.api in (REQUESTS if f.what == "request" else ANSWERS)]),
)
def test_the_core_reads_it_and_would_say_the_same_in_the_same_bytes(frame: Frame) -> None:
    _, body = frame.decoded()
    again = (REQUESTS if frame.what == "request" else ANSWERS)[frame.api](body)

    assert encode(again, frame.version) == encode(body, frame.version)
