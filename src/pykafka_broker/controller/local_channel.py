"""The controller of this very node, as the node and its clients ask it: a `ControllerChannel` and
`ClusterAdministration` without a network.

Time-outs live here, for the core has no clock: a change whose caller has no time left is not begun, and one
that takes too long is answered with REQUEST_TIMED_OUT, although it may still happen.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from itertools import count
from typing import Any

from pykafka_broker.authorization.index import Acl
from pykafka_broker.cluster import events
from pykafka_broker.cluster.client_quotas import IP
from pykafka_broker.cluster.configs import refused_by_broker
from pykafka_broker.cluster.events import (
    AclFilter,
    AclResult,
    AlterClientQuotasResult,
    AlterConfigsResult,
    AlterScramCredentialsResult,
    ConfigChange,
    CreatedToken,
    CreatePartitionsResult,
    CreateTopicResult,
    DeleteAclsResult,
    DeleteTopicResult,
    DirectoryAssignment,
    FeatureUpdate,
    HeartbeatResult,
    IsrChange,
    IsrChangeResult,
    NewConfigs,
    NewPartitions,
    NewTopic,
    ProducerIdBlock,
    QuotaAlteration,
    ScramDeletion,
    ScramUpsertion,
    TopicPartitions,
    TopicReassignment,
    TopicResult,
)
from pykafka_broker.cluster.features import KRAFT_VERSION, NODE_FEATURES
from pykafka_broker.cluster.image import FeatureRange, RegisteredEndpoint
from pykafka_broker.cluster.state import ControllerRules
from pykafka_broker.controller.hosts import is_known_host
from pykafka_broker.controller.role import ControllerRole, NoController
from pykafka_broker.log.disk.checkpoints import uuid_text
from pykafka_broker.machine.scheduler import Scheduler
from pykafka_broker.metadata.controller_channel import MAX_ASSIGNMENTS, BrokerStatus, Requester
from pykafka_broker.metadata.quorum_description import QuorumDescription
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.raft.core.messages import AddVoter, ChangeAnswer, RemoveVoter
from pykafka_broker.raft.format import random_uuid


class LocalControllerChannel:
    """Asks the controller in this process, on behalf of the node that `rules` name.

    `metadata/controller_channel.py` explains each request.
    """

    def __init__(
        self, role: ControllerRole | NoController, rules: ControllerRules, scheduler: Scheduler
    ) -> None:
        self._role = role
        self._rules = rules
        self._scheduler = scheduler
        #: The seed of replica placement, a new one for each request.
        self._seeds = count(random.getrandbits(63))
        self._requester: Requester | None = None

    def on_behalf_of(self, requester: Requester) -> LocalControllerChannel:
        channel = copy(self)
        channel._requester = requester
        return channel

    def _ask(
        self, event_with: Callable[[int], events.Event], timeout_ms: int | None = None
    ) -> Awaitable[Any]:
        """The result of an event; KafkaError when it was refused as a whole or took longer than allowed."""
        return self._role.result_of(event_with, timeout_ms, self._requester)

    # -- topics ----------------------------------------------------------------------------------------

    async def create_topics(
        self, topics: Iterable[NewTopic], *, timeout_ms: int | None = None, validate_only: bool = False
    ) -> tuple[CreateTopicResult, ...]:
        asked = tuple(
            topic if any(topic.topic_id) else topic._replace(topic_id=random_uuid()) for topic in topics
        )
        seed = next(self._seeds)
        try:
            results: tuple[CreateTopicResult, ...] = await self._ask(
                lambda token: events.CreateTopics(token, asked, seed, validate_only), timeout_ms
            )
        except KafkaError as error:
            names = dict.fromkeys(topic.name for topic in asked)
            return tuple(CreateTopicResult(name, error.code, error.explanation) for name in names)
        return results

    async def delete_topics(
        self, topics: Iterable[tuple[str | None, bytes]], *, timeout_ms: int | None = None
    ) -> tuple[DeleteTopicResult, ...]:
        asked = tuple(topics)
        try:
            results: tuple[DeleteTopicResult, ...] = await self._ask(
                lambda token: events.DeleteTopics(token, asked), timeout_ms
            )
        except KafkaError as error:
            return tuple(
                DeleteTopicResult(name, topic_id, error.code, error.explanation) for name, topic_id in asked
            )
        return results

    async def create_partitions(
        self, topics: Iterable[NewPartitions], *, timeout_ms: int | None = None, validate_only: bool = False
    ) -> tuple[CreatePartitionsResult, ...]:
        asked = tuple(topics)
        seed = next(self._seeds)
        try:
            results: tuple[CreatePartitionsResult, ...] = await self._ask(
                lambda token: events.CreatePartitions(token, asked, seed, validate_only), timeout_ms
            )
        except KafkaError as error:
            names = dict.fromkeys(topic.name for topic in asked)
            return tuple(CreatePartitionsResult(name, error.code, error.explanation) for name in names)
        return results

    # -- leaders and replicas --------------------------------------------------------------------------

    async def elect_leaders(
        self,
        topics: Iterable[TopicPartitions] | None,
        election_type: int,
        *,
        timeout_ms: int | None = None,
    ) -> tuple[TopicResult, ...]:
        asked = None if topics is None else tuple(topics)
        results: tuple[TopicResult, ...] = await self._ask(
            lambda token: events.ElectLeaders(token, election_type, asked), timeout_ms
        )
        return results

    async def alter_partition_reassignments(
        self,
        topics: Iterable[TopicReassignment],
        *,
        allow_replication_factor_change: bool = True,
        timeout_ms: int | None = None,
    ) -> tuple[TopicResult, ...]:
        asked = tuple(topics)
        results: tuple[TopicResult, ...] = await self._ask(
            lambda token: events.AlterPartitionReassignments(token, asked, allow_replication_factor_change),
            timeout_ms,
        )
        return results

    # -- configs ---------------------------------------------------------------------------------------

    async def incremental_alter_configs(
        self, resources: Iterable[ConfigChange], *, validate_only: bool = False
    ) -> tuple[AlterConfigsResult, ...]:
        asked = tuple(resources)
        return await self._alter(
            asked, lambda token, left: events.IncrementalAlterConfigs(token, left, validate_only)
        )

    async def alter_configs(
        self, resources: Iterable[NewConfigs], *, validate_only: bool = False
    ) -> tuple[AlterConfigsResult, ...]:
        asked = tuple(resources)
        return await self._alter(asked, lambda token, left: events.AlterConfigs(token, left, validate_only))

    async def _alter(
        self, asked: tuple[Any, ...], event: Callable[[int, tuple[Any, ...]], events.Event]
    ) -> tuple[AlterConfigsResult, ...]:
        keys = [(resource.resource_type, resource.name) for resource in asked]
        refused: dict[tuple[int, str], tuple[ErrorCode, str | None]] = {}
        for resource, key in zip(asked, keys, strict=True):
            if keys.count(key) > 1:
                refused[key] = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            elif why := refused_by_broker(resource, self._rules.node_id):
                refused[key] = why
        left = tuple(r for r, key in zip(asked, keys, strict=True) if key not in refused)
        if left:
            try:
                results = await self._ask(lambda token: event(token, left))
            except KafkaError as error:
                results = [
                    AlterConfigsResult(r.resource_type, r.name, error.code, error.explanation) for r in left
                ]
            refused.update({(r.resource_type, r.name): (r.error, r.message) for r in results})
        return tuple(AlterConfigsResult(*key, *refused[key]) for key in keys)

    # -- client quotas ---------------------------------------------------------------------------------

    async def alter_client_quotas(
        self, alterations: Iterable[QuotaAlteration], *, validate_only: bool = False
    ) -> tuple[AlterClientQuotasResult, ...]:
        asked = tuple(alterations)
        hosts = {name for each in asked for kind, name in each.entity if kind == IP and name}
        unknown = frozenset({host for host in hosts if not await is_known_host(host)})
        results: tuple[AlterClientQuotasResult, ...] = await self._ask(
            lambda token: events.AlterClientQuotas(token, asked, unknown, validate_only)
        )
        return results

    # -- SCRAM credentials -----------------------------------------------------------------------------

    async def alter_scram_credentials(
        self, deletions: Iterable[ScramDeletion], upsertions: Iterable[ScramUpsertion]
    ) -> tuple[AlterScramCredentialsResult, ...]:
        removed, put = tuple(deletions), tuple(upsertions)
        results: tuple[AlterScramCredentialsResult, ...] = await self._ask(
            lambda token: events.AlterScramCredentials(token, removed, put)
        )
        return results

    # -- ACLs ------------------------------------------------------------------------------------------

    async def create_acls(self, acls: Iterable[Acl]) -> tuple[AclResult, ...]:
        asked = tuple(acls)
        ids = tuple(random_uuid() for _ in asked)
        results: tuple[AclResult, ...] = await self._ask(lambda token: events.CreateAcls(token, asked, ids))
        return results

    async def delete_acls(self, filters: Iterable[AclFilter]) -> tuple[DeleteAclsResult, ...]:
        asked = tuple(filters)
        results: tuple[DeleteAclsResult, ...] = await self._ask(lambda token: events.DeleteAcls(token, asked))
        return results

    # -- delegation tokens -----------------------------------------------------------------------------

    async def create_token(
        self,
        owner: str,
        requester: str,
        renewers: Iterable[tuple[str, str]],
        max_lifetime_ms: int,
    ) -> CreatedToken:
        now_ms, asked, token_id = self._scheduler.now_ms(), tuple(renewers), uuid_text(random_uuid())
        created: CreatedToken = await self._ask(
            lambda token: events.CreateToken(
                token, now_ms, owner, requester, asked, max_lifetime_ms, token_id
            )
        )
        return created

    async def renew_token(self, principal: str, hmac: bytes, renew_period_ms: int) -> int:
        now_ms = self._scheduler.now_ms()
        expiry_timestamp_ms: int = await self._ask(
            lambda token: events.RenewToken(token, now_ms, principal, hmac, renew_period_ms)
        )
        return expiry_timestamp_ms

    async def expire_token(self, principal: str, hmac: bytes, expiry_period_ms: int) -> int:
        now_ms = self._scheduler.now_ms()
        expiry_timestamp_ms: int = await self._ask(
            lambda token: events.ExpireToken(token, now_ms, principal, hmac, expiry_period_ms)
        )
        return expiry_timestamp_ms

    # -- brokers ---------------------------------------------------------------------------------------

    async def register_broker(
        self,
        *,
        incarnation_id: bytes,
        listeners: Mapping[str, RegisteredEndpoint],
        directories: Iterable[bytes],
        rack: str | None = None,
        previous_broker_epoch: int = -1,
        features: Mapping[str, FeatureRange] = NODE_FEATURES,
    ) -> int:
        epoch: int = await self._ask(
            lambda token: events.RegisterBroker(
                token,
                self._scheduler.now_ms(),
                self._rules.node_id,
                self._rules.cluster_id,
                incarnation_id,
                listeners,
                features,
                tuple(directories),
                rack,
                previous_broker_epoch,
            )
        )
        return epoch

    async def heartbeat(self, status: BrokerStatus) -> HeartbeatResult:
        result: HeartbeatResult = await self._ask(
            lambda token: events.Heartbeat(
                token,
                self._scheduler.now_ms(),
                self._rules.node_id,
                status.broker_epoch,
                status.metadata_offset,
                want_fence=status.want_fence,
                want_shutdown=status.want_shutdown,
                offline_directories=status.offline_directories,
                cordoned_directories=status.cordoned_directories,
            ),
            self._rules.session_timeout_ms // 2,
        )
        return result

    async def assign_replicas_to_dirs(
        self, broker_epoch: int, assignments: Sequence[DirectoryAssignment]
    ) -> tuple[ErrorCode, ...]:
        # As many go into one event as Apache Kafka's brokers put into one request.
        outcomes: list[ErrorCode] = []
        for start in range(0, len(assignments), MAX_ASSIGNMENTS):
            some = tuple(assignments[start : start + MAX_ASSIGNMENTS])
            outcomes += await self._ask(partial(self._assignment_event, broker_epoch, some))
        return tuple(outcomes)

    def _assignment_event(
        self, broker_epoch: int, assignments: tuple[DirectoryAssignment, ...], token: int
    ) -> events.Event:
        return events.AssignReplicasToDirs(token, self._rules.node_id, broker_epoch, assignments)

    async def alter_partition(
        self, broker_epoch: int, changes: Sequence[IsrChange]
    ) -> tuple[IsrChangeResult, ...]:
        results: tuple[IsrChangeResult, ...] = await self._ask(
            lambda token: events.AlterPartition(token, self._rules.node_id, broker_epoch, tuple(changes))
        )
        return results

    async def register_controller(
        self,
        incarnation_id: bytes,
        listeners: Mapping[str, RegisteredEndpoint],
        features: Mapping[str, FeatureRange] = NODE_FEATURES,
    ) -> None:
        await self._ask(
            lambda token: events.RegisterController(
                token, self._rules.node_id, incarnation_id, listeners, features
            )
        )

    async def unregister_broker(self, broker_id: int) -> None:
        await self._ask(lambda token: events.UnregisterBroker(token, broker_id))

    # -- the rest --------------------------------------------------------------------------------------

    async def allocate_producer_ids(self, broker_epoch: int) -> ProducerIdBlock:
        block: ProducerIdBlock = await self._ask(
            lambda token: events.AllocateProducerIds(token, self._rules.node_id, broker_epoch)
        )
        return block

    async def update_features(
        self, updates: Iterable[FeatureUpdate], *, timeout_ms: int | None = None, validate_only: bool = False
    ) -> None:
        asked = tuple(updates)
        active, refusal = self._role.active, None
        raises = active.kraft_version == 0 and any(u.name == KRAFT_VERSION and u.level > 0 for u in asked)
        if raises:
            refusal = await active.upgrade_kraft_version(validate_only=True)
        await self._ask(lambda token: events.UpdateFeatures(token, asked, validate_only, refusal), timeout_ms)
        if raises and not validate_only:
            await self._role.active.upgrade_kraft_version(validate_only=False, requester=self._requester)

    async def add_voter(self, request: AddVoter) -> ChangeAnswer:
        return await self._role.active.change_voters(request)

    async def remove_voter(self, request: RemoveVoter) -> ChangeAnswer:
        return await self._role.active.change_voters(request)

    async def describe_quorum(self) -> QuorumDescription:
        return self._role.active.describe_quorum()
