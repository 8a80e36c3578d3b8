"""The part of this node in the metadata quorum: it opens its metadata log and starts its controller."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial

from pykafka_broker.broker.foundation import Foundation
from pykafka_broker.broker.storage import (
    UNREADABLE_METADATA,
    local_voter,
    open_metadata_log,
    unusable_metadata,
)
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.cluster.state import ControllerRules
from pykafka_broker.config.rules import TableRules, validate_broker_configs
from pykafka_broker.controller.controller import Controller
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.raft.storage import RaftStorage


def open_metadata(foundation: Foundation, logs: LogManager) -> RaftStorage:
    """The replica of the metadata log. Blocking.

    Raises:
        LogDirError: this version cannot go by what is there; the text says what to do.
    """
    config = foundation.config
    try:
        return open_metadata_log(
            foundation.files,
            config,
            now_ms=foundation.clock.now_ms(),
            run_later=foundation.threads.run_in_background,
            on_write_failed=partial(logs.full_disks.write_failed, logs.dirs.metadata),
        )
    except UNREADABLE_METADATA as error:
        raise unusable_metadata(config, error) from error


async def start_controller(
    foundation: Foundation,
    storage: RaftStorage,
    logs: LogManager,
    cluster_id: str,
    undo: AsyncExitStack,
) -> Controller:
    """The controller, with the newest metadata published.

    Raises:
        LogDirError: this version cannot go by the metadata; the text says what to do.
    """
    config = foundation.config
    controller = Controller(
        storage,
        local_voter(config, logs),
        ControllerRules(
            node_id=foundation.node_id,
            cluster_id=cluster_id,
            configs=NodeConfigRules(foundation.configs),
            default_partitions=config["num.partitions"],
            default_replication_factor=config["default.replication.factor"],
            session_timeout_ms=config["broker.session.timeout.ms"],
            voters=(foundation.node_id,),
        ),
        files=foundation.files,
        metadata_directory=config.metadata_log_dir,
        scheduler=foundation.timers,
        run_blocking=foundation.threads.run_blocking,
        on_failure=foundation.failure.set,
        bytes_between_snapshots=config["metadata.log.max.record.bytes.between.snapshots"],
        snapshot_interval_ms=config["metadata.log.max.snapshot.interval.ms"],
    )
    undo.push_async_callback(controller.close)
    try:
        await controller.start()
    except UNREADABLE_METADATA as error:
        raise unusable_metadata(config, error) from error
    return controller


class NodeConfigRules(TableRules):
    """The controller's rules, and those that need this node's static configuration."""

    def validate(self, resource_type: int, name: str, new: Mapping[str, str], old: Mapping[str, str]) -> None:
        """Accept the complete set of values a resource is to have.

        Raises:
            KafkaError: in Kafka's words.
        """
        super().validate(resource_type, name, new, old)
        if resource_type == ResourceType.BROKER:
            validate_broker_configs(name, new, self.configs)
