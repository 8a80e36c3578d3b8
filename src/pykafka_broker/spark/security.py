"""The security of a job: said once, for Spark's connector and for this package's own client. Pure.

    properties = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", ...}
    spark.read.format("kafka").options(**source_options(properties))
    Client(bootstrap_servers, identity=secured(identity, properties))

The keys are those of Kafka's clients. Spark's connector takes each with `kafka.` in front.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.client.core.connection import Identity
from pykafka_broker.spark.errors import SparkError

PREFIX = "kafka."
_ABOUT_SECURITY = ("security.protocol", "sasl.", "ssl.")

#: No TLS, and no user.
OPEN: Mapping[str, str] = {}


def source_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Options of Spark's source and sink."""
    return {PREFIX + key: value for key, value in properties.items()}


def properties_in(options: Mapping[str, str]) -> dict[str, str]:
    """The properties that options of Spark's source say about security."""
    found = {key[len(PREFIX) :]: value for key, value in options.items() if key.lower().startswith(PREFIX)}
    return {key: value for key, value in found.items() if key.lower().startswith(_ABOUT_SECURITY)}


def secured(identity: Identity, properties: Mapping[str, str]) -> Identity:
    """`identity` with this security.

    Raises:
        SparkError: it is not supported by this package's client, which logs in with PLAIN and SCRAM.
    """
    if not properties:
        return identity
    from pykafka_broker.client.security import security_of

    try:
        return identity._replace(security=security_of(properties))
    except (ValueError, OSError) as error:
        raise SparkError(f"The brokers cannot be asked: {error}") from None
