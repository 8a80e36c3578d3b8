"""Signing in, ACLs, delegation tokens and SCRAM credentials, with an authorizer and a SASL listener."""

from __future__ import annotations

import time
from typing import Any

from interop.frames.kafka import Kafka
from pykafka_broker.protocol.messages import alter_user_scram_credentials as altering
from pykafka_broker.protocol.messages import create_acls, delete_acls, describe_acls
from pykafka_broker.protocol.messages import create_delegation_token as creating
from pykafka_broker.protocol.messages import describe_delegation_token as describing_tokens
from pykafka_broker.protocol.messages import describe_user_scram_credentials as describing
from pykafka_broker.protocol.messages import expire_delegation_token as expiring
from pykafka_broker.protocol.messages import renew_delegation_token as renewing
from pykafka_broker.protocol.messages import sasl_authenticate as authenticating
from pykafka_broker.protocol.messages import sasl_handshake as shaking_hands

USER, PASSWORD = "golden", "secret"

TOPIC, LITERAL, MATCH, READ, ANY, ALLOW = 2, 3, 2, 3, 1, 3
SCRAM_SHA_256 = 1


class Security:
    """`kafka` is the connection of the next request: one without a name, or one signed in as USER."""

    def __init__(self, kafka: Kafka, sasl_address: str) -> None:
        self.kafka = self.anonymous = kafka
        self.sasl_address = sasl_address

    def sasl_handshake(self, version: int) -> Any:
        self.kafka = Kafka(self.sasl_address)
        return shaking_hands.SaslHandshakeRequest(mechanism="PLAIN" if version else "UNKNOWN")

    def sasl_authenticate(self, version: int) -> Any:
        self.kafka = Kafka(self.sasl_address)
        self.kafka.call(shaking_hands.SaslHandshakeRequest(mechanism="PLAIN"), 1)
        return authenticating.SaslAuthenticateRequest(auth_bytes=f"\0{USER}\0{PASSWORD}".encode())

    def _sign_in(self) -> None:
        request = self.sasl_authenticate(2)
        self.kafka.call_until_ok(request, 2)

    def create_acls(self, version: int) -> Any:
        self.kafka = self.anonymous
        return create_acls.CreateAclsRequest(
            creations=[
                create_acls.AclCreation(
                    resource_type=TOPIC,
                    resource_name=f"golden-{version}",
                    principal=principal,
                    host="*",
                    operation=READ,
                    permission_type=ALLOW,
                )
                for principal in ("User:golden", "nobody")
            ]
        )

    def describe_acls(self, version: int) -> Any:
        self.kafka = self.anonymous
        return describe_acls.DescribeAclsRequest(
            resource_type_filter=TOPIC,
            resource_name_filter="golden-1",
            pattern_type_filter=MATCH,
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )

    def delete_acls(self, version: int) -> Any:
        self.kafka = self.anonymous
        return delete_acls.DeleteAclsRequest(
            filters=[
                delete_acls.DeleteAclsFilter(
                    resource_type_filter=TOPIC,
                    resource_name_filter=name,
                    pattern_type_filter=LITERAL,
                    principal_filter="User:golden",
                    host_filter=None,
                    operation=READ,
                    permission_type=ALLOW,
                )
                for name in (f"golden-{version}", "missing")
            ]
        )

    def create_delegation_token(self, version: int) -> Any:
        self._sign_in()
        renewers = [creating.CreatableRenewers(principal_type="User", principal_name="renewer")]
        return creating.CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=3_600_000)

    def _token(self) -> bytes:
        """The secret of a new token."""
        request = self.create_delegation_token(3)
        hmac: bytes = self.kafka.call(request, 3).hmac
        self.kafka.call_until_ok(describing_tokens.DescribeDelegationTokenRequest(owners=None), 3)
        return hmac

    def renew_delegation_token(self, version: int) -> Any:
        return renewing.RenewDelegationTokenRequest(hmac=self._token(), renew_period_ms=1_800_000)

    def expire_delegation_token(self, version: int) -> Any:
        return expiring.ExpireDelegationTokenRequest(hmac=self._token(), expiry_time_period_ms=-1)

    def describe_delegation_token(self, version: int) -> Any:
        self._token()
        owner = describing_tokens.DescribeDelegationTokenOwner(principal_type="User", principal_name=USER)
        return describing_tokens.DescribeDelegationTokenRequest(owners=[owner])

    def alter_user_scram_credentials(self, version: int) -> Any:
        self.kafka = self.anonymous
        upsertion = altering.ScramCredentialUpsertion(
            name="golden",
            mechanism=SCRAM_SHA_256,
            iterations=4096,
            salt=b"salt",
            salted_password=bytes(range(32)),
        )
        deletion = altering.ScramCredentialDeletion(name="missing", mechanism=SCRAM_SHA_256)
        return altering.AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=[upsertion])

    def describe_user_scram_credentials(self, version: int) -> Any:
        self.kafka = self.anonymous
        self.kafka.call_until_ok(self.alter_user_scram_credentials(0), 0)
        time.sleep(0.5)
        users = [describing.UserName(name="golden"), describing.UserName(name="missing")]
        return describing.DescribeUserScramCredentialsRequest(users=users)
