"""The errors of an answer, as they are counted."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis import APIS
from pykafka_broker.apis.api import Api
from pykafka_broker.apis.controller_apis import CONTROLLER_APIS
from pykafka_broker.network.request_times import error_counter
from pykafka_broker.protocol.fields import blank, error_codes
from pykafka_broker.protocol.messages import response_type
from pykafka_broker.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


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
