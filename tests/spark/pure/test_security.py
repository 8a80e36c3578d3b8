"""The security of a job, said once for Spark's connector and for this package's own client."""

from __future__ import annotations

import pytest

from pykafka_broker.client.core.authentication import Login
from pykafka_broker.client.core.connection import CLIENT
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.replay import Target
from pykafka_broker.spark.security import OPEN, properties_in, secured, source_options

LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="alice" password="alice-secret";',
}


def test_properties_become_options_of_the_source_and_back() -> None:
    options = {**source_options(LOGIN), "kafka.fetch.max.bytes": "1", "minPartitions": "2"}
    assert options["kafka.sasl.mechanism"] == "SCRAM-SHA-512"
    assert properties_in(options) == LOGIN


def test_our_client_goes_by_them_too() -> None:
    assert secured(CLIENT, OPEN) is CLIENT
    security = secured(CLIENT, LOGIN).security
    assert security is not None and isinstance(security.login, Login)
    assert (security.login.user, security.login.mechanism) == ("alice", "SCRAM-SHA-512")


def test_what_it_cannot_do_is_said_without_a_secret() -> None:
    with pytest.raises(SparkError, match=r"sasl\.mechanism GSSAPI is none of") as refused:
        secured(CLIENT, LOGIN | {"sasl.mechanism": "GSSAPI"})
    assert "alice-secret" not in str(refused.value)


def test_no_secret_is_in_the_repr_of_a_target() -> None:
    assert "alice-secret" not in repr(Target("127.0.0.1:9092", security=LOGIN))
