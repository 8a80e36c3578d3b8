"""AlterUserScramCredentials (API key 51): set or remove SCRAM credentials of users (KIP-554).

There is only v0, which is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.controller.core.events import AlterScramCredentials, ScramDeletion, ScramUpsertion
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext


def failed(request: AlterUserScramCredentialsRequest, error: KafkaError) -> AlterUserScramCredentialsResponse:
    """The answer to a refused request."""
    users = {*(each.name for each in request.deletions), *(each.name for each in request.upsertions)}
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(
                user=user, error_code=int(error.code), error_message=error.message
            )
            for user in sorted(users)
        ]
    )


@handles(
    AlterUserScramCredentialsRequest,
    versions="0",
    needs=[on_cluster(AclOperation.ALTER)],
    error_response=failed,
    forwarded=True,
)
async def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, ctx: AdministrationContext
) -> AlterUserScramCredentialsResponse:
    """Each user succeeds or fails on its own."""
    deletions = tuple(ScramDeletion(each.name, each.mechanism) for each in request.deletions)
    upsertions = tuple(
        ScramUpsertion(
            each.name, each.mechanism, each.iterations, bytes(each.salt), bytes(each.salted_password)
        )
        for each in request.upsertions
    )
    event = AlterScramCredentials(deletions, upsertions)
    results = await ctx.node.controller.ask(event, requester=ctx.requester)
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(
                user=result.user, error_code=int(result.error), error_message=result.message
            )
            for result in results
        ]
    )
