"""What the chat function must be allowed, and nothing else: read from the catalog.

ARNs are written for CloudFormation's `Fn::Sub`, which fills in partition, region and account.
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from tollgate.routing.chains import GuardrailSection
from tollgate.routing.schema import ModelSection, Routing

# Bedrock user guide, "Supported Regions and models for inference profiles" (2026-11-21): such a
# profile is a model's id behind where its requests may go.
_GEOGRAPHIES: Final = frozenset({"apac", "au", "ca", "eu", "global", "jp", "us", "us-gov"})
_BEDROCK: Final = frozenset({"bedrock_runtime", "bedrock_invoke"})
_SAGEMAKER: Final = "sagemaker_runtime"
# An id becomes part of a policy: no wildcard, and nothing that YAML or Fn::Sub would read.
_UPSTREAM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*")
_ENDPOINT: Final = re.compile(r"[A-Za-z0-9](-*[A-Za-z0-9]){0,62}")


class NotPermissible(ValueError):
    """An upstream id, or the name of an endpoint, that cannot stand in a policy."""


class Permissions(Struct, frozen=True, kw_only=True):
    """Sorted ARNs: what may be invoked and applied, and which secrets may be read."""

    models: tuple[str, ...]
    secrets: tuple[str, ...]
    guardrails: tuple[str, ...] = ()
    sagemaker_endpoints: tuple[str, ...] = ()


def compile_permissions(routing: Routing) -> Permissions:
    """What serving this catalog takes; NotPermissible if an id may not be written in a policy."""
    return Permissions(
        models=tuple(sorted(set(_models(routing)))),
        secrets=tuple(sorted(set(_secrets(routing)))),
        guardrails=tuple(sorted(set(_guardrails(routing)))),
        sagemaker_endpoints=tuple(sorted(set(_sagemaker_endpoints(routing)))),
    )


def _models(routing: Routing) -> Iterator[str]:
    for model in routing.models.values():
        for endpoint in model.endpoints:
            provider = routing.providers[endpoint.provider]
            if provider.transport in _BEDROCK:
                yield from _bedrock(endpoint.upstream, provider.region or "${AWS::Region}")


def _bedrock(upstream: str, region: str) -> Iterator[str]:
    """One upstream id; a profile also needs its model in every region that it may choose.

    Bedrock user guide, "Prerequisites for inference profiles" (2026-11-21). Which regions those are
    changes with AWS, the model does not: hence the one wildcard, which `global` needs empty.
    """
    if not _UPSTREAM.fullmatch(upstream):
        raise NotPermissible(f"{upstream!r} cannot be the id of a Bedrock model")
    geography, _, model = upstream.partition(".")
    ours = f"arn:${{AWS::Partition}}:bedrock:{region}"
    if upstream.startswith("arn:"):
        yield upstream
    elif geography in _GEOGRAPHIES:
        yield f"{ours}:${{AWS::AccountId}}:inference-profile/{upstream}"
        yield f"arn:${{AWS::Partition}}:bedrock:*::foundation-model/{model}"
    else:
        yield f"{ours}::foundation-model/{upstream}"


def _guardrails(routing: Routing) -> Iterator[str]:
    """Each guardrail in the regions of the endpoints it is for, by itself or through a route."""
    for model in routing.models.values():
        yield from _guarded(routing, model, None)
    for route in routing.routes.values():
        for rule in route.all_rules:
            for step in rule.steps:
                for slug in step:
                    yield from _guarded(routing, routing.models[slug], route.guardrail)


def _guarded(
    routing: Routing, model: ModelSection, of_route: GuardrailSection | None
) -> Iterator[str]:
    """Service Authorization Reference, Amazon Bedrock: `ApplyGuardrail` is on a guardrail's ARN."""
    for endpoint in model.endpoints:
        guardrail = endpoint.guardrail or of_route
        if guardrail is None:
            continue
        region = routing.providers[endpoint.provider].region or "${AWS::Region}"
        if guardrail.id.startswith("arn:"):
            yield guardrail.id
        else:
            ours = f"arn:${{AWS::Partition}}:bedrock:{region}:${{AWS::AccountId}}"
            yield f"{ours}:guardrail/{guardrail.id}"


def _sagemaker_endpoints(routing: Routing) -> Iterator[str]:
    for model in routing.models.values():
        for endpoint in model.endpoints:
            provider = routing.providers[endpoint.provider]
            if provider.transport != _SAGEMAKER:
                continue
            if not _ENDPOINT.fullmatch(endpoint.upstream):
                raise NotPermissible(f"{endpoint.upstream!r} cannot be the name of an endpoint")
            region = provider.region or "${AWS::Region}"
            # ARNs that SageMaker shows are in lower case, however an endpoint was named.
            for name in (endpoint.upstream, endpoint.upstream.lower()):
                yield (
                    f"arn:${{AWS::Partition}}:sagemaker:{region}"
                    f":${{AWS::AccountId}}:endpoint/{name}"
                )


def _secrets(routing: Routing) -> Iterator[str]:
    """Yield the ARN of each secret that holds a provider's key."""
    for provider in routing.providers.values():
        key = provider.key
        if key is not None and key.secret is not None:
            # Secrets Manager ends an ARN with six characters of its own; as many question marks,
            # not a star, so that no longer name begins the same way.
            yield (
                "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}"
                f":secret:{key.secret}-??????"
            )
