"""DescribeUserScramCredentials (API key 50): the SCRAM mechanisms of users, and their iterations (KIP-554).

There is only v0, which is flexible. The answer has no secrets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.controller.core.scram_credentials import described_users
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(
    request: DescribeUserScramCredentialsRequest, error: KafkaError
) -> DescribeUserScramCredentialsResponse:
    """The answer to a refused request; it names no user."""
    return DescribeUserScramCredentialsResponse(
        error_code=int(error.code),
        error_message=error.message,
        results=[
            DescribeUserScramCredentialsResult(
                user="", error_code=int(error.code), error_message=error.message, credential_infos=[]
            )
            for _ in request.users or ()
        ],
    )


@handles(
    DescribeUserScramCredentialsRequest,
    versions="0",
    needs=[on_cluster(AclOperation.DESCRIBE)],
    error_response=failed,
)
def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, ctx: RequestContext
) -> DescribeUserScramCredentialsResponse:
    """Answers from the metadata of this node; without names all users."""
    users = [each.name for each in request.users or ()]
    return DescribeUserScramCredentialsResponse(
        error_code=int(ErrorCode.NONE),
        # As in Apache Kafka, the message is empty and not null.
        error_message="",
        results=[
            DescribeUserScramCredentialsResult(
                user=each.user,
                error_code=int(each.error),
                error_message=each.message,
                credential_infos=[
                    CredentialInfo(mechanism=mechanism, iterations=iterations)
                    for mechanism, iterations in each.credentials
                ],
            )
            for each in described_users(ctx.node.metadata.image, users)
        ],
    )
