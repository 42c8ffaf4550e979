"""What the chat function must be allowed, and nothing else: read from the catalog.

ARNs are written for CloudFormation's `Fn::Sub`, which fills in partition, region and account.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tollgate.routing.schema import ProviderSection, Routing

# Bedrock user guide, "Supported Regions and models for inference profiles" (2026-11-21): such a
# profile is a model's id behind where its requests may go.
_GEOGRAPHIES: Final = frozenset({"apac", "au", "ca", "eu", "global", "jp", "us", "us-gov"})
_BEDROCK: Final = ("bedrock_runtime", "bedrock_invoke")
_SAGEMAKER: Final = "sagemaker_runtime"
# An id becomes part of a policy: no wildcard, and nothing that YAML or Fn::Sub would read.
_UPSTREAM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*")


class NotPermissible(ValueError):
    """An upstream id that cannot stand in a policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """Sorted ARNs: guardrails to apply, models and endpoints to invoke, secrets to read."""

    guardrails: tuple[str, ...]
    models: tuple[str, ...]
    endpoints: tuple[str, ...]
    secrets: tuple[str, ...]


def permissions(routing: Routing) -> Permissions:
    """What serving this catalog takes; NotPermissible if an id may not be written in a policy."""
    return Permissions(
        guardrails=_sorted(_guardrails(routing)),
        models=_sorted(_models(routing)),
        endpoints=_sorted(_endpoints(routing)),
        secrets=_sorted(_secrets(routing)),
    )


def _sorted(arns: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(arns)))


def _guardrails(routing: Routing) -> Iterator[str]:
    """An endpoint's where its provider is, a route's wherever Bedrock is."""
    regions = {it.region for it in routing.providers.values() if it.transport in _BEDROCK}
    for model in routing.models.values():
        for endpoint in model.endpoints:
            if endpoint.guardrail is not None:
                region = routing.providers[endpoint.provider].region
                yield _guardrail(endpoint.guardrail.id, region)
    for route in routing.routes.values():
        if route.guardrail is not None:
            yield from (_guardrail(route.guardrail.id, region) for region in regions)


def _guardrail(name: str, region: str | None) -> str:
    if name.startswith("arn:"):
        return name
    where = region or "${AWS::Region}"
    return f"arn:${{AWS::Partition}}:bedrock:{where}:${{AWS::AccountId}}:guardrail/{name}"


def _models(routing: Routing) -> Iterator[str]:
    for provider, upstream in _offers(routing):
        if provider.transport in _BEDROCK:
            yield from _bedrock(upstream, provider.region or "${AWS::Region}")


def _endpoints(routing: Routing) -> Iterator[str]:
    for provider, upstream in _offers(routing):
        if provider.transport == _SAGEMAKER:
            region = provider.region or "${AWS::Region}"
            # SageMaker writes the names in its ARNs in lower case.
            name = _checked(upstream).lower()
            yield (
                f"arn:${{AWS::Partition}}:sagemaker:{region}:${{AWS::AccountId}}:endpoint/{name}"
            )


def _offers(routing: Routing) -> Iterator[tuple[ProviderSection, str]]:
    for model in routing.models.values():
        for endpoint in model.endpoints:
            yield routing.providers[endpoint.provider], endpoint.upstream


def _checked(upstream: str) -> str:
    if not _UPSTREAM.fullmatch(upstream):
        raise NotPermissible(f"{upstream!r} cannot stand in a policy")
    return upstream


def _bedrock(upstream: str, region: str) -> Iterator[str]:
    """One upstream id; a profile also needs its model in every region that it may choose.

    Bedrock user guide, "Prerequisites for inference profiles" (2026-11-21). Which regions those are
    changes with AWS, the model does not: hence the one wildcard, which `global` needs empty.
    """
    geography, _, model = _checked(upstream).partition(".")
    ours = f"arn:${{AWS::Partition}}:bedrock:{region}"
    if upstream.startswith("arn:"):
        yield upstream
    elif geography in _GEOGRAPHIES:
        yield f"{ours}:${{AWS::AccountId}}:inference-profile/{upstream}"
        yield f"arn:${{AWS::Partition}}:bedrock:*::foundation-model/{model}"
    else:
        yield f"{ours}::foundation-model/{upstream}"


def _secrets(routing: Routing) -> Iterator[str]:
    sections = (routing.providers, routing.plugins, routing.server_tools)
    for section in (it for named in sections for it in named.values()):
        if section.key is not None and section.key.secret is not None:
            # Secrets Manager ends an ARN with six characters of its own; as many question marks,
            # not a star, so that no longer name begins the same way.
            yield (
                "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}"
                f":secret:{section.key.secret}-??????"
            )
