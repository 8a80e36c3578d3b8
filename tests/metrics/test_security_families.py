"""What a scrape tells of logins, certificates, ACLs and quotas."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from pykafka_broker.tls.authority import Authority
from tests.metrics.pages import METRICS, scrape, value
from tests.support.sasl import AT_ONCE, WRONG, authenticate, serving

LOGINS = "kafka_server_socket_server_metrics"
AUTHORITY = Authority.new(datetime(2026, 1, 1, tzinfo=UTC), days=365)


async def test_logins_and_denials_are_counted() -> None:
    settings = {
        **AT_ONCE,
        "metrics.listeners": METRICS,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    async with serving(settings) as (home, user):
        await authenticate(user)
        denied = await user.try_to_create_topic("orders")
        async with await User.connect(home.broker.bootstrap_servers) as stranger:
            refused = await authenticate(stranger, token=WRONG)
        found = await scrape(home.broker)

    assert denied is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    of_listener = {"listener": "CLIENTS", "networkProcessor": "0"}
    for result, count in (("successful_authentication", 1), ("failed_authentication", 1)):
        assert value(found, f"{LOGINS}_{result}_total", **of_listener) == count
    assert (value(found, "kafka_server_authorizer_metrics_authorization_denied_total") or 0) >= 1
    assert value(found, "kafka_server_authorizer_metrics_acls_total_count") == 0


async def test_the_use_of_a_quota_is_shown_for_its_client() -> None:
    home = Home({"metrics.listeners": METRICS})
    async with home.running() as user:
        await user.create_topic("orders")
        entity = EntityData(entity_type="user", entity_name=None)
        quota = OpData(key="producer_byte_rate", value=100.0, remove=False)
        entry = AlterClientQuotasRequestEntryData(entity=[entity], ops=[quota])
        await user.send(AlterClientQuotasRequest(entries=[entry], validate_only=False), 1)
        await user.produce("orders", b"x" * 2_000)
        found = await scrape(home.broker)

    of_quota = [
        [value for (name, _), value in found.items() if name == f"kafka_server_produce_{attribute}"]
        for attribute in ("byte_rate", "throttle_time")
    ]
    assert all(len(values) == 1 and values[0] > 100 for values in of_quota)
    throttled = value(
        found, "kafka_network_requestmetrics_throttletimems", request="Produce", quantile="0.99"
    )
    assert (throttled or 0) > 0


async def test_the_end_of_a_certificate_is_shown_before_and_after_its_renewal(tmp_path: Path) -> None:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    key_store = tmp_path / "server.pem"

    def issue(days: int) -> float:
        issued = Authority(AUTHORITY.own, now, days).for_server(["localhost"])
        key_store.write_bytes(issued.key_pem + issued.certificate_pem)
        return (now + timedelta(days=days)).timestamp()

    first = issue(30)
    home = Home(
        {
            "metrics.listeners": METRICS,
            "listeners": "CLIENTS://127.0.0.1:0,INSIDE://127.0.0.1:0",
            "listener.security.protocol.map": "CLIENTS:SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(key_store),
        },
        listen=None,
    )
    async with home.new_broker():
        shown = [await scrape(home.broker)]
        second = issue(60)
        shown.append(await scrape(home.broker))

    name = "pykafka_broker_certificate_not_after_seconds"
    assert [value(found, name, listener="CLIENTS") for found in shown] == [first, second]
    assert value(shown[0], name, listener="INSIDE") is None
