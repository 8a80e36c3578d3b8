"""Where each behaviour that clients depend on is tested.

The list is that of the project's protocol reference: what brokers other than Apache Kafka got wrong, and what
clients broke on. A row names the tests that tell the story; the test below keeps the rows true.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent

#: Behaviour -> the tests, by folder and file (without "test_"), that hold it.
BEHAVIOURS: dict[str, dict[str, tuple[str, ...]]] = {
    "1 ApiVersions negotiation": {
        "apis/api_versions": (
            "a_version_that_is_not_served_gets_the_oldest_answer_and_the_connection_lives",
            "a_client_must_say_who_it_is_in_plain_words",
        ),
        "network/dispatch": ("versions_that_are_not_served_are_refused",),
    },
    "2 Headers and tags": {
        "apis/api_versions": ("only_from_version_4_on_are_features_shown_whose_minimum_is_0",),
        "protocol/headers": (
            "flexible_versions_have_flexible_headers",
            "the_client_id_keeps_its_two_byte_length_in_the_flexible_header",
        ),
    },
    "3 Order of answers, and acks=0": {
        "apis/produce": (
            "with_acks_0_nothing_is_answered_and_the_next_request_is",
            "with_acks_0_an_error_closes_the_connection",
        ),
        "apis/order": (
            "answers_come_in_the_order_of_the_requests",
            "a_request_behind_a_waiting_fetch_is_answered_after_it",
        ),
    },
    "4 Metadata errors": {
        "apis/metadata": (
            "an_unknown_topic_is_named_with_an_error_beside_the_known_ones",
            "what_cannot_be_a_name_is_not_created",
            "naming_an_unknown_topic_creates_it_and_the_answer_knows_its_leader",
            "a_topic_is_not_created_if_the_client_does_not_want_it",
            "a_topic_is_not_created_if_the_broker_does_not_want_it",
            "asking_for_all_topics_creates_none",
            "topics_are_found_by_id",
            "no_list_means_all_topics_and_an_empty_list_none",
            "version_0_has_no_null_so_an_empty_list_means_all",
            "allowed_operations_are_told_to_those_who_ask",
        ),
    },
    "5 Produce validation": {
        "apis/produce": (
            "what_is_not_one_good_batch_is_refused",
            "zstd_came_with_version_7",
            "a_batch_above_the_topics_limit_is_too_large",
            "a_compacted_topic_names_the_records_without_a_key",
            "timestamps_beyond_the_topics_bounds_are_refused",
        ),
    },
    "6 Fetch: waiting and sizes": {
        "apis/fetch": (
            "whole_batches_are_served_from_the_one_that_holds_the_offset",
            "the_first_batch_comes_whole_however_small_the_limits",
            "only_the_first_partition_with_records_may_go_beyond_the_limits",
            "partitions_are_served_in_the_order_of_the_request_within_their_limits",
            "a_fetch_of_nothing_waits_until_something_is_appended",
            "bytes_beyond_a_partitions_limit_do_not_count",
            "there_is_nothing_to_wait_for",
            "an_unknown_partition_does_not_end_the_wait_of_the_good_one_beside_it",
            "deleting_the_topic_ends_the_wait",
        ),
        "apis/fetch_wakeup": ("a_record_appended_in_the_turn_in_which_a_fetch_arrives_wakes_it",),
    },
    "7 Fetch sessions": {
        "apis/fetch_sessions": (
            "a_full_fetch_opens_a_session_and_lists_everything_even_if_there_is_nothing",
            "after_that_only_partitions_with_news_are_listed",
            "an_epoch_that_is_not_the_next_one_is_refused_and_changes_nothing",
            "an_unknown_session_is_refused",
            "names_and_ids_do_not_mix_in_a_session",
        ),
    },
    "8 Leader epochs": {
        "apis/fetch": (
            "batches_carry_their_leader_epoch",
            "a_client_that_knows_another_leader_epoch_is_told",
            "a_client_of_an_older_leader_epoch_is_fenced_and_told_the_leader",
            "a_reader_whose_log_has_diverged_learns_where",
            "an_offset_that_does_not_exist_is_out_of_range",
        ),
        "apis/list_offsets": ("a_client_of_another_leader_epoch_is_refused",),
        "apis/offset_for_leader_epoch": (
            "an_epoch_ends_where_the_next_one_starts_and_the_last_at_the_logs_end",
            "a_client_of_another_leader_epoch_is_refused",
        ),
    },
    "9 ListOffsets": {
        "apis/list_offsets": (
            "a_time_finds_the_first_record_at_or_after_it",
            "inside_a_batch_the_record_is_found_not_the_batch",
            "the_ends_of_a_partition",
            "special_places_without_tiered_storage",
            "a_place_the_version_does_not_know_is_unsupported",
            "a_partition_named_twice_is_refused_and_the_others_are_not",
        ),
    },
    "10 Idempotent duplicates": {
        "apis/produce": (
            "a_batch_sent_again_is_answered_with_its_original_offset_and_not_appended",
            "what_does_not_follow_the_last_batch_is_refused",
            "an_older_epoch_is_fenced",
            "a_forgotten_producer_may_go_on_at_any_sequence_and_sequences_wrap",
            "producers_are_remembered_across_a_restart",
        ),
    },
    "11 InitProducerId, with and without transactions": {
        "apis/init_producer_id": (
            "every_call_gives_a_new_id_and_epoch_0",
            "ids_are_not_given_out_again_after_a_crash",
            "each_producer_of_a_transactional_id_gets_the_next_epoch",
        ),
    },
    "12 Transactions": {
        "apis/api_versions": ("only_features_that_really_work_are_finalized",),
        "apis/produce": (
            "a_transactional_batch_needs_a_transactional_id",
            "without_a_coordinator_transactional_batches_are_refused",
        ),
        "apis/end_txn": ("what_is_committed_is_seen_and_what_is_aborted_is_not",),
    },
    "13 Markers, last stable offset, aborted transactions": {
        "apis/fetch": (
            "committed_records_are_read_with_a_list_of_aborted_transactions",
            "committed_readers_stop_at_an_open_transaction_and_learn_of_aborted_ones",
            "the_end_of_a_transaction_wakes_the_committed_readers_that_wait_for_it",
        ),
        "apis/list_offsets": ("committed_readers_see_nothing_from_the_first_open_transaction_on",),
        "log/partition/transactions": (
            "an_open_transaction_holds_the_last_stable_offset_back",
            "read_committed_is_told_which_transactions_were_aborted_sorted_by_first_offset",
        ),
    },
    "14 Join, sync, heartbeat": {
        "apis/join_group": (
            "a_new_dynamic_member_is_given_an_id_first",
            "a_static_member_is_let_in_at_once_and_known_again",
            "only_the_leader_learns_of_the_others_and_all_of_the_same_protocol",
            "the_first_rebalance_waits_for_others_that_start_at_the_same_time",
            "who_does_not_fit_into_this_group_is_refused",
            "a_full_group_takes_no_new_member",
        ),
        "apis/sync_group": (
            "the_leader_assigns_and_a_repeated_sync_gets_the_same",
            "followers_wait_for_the_leader_and_those_it_omits_get_nothing",
            "while_members_come_together_again_there_is_no_assignment",
            "a_static_member_that_was_replaced_is_fenced",
        ),
        "apis/heartbeat": (
            "a_member_hears_that_it_must_rejoin",
            "heartbeats_keep_a_session_alive_and_silence_ends_it",
        ),
    },
    "15 Finding and loading coordinators": {
        "apis/find_coordinator": (
            "one_group_is_answered_in_flat_fields",
            "many_groups_are_answered_one_by_one",
            "looking_for_a_coordinator_creates_the_offsets_topic_and_waits_until_it_works",
        ),
        "apis/offset_fetch": (
            "without_the_offsets_topic_there_is_no_coordinator_and_no_offsets_are_answered",
        ),
        "coordinator/group_service": ("during_the_load_everything_waits_but_heartbeats_are_answered_well",),
    },
    "16 Offsets": {
        "apis/offset_commit": (
            "what_is_committed_is_kept_with_its_epoch_and_metadata",
            "only_its_members_commit_for_a_group_with_members",
            "a_generation_of_an_unknown_group",
            "commits_between_join_and_assignment_are_refused",
            "metadata_has_a_limit",
        ),
        "apis/offset_fetch": (
            "an_unknown_group_or_topic_has_no_offsets_and_that_is_no_error",
            "no_list_of_topics_means_all_for_each_group",
        ),
    },
    "17 What admin clients read": {
        "apis/describe_configs": (
            "every_key_of_a_topic_is_listed_with_value_and_source",
            "every_key_of_a_broker_is_listed_and_secrets_are_not_told",
            "synonyms_tell_what_would_count_next",
        ),
        "apis/describe_topic_partitions": ("following_the_cursor_shows_everything_once",),
        "apis/create_topics": (
            "the_answer_shows_every_config_by_name_and_where_it_comes_from",
            "minus_1_means_the_brokers_defaults",
        ),
        "apis/describe_groups": ("an_unknown_group_is_dead_and_only_version_6_calls_that_an_error",),
    },
}


def test_there_are_seventeen_behaviours() -> None:
    assert [int(name.split()[0]) for name in BEHAVIOURS] == list(range(1, 18))


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_the_tests_of_a_behaviour_exist(behaviour: str) -> None:
    for place, names in BEHAVIOURS[behaviour].items():
        folder, _, name = place.rpartition("/")
        text = (TESTS / folder / f"test_{name}.py").read_text()
        stories = set(re.findall(r"^(?:async )?def test_(\w+)", text, re.MULTILINE))
        assert stories, place
        assert not set(names) - stories, place
