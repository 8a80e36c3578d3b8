"""The conversations: one file per API, named like its message file, and `framing` for what is below them."""

from __future__ import annotations

FILES = (
    "framing",
    "api_versions",
    "metadata",
    "describe_cluster",
    "describe_topic_partitions",
    "create_topics",
    "delete_topics",
    "create_partitions",
    "delete_records",
    "describe_configs",
    "incremental_alter_configs",
    "alter_configs",
    "list_config_resources",
    "describe_log_dirs",
    "find_coordinator",
    "join_group",
    "sync_group",
    "heartbeat",
    "leave_group",
    "offset_commit",
    "offset_fetch",
    "list_groups",
    "describe_groups",
    "delete_groups",
    "offset_delete",
)
