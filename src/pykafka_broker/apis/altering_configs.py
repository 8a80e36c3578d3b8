"""What AlterConfigs and IncrementalAlterConfigs have in common: from a request to its changes, a broker's
refusals, the way to the controller, and the answer for each resource.

As in Kafka's ConfigAdminManager, malformed changes, changes of another broker, and values that this broker's
configuration does not allow are refused by a broker; the controller gets the rest. A listener of controllers
has only the ACLs checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union

from pykafka_broker.apis.denials import refusal_of_configs
from pykafka_broker.apis.forwarding import decided, pass_on
from pykafka_broker.apis.needs import on_groups, on_topics, partly_on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.config.rules import TableRules, validate_broker_configs
from pykafka_broker.controller.core.configs import refused_by_broker, values_after
from pykafka_broker.controller.core.events import (
    AlterConfigs,
    AlterConfigsResult,
    ConfigChange,
    IncrementalAlterConfigs,
    NewConfigs,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext, RequestContext

Change = TypeVar("Change", bound=Union[ConfigChange, NewConfigs])
Response = TypeVar("Response")
#: Why a resource that a request has several times is refused.
GIVEN_TWICE = "Each resource must appear at most once."
#: Type and name.
Resource = tuple[int, str]

NEEDS = [
    partly_on_cluster(AclOperation.ALTER_CONFIGS).asked_by_handler(),
    on_topics(AclOperation.ALTER_CONFIGS).asked_by_handler(),
    on_groups(AclOperation.ALTER_CONFIGS).asked_by_handler(),
]


class AlteringApi(Generic[Change, Response]):
    """One of the two APIs: its `response`, in it the class for one `resource`, the kind of `change` that it
    asks for, made of these `fields` of each config, the key first, and the `event` of the controller.
    """

    def __init__(
        self,
        response: Callable[..., Response],
        resource: type[Any],
        change: Callable[[int, str, Any], Change],
        fields: Sequence[str],
        event: Callable[[Any, bool], AlterConfigs | IncrementalAlterConfigs],
    ) -> None:
        self._response = response
        self._resource = resource
        self._change = change
        self._of_config = attrgetter(*fields)
        self._event = event

    def changes(self, request: Any, *, last_counts: bool = False) -> list[Change]:
        """The changes of each resource; with `last_counts`, only the last one of each key."""
        return [
            self._change(
                each.resource_type,
                each.resource_name,
                tuple(
                    {config.name: self._of_config(config) for config in each.configs}.values()
                    if last_counts
                    else map(self._of_config, each.configs)
                ),
            )
            for each in request.resources
        ]

    def answer(self, results: Iterable[AlterConfigsResult]) -> Response:
        """The response with these results."""
        return self._response(
            responses=[
                self._resource(
                    error_code=int(result.error),
                    error_message=result.message,
                    resource_type=result.resource_type,
                    resource_name=result.name,
                )
                for result in results
            ]
        )

    def refused(self, request: Any, error: KafkaError) -> Response:
        """All resources are refused with an error."""
        asked = [(each.resource_type, each.resource_name) for each in request.resources]
        return self.answer(AlterConfigsResult(*resource, error.code, error.explanation) for resource in asked)

    async def altered_by_broker(
        self,
        request: Any,
        changes: Sequence[Change],
        ctx: RequestContext,
        known: Iterable[AlterConfigsResult] = (),
    ) -> Any:
        """A broker's response, in the order of the request: with the results `known`, those of the `changes`
        that this broker refuses, and of the rest what the active controller decides.
        """
        own = {(each.resource_type, each.name): each for each in known} | _refused_here(changes, ctx)
        left = [change for change in changes if _resource(change) not in own]
        asked = [(each.resource_type, each.resource_name) for each in request.resources]
        if not left:
            return self.answer(own[resource] for resource in asked)
        rest = type(request)(
            resources=[
                each for each, resource in zip(request.resources, asked, strict=True) if resource not in own
            ],
            validate_only=request.validate_only,
        )

        async def here() -> Response:
            try:
                return self.answer(await self.altered_on_controller(rest, left, ctx))
            except KafkaError as error:
                return self.refused(rest, error)

        response = await decided(ctx, here, lambda: pass_on(rest, ctx, self.refused))
        unknown = ErrorCode.UNKNOWN_SERVER_ERROR
        unanswered = (AlterConfigsResult(*_resource(change), unknown, unknown.message) for change in left)
        before: Any = self.answer([*own.values(), *unanswered])
        if not isinstance(response, type(before)):
            return response
        answers = [*before.responses, *response.responses]
        found = {(each.resource_type, each.resource_name): each for each in answers}
        response.responses = [found[resource] for resource in asked]
        return response

    async def altered_on_controller(
        self, request: Any, changes: Sequence[Change], ctx: AdministrationContext
    ) -> list[AlterConfigsResult]:
        """A result for each resource, first of those that the client may not alter.

        Raises:
            KafkaError: all are refused.
        """
        allowed, denied = _allowed(changes, ctx)
        event = self._event(tuple(allowed), request.validate_only)
        return [*denied, *await ctx.node.controller.ask(event, requester=ctx.requester)]


def loggers_apart(changes: Iterable[Change]) -> tuple[list[Change], list[Change]]:
    """Changes of loggers, and changes in the metadata."""
    loggers: list[Change] = []
    kept: list[Change] = []
    for change in changes:
        (loggers if change.resource_type == ResourceType.BROKER_LOGGER else kept).append(change)
    return loggers, kept


def _resource(change: ConfigChange | NewConfigs) -> Resource:
    return change.resource_type, change.name


def _allowed(
    changes: Sequence[Change], ctx: AdministrationContext
) -> tuple[list[Change], list[AlterConfigsResult]]:
    """The changes that the client may make, and the results of the others. Those of loggers and of resources
    given twice are refused anyway.
    """
    times = Counter(map(_resource, changes))
    refusals = {
        resource: refusal_of_configs(ctx, AclOperation.ALTER_CONFIGS, *resource)
        for resource, count in times.items()
        if count == 1 and resource[0] != ResourceType.BROKER_LOGGER
    }
    denied = {resource: error for resource, error in refusals.items() if error}
    return [change for change in changes if _resource(change) not in denied], [
        AlterConfigsResult(*resource, error, error.message) for resource, error in denied.items()
    ]


def _refused_here(
    changes: Sequence[ConfigChange | NewConfigs], ctx: RequestContext
) -> dict[Resource, AlterConfigsResult]:
    """The results of the resources that this broker refuses itself. As in Apache Kafka, only the controller
    asks about the ACLs of these resources.
    """
    times = Counter(map(_resource, changes))
    refused: dict[Resource, AlterConfigsResult] = {}
    for change in changes:
        resource = _resource(change)
        if times[resource] > 1:
            refused[resource] = AlterConfigsResult(*resource, ErrorCode.INVALID_REQUEST, GIVEN_TWICE)
        elif why := refused_by_broker(change, ctx.node.metadata.node_id) or _invalid(change, ctx):
            refused[resource] = AlterConfigsResult(*resource, *why)
    return refused


def _invalid(change: ConfigChange | NewConfigs, ctx: RequestContext) -> tuple[ErrorCode, str | None] | None:
    """The error in the values that this broker, or all brokers, would have after the change."""
    if change.resource_type != ResourceType.BROKER:
        return None
    configs, current = ctx.node.configs, ctx.node.metadata.image.config(ResourceType.BROKER, change.name)
    try:
        validate_broker_configs(change.name, values_after(TableRules(configs), change, current), configs)
    except KafkaError as error:
        return error.code, error.explanation
    return None
