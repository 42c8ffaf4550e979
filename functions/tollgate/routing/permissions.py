"""What the chat function must be allowed, and nothing else: read from the catalog.

ARNs are written for CloudFormation's `Fn::Sub`, which fills in partition, region and account.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tollgate.routing.schema import Routing

# Bedrock user guide, "Supported Regions and models for inference profiles" (2026-11-21): such a
# profile is a model's id behind where its requests may go.
_GEOGRAPHIES: Final = frozenset({"apac", "au", "ca", "eu", "global", "jp", "us", "us-gov"})
_BEDROCK: Final = "bedrock_runtime"
# An id becomes part of a policy: no wildcard, and nothing that YAML or Fn::Sub would read.
_UPSTREAM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*")


class NotPermissible(ValueError):
    """An upstream id that cannot stand in a policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """Sorted ARNs: what may be invoked, and which secrets may be read."""

    models: tuple[str, ...]
    secrets: tuple[str, ...]


def permissions(routing: Routing) -> Permissions:
    """What serving this catalog takes; NotPermissible if an id may not be written in a policy."""
    return Permissions(
        models=tuple(sorted(set(_models(routing)))), secrets=tuple(sorted(set(_secrets(routing))))
    )


def _models(routing: Routing) -> Iterator[str]:
    for model in routing.models.values():
        for endpoint in model.endpoints:
            provider = routing.providers[endpoint.provider]
            if provider.transport == _BEDROCK:
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


def _secrets(routing: Routing) -> Iterator[str]:
    for provider in routing.providers.values():
        if provider.key is not None and provider.key.secret is not None:
            # Secrets Manager ends an ARN with six characters of its own; as many question marks,
            # not a star, so that no longer name begins the same way.
            yield (
                "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}"
                f":secret:{provider.key.secret}-??????"
            )
