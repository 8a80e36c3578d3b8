"""The shell around the Raft machine: it carries out steps in the one order that is safe, and tells the
machine how far the log is on disk.

    persist -> append -> (fsync) -> advance

`_carry_out` is that order. Appends return at once; one worker thread at a time syncs whatever has been
appended by then, so writers that come while a sync runs share the next one (group commit), and only after it
are their records committed. Nothing is appended when nothing happens: Kafka's NoOp records tell followers
that the leader lives, and a quorum of one has none.

Single-threaded: every method is called on the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from pykafka_broker.machine.threads import RunBlocking
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.raft.core import transitions
from pykafka_broker.raft.core.quorum import Voter
from pykafka_broker.raft.core.roles import Leader
from pykafka_broker.raft.core.state import Appended, Event, Flushed, Moment, RaftState, RaftStep
from pykafka_broker.raft.storage import Loaded, RaftStorage


class OtherVotersError(Exception):
    """The log names other voters; electing a leader among several nodes is not served yet."""


class RaftDriver:
    """One replica of the metadata log.

    `run_blocking(job)` runs a job in a worker thread. `on_commit(offset)` is told that everything below
    `offset` is committed. `on_failure(error)` is told once that the log's disk failed: the replica has
    stopped.
    """

    def __init__(
        self,
        storage: RaftStorage,
        local: Voter,
        *,
        now_ms: Callable[[], int],
        run_blocking: RunBlocking,
        on_commit: Callable[[int], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        self.storage = storage
        self._local = local
        self._now_ms = now_ms
        self._run_blocking = run_blocking
        self._on_commit = on_commit
        self._on_failure = on_failure
        self._state: RaftState | None = None
        self._flushed = 0
        self._flushing: asyncio.Task[None] | None = None
        self._failed: Exception | None = None

    @property
    def state(self) -> RaftState:
        """The replica as it is now."""
        assert self._state is not None, "not booted"
        return self._state

    @property
    def epoch(self) -> int:
        """The leader epoch."""
        return self.state.role.epoch

    @property
    def high_watermark(self) -> int | None:
        """Everything below is committed; None while this replica cannot know."""
        role = self.state.role
        return role.high_watermark if isinstance(role, Leader) else None

    def boot(self, loaded: Loaded) -> None:
        """Take up the role that the files give; a quorum of one leads when this returns.

        The sync of `quorum-state` happens here, on the event loop: nothing can be served before it anyway.
        """
        view = loaded.view
        if not view.voters.is_only_voter(self._local.key):
            voters = sorted(view.voters.voters)
            if voters == [self._local.key.node_id]:
                raise OtherVotersError(
                    f"it knows node {voters[0]} by another directory.id than that of meta.properties"
                )
            node_id = self._local.key.node_id
            if not voters:
                raise OtherVotersError(
                    f"node {node_id} finds no voters in its metadata log: name itself in "
                    f"controller.quorum.voters ({node_id}@host:port), as before"
                )
            raise OtherVotersError(
                f"node {node_id} finds the voters {voters} in its metadata log: "
                "it can serve a quorum of itself alone"
            )
        self._carry_out(transitions.boot(self._local, loaded.election, view, self._moment()))

    def append(self, values: Sequence[bytes]) -> int:
        """Append one batch of framed metadata records; returns the log end offset after it."""
        if self._failed is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from self._failed
        if not isinstance(self.state.role, Leader):
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        self.storage.append_metadata(values, epoch=self.epoch, now_ms=self._now_ms())
        return self._appended()

    async def close(self) -> None:
        """Return when everything appended is on disk, or cannot be."""
        while self._flushing is not None:
            await self._flushing

    def _step(self, event: Event) -> None:
        self._carry_out(transitions.step(self.state, event, self._moment()))

    def _moment(self) -> Moment:
        """Now. A quorum of one leaves nothing to chance."""
        return Moment(self._now_ms(), 0.0)

    def _carry_out(self, step: RaftStep) -> None:
        """Persist, append, advance: no step may do one before the one left of it."""
        if step.persist is not None:
            self.storage.write_election_state(step.persist)
        self._state = step.state
        if step.append:
            self.storage.append_control(step.append, epoch=self.epoch, now_ms=self._now_ms())
            self._appended()
        if step.advance is not None:
            self.storage.log.state.advance_high_watermark(step.advance)
            self._on_commit(step.advance)

    def _appended(self) -> int:
        end_offset = self.storage.end_offset
        self._step(Appended(end_offset))
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._flush())
        return end_offset

    async def _flush(self) -> None:
        """Sync until nothing is left to sync."""
        try:
            while self._flushed < (end_offset := self.storage.end_offset):
                await self._run_blocking(self.storage.flush)
                self._flushed = end_offset
                self._step(Flushed(end_offset))
        except (KafkaError, OSError) as error:
            # The content of the disk is unknown now, so nothing may be acknowledged any more.
            self._failed = error
            self._on_failure(error)
        finally:
            self._flushing = None
