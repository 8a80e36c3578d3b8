"""Reading as a member of a share group (KIP-932): records are acquired, printed, and acknowledged.

The member is like any other of the group: it sends heartbeats, and reads the partitions that the coordinator
assigns to it. All printed records are acknowledged in the same way. Each fetch carries the acknowledgements
of the records printed before it. The request that ends the session carries the last ones; the broker then
releases acquired records that were not printed.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

from pykafka_broker.cli.consume.reader import MAX_WAIT_MS, OF_LOST_TOPICS, PARTITION_MAX_BYTES, ReadRecord
from pykafka_broker.cli.interrupts import Interrupts
from pykafka_broker.cli.suggestions import known_topic, same_topic
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.metadata import leaders_of
from pykafka_broker.client.core.share_group import (
    BATCH_OPTIMIZED,
    NO_SESSION,
    RECORD_LIMIT,
    Acknowledgement,
    Acquired,
    Membership,
    ShareSession,
)
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.fields import uuid_text

#: The most records that one fetch acquires: the default of `max.poll.records` in Kafka's consumers.
MAX_RECORDS = 500


class ShareReader:
    """Acquires records of one topic as a member of a share group, and acknowledges those it has given."""

    def __init__(
        self,
        client: Client,
        topic: str,
        group: str,
        acknowledgement: Acknowledgement,
        *,
        max_records: int | None = None,
        interrupts: Interrupts | None = None,
    ) -> None:
        """The reader gives at most `max_records` records; brokers that can limit it acquire no more."""
        self.client = client
        self.topic = topic
        self.distance = None
        #: Goes on forever.
        self.is_finished = False
        self._acknowledgement = acknowledgement
        self._left = max_records
        self._interrupts = interrupts or Interrupts()
        member_id = uuid_text(uuid.uuid4().bytes)
        self._member = Membership(group, member_id, [topic])
        self._next_heartbeat_s = 0.0
        self._sessions: dict[int, ShareSession] = {}
        self._ended: list[ShareSession] = []
        # Any partition may be assigned to this member.
        found = known_topic(client, topic, led=None)
        self._topic_id: bytes = found.topic_id
        self._leaders = leaders_of(found)

    def _learn_leaders(self) -> None:
        self._leaders = leaders_of(same_topic(self.client, self.topic, self._topic_id, led=None))

    @property
    def bytes(self) -> int:
        """Bytes of the answers so far."""
        return sum(session.bytes for session in (*self._ended, *self._sessions.values()))

    @property
    def refused(self) -> list[str]:
        """The acknowledgements that leaders have refused."""
        return [
            f"{self.topic}-{partition}: {error.name}"
            for session in (*self._ended, *self._sessions.values())
            for partition, error in session.refused
        ]

    def poll(self) -> Iterator[ReadRecord]:
        """The records that one round of fetches acquires; none if there were none for a while.

        A record that was given is acknowledged with the next fetch.

        Raises:
            KafkaError: the group does not take this member, or a partition cannot be read.
            OSError: a broker does not answer.
            KeyboardInterrupt: a signal came before an answer.
        """
        with self._interrupts.waiting():
            if time.monotonic() >= self._next_heartbeat_s:
                self._beat()
        assigned = {p for topic_id, p in self._member.assigned if topic_id == self._topic_id}
        if not assigned or not assigned <= self._leaders.keys():
            with self._interrupts.waiting():
                self._learn_leaders()
        by_leader: dict[int, set[int]] = {leader: set() for leader in self._sessions}
        for partition in assigned & self._leaders.keys():
            by_leader.setdefault(self._leaders[partition], set()).add(partition)
        if not assigned:
            # A later heartbeat assigns partitions, once the share coordinator knows of them.
            with self._interrupts.waiting():
                time.sleep(MAX_WAIT_MS / 1_000)
            self._next_heartbeat_s = 0.0
        for leader, partitions in sorted(by_leader.items()):
            session = self._sessions.setdefault(leader, ShareSession(self._member, self._topic_id))
            for acquired in self._fetch(leader, session, partitions):
                if self._left == 0:
                    return  # the others are released with the session
                if self._left is not None:
                    self._left -= 1
                session.acknowledge(acquired.partition, acquired.record.offset, self._acknowledgement)
                yield ReadRecord(acquired.partition, acquired.is_append_time, acquired.record)

    def _fetch(self, leader: int, session: ShareSession, partitions: set[int]) -> list[Acquired]:
        """Acquire records; none if the leader is gone or does not know the session, which then begins
        anew.
        """
        most = MAX_RECORDS if self._left is None else min(MAX_RECORDS, max(self._left, 1))
        request = session.fetch(
            partitions,
            max_records=most,
            max_wait_ms=MAX_WAIT_MS,
            partition_max_bytes=PARTITION_MAX_BYTES,
            acquire_mode=BATCH_OPTIMIZED if self._left is None else RECORD_LIMIT,
        )
        with self._interrupts.waiting():
            try:
                found = session.fetched(self.client.send(request, leader))
                if session.has_moved:
                    self._learn_leaders()
            except OSError:
                self._ended.append(self._sessions.pop(leader))
                self.client.retrying(self._learn_leaders)
                return []
            except KafkaError as error:
                if error.code in OF_LOST_TOPICS:
                    self._learn_leaders()
                elif error.code not in NO_SESSION:
                    raise
                return []
        return found

    def _beat(self) -> None:
        self.client.at_coordinator(self._member.group, self._beat_at)
        self._next_heartbeat_s = time.monotonic() + self._member.interval_ms / 1_000

    def _beat_at(self, coordinator: int) -> None:
        while self._member.answered(self.client.send(self._member.heartbeat(), coordinator)):
            pass

    # ---- acknowledging ----

    def maybe_commit(self) -> None:
        """Nothing to do: acknowledgements go with the next fetch."""

    def commit(self) -> None:
        """Acknowledge what was given, end the sessions, and leave the group.

        Raises:
            KafkaError, OSError: a leader or the coordinator does not take it.
        """
        for leader, session in sorted(self._sessions.items()):
            if session.has_begun:
                session.closed(self.client.send(session.close(), leader))
        self._member.leave()
        self._beat()
