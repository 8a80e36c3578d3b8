"""The `quorum-state` file: one JSON object on one line, as Apache Kafka writes it.

    {"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}

Version 1 is for kraft.version 1. Version 0, for kraft.version 0, has no directory ids, and has fields that
Kafka writes but does not read:

    {"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],
     "data_version":0}
"""

from __future__ import annotations

from collections.abc import Sequence

from pykafka_broker.log.disk.checkpoints import MalformedFile, uuid_bytes
from pykafka_broker.log.disk.files import FileSystem, join
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.raft.core.quorum import UNKNOWN_DIRECTORY
from pykafka_broker.raft.core.state import ElectionState

QUORUM_STATE = "quorum-state"


def read_quorum_state(files: FileSystem, directory: str) -> ElectionState:
    """The election state on disk; that of a new replica if there is no file.

    Raises:
        MalformedFile: the file cannot be read.
        OSError: the disk failed.
    """
    try:
        data = files.read_file(join(directory, QUORUM_STATE))
    except FileNotFoundError:
        return ElectionState()
    # The previous process may have been killed between renaming the file and syncing the directory.
    files.sync_directory(directory)
    return decode_quorum_state(data)


def write_quorum_state(
    files: FileSystem, directory: str, state: ElectionState, static_voters: Sequence[int] = ()
) -> None:
    """Replace the file, as `encode_quorum_state` writes it; on disk when this returns."""
    files.replace_file(join(directory, QUORUM_STATE), encode_quorum_state(state, static_voters), sync=True)


def encode_quorum_state(state: ElectionState, static_voters: Sequence[int] = ()) -> bytes:
    """The content of the file; `static_voters` are those of a quorum with kraft.version 0."""
    if static_voters:
        voters = ",".join(f'{{"voterId":{voter}}}' for voter in static_voters)
        return (
            f'{{"clusterId":"","leaderId":{state.leader_id},"leaderEpoch":{state.leader_epoch},'
            f'"votedId":{state.voted_id},"appliedOffset":0,"currentVoters":[{voters}],"data_version":0}}'
        ).encode()
    return (
        f'{{"leaderId":{state.leader_id},"leaderEpoch":{state.leader_epoch},"votedId":{state.voted_id},'
        f'"votedDirectoryId":"{uuid_text(state.voted_directory_id)}","data_version":1}}'
    ).encode()


def decode_quorum_state(data: bytes) -> ElectionState:
    """The election state in the file; MalformedFile when it holds none."""
    import json

    try:
        values = json.loads(data)
        version = values["data_version"]
        if version not in (0, 1):
            raise MalformedFile(f"quorum-state has the unknown version {version!r}")
        directory = values["votedDirectoryId"] if version else ""
        return ElectionState(
            int(values["leaderEpoch"]),
            int(values["leaderId"]),
            int(values.get("votedId", -1)),
            uuid_bytes(directory) if directory else UNKNOWN_DIRECTORY,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise MalformedFile(f"quorum-state cannot be read: {error!r}") from None
