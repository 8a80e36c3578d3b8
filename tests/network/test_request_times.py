"""The histograms of requests: which bucket a value counts to, and what an answer's errors are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.apis import APIS
from pykafka_broker.apis.api import Api
from pykafka_broker.apis.controller_apis import CONTROLLER_APIS
from pykafka_broker.network.request_times import (
    BUCKET_COUNT,
    BUCKETS,
    TABLE_UNITS,
    bucket_of,
    error_counter,
    middle_of,
    new_histogram,
    record,
)
from pykafka_broker.protocol.fields import blank, error_codes
from pykafka_broker.protocol.messages import response_type
from pykafka_broker.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


@given(st.integers(0, 1 << 40))
def test_the_middle_of_a_bucket_is_near_its_values(units: int) -> None:
    assert abs(middle_of(bucket_of(units)) - units) <= units / 16


def test_buckets_follow_each_other_without_a_gap() -> None:
    assert sorted(set(BUCKETS)) == list(range(bucket_of(TABLE_UNITS - 1) + 1))
    assert bucket_of(TABLE_UNITS) == bucket_of(TABLE_UNITS - 1) + 1


@pytest.mark.parametrize("units", [0, 1, TABLE_UNITS - 1, TABLE_UNITS, 1 << 40, 1 << 62])
def test_every_value_counts_to_one_bucket(units: int) -> None:
    histogram = new_histogram()

    record(histogram, units)

    assert histogram[min(bucket_of(units), BUCKET_COUNT - 1)] == sum(histogram) == 1


def test_the_errors_of_an_answer_are_counted_with_those_of_its_parts() -> None:
    topic = MetadataResponseTopic(
        error_code=3,
        name="orders",
        partitions=[
            MetadataResponsePartition(
                error_code=code, partition_index=index, leader_id=1, replica_nodes=[], isr_nodes=[]
            )
            for index, code in enumerate((0, 5, 5))
        ],
    )
    errors = {0: 1}

    error_counter(MetadataResponse)(MetadataResponse(brokers=[], controller_id=1, topics=[topic]), errors)

    assert errors == {0: 3, 3: 1, 5: 2}


@pytest.mark.parametrize("api", [*APIS, *CONTROLLER_APIS], ids=lambda api: api.name)
def test_the_errors_of_every_api_can_be_counted(api: Api[Any]) -> None:
    answer = blank(response_type(api.key))
    errors: dict[int, int] = {}

    error_counter(type(answer))(answer, errors)

    assert sum(errors.values()) == len(list(error_codes(answer)))
