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
from pykafka_broker.apis.forwarding import pass_on
from pykafka_broker.apis.needs import on_groups, on_topics, partly_on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.config.rules import TableRules, validate_broker_configs
from pykafka_broker.controller.channel import each_result
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
    from pykafka_broker.apis.context import AdministrationContext, ControllerContext, RequestContext

Change = TypeVar("Change", bound=Union[ConfigChange, NewConfigs])
Response = TypeVar("Response")
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
        return self.answer(AlterConfigsResult(*resource, error.code, error.message) for resource in asked)

    async def altered_here(
        self, request: Any, changes: Sequence[Change], ctx: RequestContext
    ) -> list[AlterConfigsResult]:
        """A result for each resource: the controller of this node decides on all that are allowed and not
        malformed. Resources that the client may not alter come last.
        """
        allowed, denied = _allowed(changes, ctx)
        results = _malformed(allowed, ctx)
        left = tuple(change for change in allowed if _resource(change) not in results)
        if left:
            event = self._event(left, request.validate_only)
            for result in await each_result(event, ctx.node.controller.ask(event, requester=ctx.requester)):
                results[result.resource_type, result.name] = result
        return [*(results[_resource(change)] for change in allowed), *denied]

    async def altered_elsewhere(self, request: Any, changes: Sequence[Change], ctx: RequestContext) -> Any:
        """The response to `changes`: those not refused here go to the controller of another node; an error
        response if the controller does not answer.
        """
        resources = [_resource(change) for change in changes]
        own = _refused_here(changes, ctx)

        left = set(resources) - own.keys()
        if not left:
            return self.answer(own[resource] for resource in resources)
        rest = [each for each in request.resources if (each.resource_type, each.resource_name) in left]
        response = await pass_on(
            type(request)(resources=rest, validate_only=request.validate_only), ctx, self.refused
        )
        known: Any = self.answer(own.values())
        if not isinstance(response, type(known)):
            return response
        answers = [*response.responses, *known.responses]
        found = {(each.resource_type, each.resource_name): each for each in answers}
        unknown = ErrorCode.UNKNOWN_SERVER_ERROR
        missing: Any = self.answer(
            AlterConfigsResult(*resource, unknown, unknown.message) for resource in resources
        )
        response.responses = [
            found.get((each.resource_type, each.resource_name), each) for each in missing.responses
        ]
        return response

    async def altered_on_controller(
        self, request: Any, changes: Sequence[Change], ctx: ControllerContext
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
    """The results of the resources that are refused here and not sent to the controller of another node."""
    refused = _malformed(changes, ctx)
    for change in changes:
        resource = _resource(change)
        if resource not in refused and (why := _invalid(change, ctx)):
            refused[resource] = AlterConfigsResult(*resource, *why)
    return refused


def _malformed(
    changes: Sequence[ConfigChange | NewConfigs], ctx: RequestContext
) -> dict[Resource, AlterConfigsResult]:
    times = Counter(map(_resource, changes))
    refused: dict[Resource, AlterConfigsResult] = {}
    for change in changes:
        resource = _resource(change)
        if times[resource] > 1:
            text = "Each resource must appear at most once."
            refused[resource] = AlterConfigsResult(*resource, ErrorCode.INVALID_REQUEST, text)
        elif why := refused_by_broker(change, ctx.node.metadata.node_id):
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
