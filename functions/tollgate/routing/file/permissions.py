"""Computes the chat function's permissions, with ARNs for CloudFormation's `Fn::Sub`."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from tollgate.core.work.kinds import WORK_KINDS
from tollgate.providers.shared.bedrock_models import GEOGRAPHIES, base_model
from tollgate.routing.chains import GuardrailSection
from tollgate.routing.file.key_hosts import list_key_hosts
from tollgate.routing.file.promise_checks import list_shadow_models
from tollgate.routing.file.prompt_policies import without_refused
from tollgate.routing.routing_file import Routing
from tollgate.routing.scalars import merge_section
from tollgate.routing.schema import ModelSection

_BEDROCK: Final = "bedrock"
_MANTLE: Final = "bedrock-mantle"
_SAGEMAKER: Final = "sagemaker_runtime"
# Service Authorization Reference, Amazon Textract (2026-11-22): the action cannot be limited to a
# resource.
_TEXTRACT: Final = "textract:DetectDocumentText"
_MODEL: Final = ":foundation-model/"
# Ids become part of a policy, so wildcards and syntax of YAML and Fn::Sub are refused.
_UPSTREAM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*")
_ENDPOINT: Final = re.compile(r"[A-Za-z0-9](-*[A-Za-z0-9]){0,62}")


class NotPermissible(ValueError):
    """Raised for an upstream id or endpoint name that is not allowed in a policy."""


class MantleModels(Struct, frozen=True, kw_only=True, order=True):
    """Models that a routing file calls at one address of Bedrock's Mantle."""

    region: str
    host: str
    models: tuple[str, ...]


class MantleGrant(Struct, frozen=True, kw_only=True, order=True):
    """A resource of Bedrock's Mantle, and the models that may be called there."""

    resource: str
    models: tuple[str, ...]


class Permissions(Struct, frozen=True, kw_only=True):
    """Permissions of the chat function, each list sorted."""

    models: tuple[str, ...]
    """ARNs of models that are invoked with streaming."""
    secrets: tuple[str, ...]
    whole_models: tuple[str, ...] = ()
    """ARNs of models that are invoked without streaming."""
    bedrock_projects: tuple[str, ...] = ()
    """ARNs of the default projects in which Bedrock's Responses API creates responses."""
    mantle: tuple[MantleGrant, ...] = ()
    mantle_counted: tuple[MantleGrant, ...] = ()
    """Models whose tokens Mantle counts."""
    guardrails: tuple[str, ...] = ()
    counted_models: tuple[str, ...] = ()
    sagemaker_endpoints: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    """Actions that IAM cannot limit to particular resources."""
    batch_models: tuple[str, ...] = ()
    """ARNs of models for which jobs of Bedrock's batch inference are created."""
    batch_profiles: tuple[str, ...] = ()
    """ARNs of inference profiles and their models, which Bedrock invokes with its role."""
    batch_jobs: tuple[str, ...] = ()
    """ARN patterns of jobs of Bedrock's batch inference."""
    key_hosts: tuple[str, ...] = ()
    """Pinned pairs of a secret and a host, which no IAM policy enforces."""

    @property
    def all_names(self) -> tuple[str, ...]:
        """ARNs, actions without a resource, and pins."""
        bedrock = (*self.models, *self.whole_models, *self.counted_models, *self.guardrails)
        grants = (*self.mantle, *self.mantle_counted)
        mantle = chain.from_iterable((grant.resource, *grant.models) for grant in grants)
        batches = (*self.batch_models, *self.batch_jobs)
        arns = (
            *bedrock,
            *self.bedrock_projects,
            *self.secrets,
            *self.sagemaker_endpoints,
            *batches,
        )
        return (*arns, *mantle, *self.actions, *self.key_hosts)


def compile_permissions(routing: Routing) -> Permissions:
    """Return the permissions for a catalog; raise NotPermissible for an unsafe id.

    Endpoints that the gateway's prompt policy refuses get none.
    """
    routing = without_refused(routing)
    batches = [*_batches(routing)]
    return Permissions(
        models=tuple(sorted(set(_bedrock_models(routing, streams=True)))),
        whole_models=tuple(sorted(set(_bedrock_models(routing, streams=False)))),
        bedrock_projects=tuple(sorted(set(_bedrock_projects(routing)))),
        mantle=_mantle_grants(routing, counted=False),
        mantle_counted=_mantle_grants(routing, counted=True),
        secrets=tuple(sorted(set(_secrets(routing)))),
        guardrails=tuple(sorted(set(_guardrails(routing)))),
        counted_models=tuple(sorted(set(_counted_models(routing)))),
        sagemaker_endpoints=tuple(sorted(set(_sagemaker_endpoints(routing)))),
        actions=(_TEXTRACT,) if routing.ocr and routing.ocr.engine == "textract" else (),
        batch_models=_sorted(arn for batch in batches for arn in batch.models),
        batch_profiles=_sorted(arn for batch in batches for arn in batch.invoked),
        batch_jobs=_sorted(batch.jobs for batch in batches),
        key_hosts=tuple(pair.pin for pair in list_key_hosts(routing)),
    )


def secret_names(routing: Routing) -> tuple[str, ...]:
    """Return the sorted names of all secrets with keys for providers, tools and plugins."""
    keys = [provider.key for provider in routing.providers.values()]
    if routing.server_tools.web_search is not None:
        keys.append(routing.server_tools.web_search.key)
    if routing.ocr is not None:
        keys.append(routing.ocr.key)
    return tuple(sorted({key.secret for key in keys if key is not None and key.secret is not None}))


def routed_secret_names(routing: Routing) -> frozenset[str]:
    """Return the names of the secrets of providers to which a route or its shadow leads; all
    without a route.
    """
    rules = [rule for route in routing.routes.values() for rule in route.all_rules]
    models = {slug for rule in rules for step in rule.steps for slug in step}
    models |= {slug for route in routing.routes.values() for _, slug in list_shadow_models(route)}
    used = {
        endpoint.provider
        for slug, model in routing.models.items()
        if slug in models or not routing.routes
        for endpoint in model.endpoints
    }
    keys = [routing.providers[slug].key for slug in used]
    return frozenset(key.secret for key in keys if key is not None and key.secret is not None)


def bedrock_model_ids(routing: Routing) -> tuple[str, ...]:
    """Return the sorted ids of Bedrock's foundation models, except those stated as ARNs."""
    arns = chain(_bedrock_models(routing, streams=True), _bedrock_models(routing, streams=False))
    return tuple(sorted({arn.rpartition(_MODEL)[2] for arn in arns if _MODEL in arn}))


def mantle_models(routing: Routing) -> tuple[MantleModels, ...]:
    """Return the models of each address of Mantle that gets signed requests, sorted."""
    found: dict[tuple[str, str], set[str]] = {}
    for model in routing.models.values():
        for endpoint in model.endpoints:
            provider = routing.providers[endpoint.provider]
            if provider.signs_as == _MANTLE:
                host = urlsplit(provider.base_url or "").netloc
                found.setdefault((provider.region or "", host), set()).add(endpoint.upstream)
    return tuple(
        MantleModels(region=region, host=host, models=tuple(sorted(names)))
        for (region, host), names in sorted(found.items())
    )


def _is_judged_by_guardrail(model: ModelSection) -> bool:
    return WORK_KINDS[model.kind].is_judged_by_guardrail


def _bedrock_models(routing: Routing, *, streams: bool) -> Iterator[str]:
    """Yield the ARNs of chat models (if `streams` is set), or of models of other kinds."""
    for model in routing.models.values():
        if (model.kind == "chat") != streams or _is_judged_by_guardrail(model):
            continue
        for endpoint in model.endpoints:
            provider = routing.providers[endpoint.provider]
            if provider.signs_as == _BEDROCK:
                yield from _bedrock_arns(endpoint.upstream, provider.region or "${AWS::Region}")


def _bedrock_projects(routing: Routing) -> Iterator[str]:
    """Yield the ARN of the default project in each region where Bedrock creates responses.

    Bedrock user guide, "Responses API" and "Making inference requests" (2026-11-27): creating a
    response needs `InvokeModel` on the project, too. Reading, cancelling and deleting stored
    responses need `GetInvoke`, `CancelInvoke` and `DeleteInvoke`, but codec `openai_responses`
    stores none.
    """
    for model in routing.models.values():
        for endpoint in model.endpoints:
            provider = routing.providers[endpoint.provider]
            if provider.signs_as == _BEDROCK and provider.codec == "openai_responses":
                region = provider.region or "${AWS::Region}"
                ours = f"arn:${{AWS::Partition}}:bedrock:{region}:${{AWS::AccountId}}"
                yield f"{ours}:project/default"


def _mantle_grants(routing: Routing, *, counted: bool) -> tuple[MantleGrant, ...]:
    """Return the models of each region that Mantle serves, or only those whose tokens it counts.

    Service Authorization Reference, "Amazon Bedrock Powered by AWS Mantle" (2026-11-27):
    `CreateInference` and `CountTokens` apply to projects, and the condition key
    `bedrock-mantle:Model` limits them to models.
    """
    models: dict[str, set[str]] = {}
    for model in routing.models.values():
        for endpoint in model.endpoints:
            provider = routing.providers[endpoint.provider]
            counts = merge_section(provider.dialect, endpoint.dialect).counts_tokens
            if provider.signs_as == _MANTLE and (counts or not counted):
                models.setdefault(provider.region or "${AWS::Region}", set()).add(
                    _checked_id(endpoint.upstream)
                )
    return tuple(
        MantleGrant(
            resource=f"arn:${{AWS::Partition}}:bedrock-mantle:{region}"
            ":${AWS::AccountId}:project/*",
            models=tuple(sorted(names)),
        )
        for region, names in sorted(models.items())
    )


class _Batch(Struct, frozen=True, kw_only=True):
    """The resources of one model that runs in Bedrock's batch inference."""

    models: tuple[str, ...]
    invoked: tuple[str, ...]
    jobs: str


def _batches(routing: Routing) -> Iterator[_Batch]:
    """Yield the resources of each model whose lines are submitted to Bedrock's batch inference.

    Service Authorization Reference, Amazon Bedrock: `CreateModelInvocationJob` applies to models
    and jobs. Bedrock user guide, "Create a custom service role for batch inference" (2026-11-28):
    for an inference profile, the role needs `InvokeModel` on the profile and its models.
    """
    for model in routing.models.values():
        for endpoint in model.endpoints if model.kind == "chat" else ():
            provider = routing.providers[endpoint.provider]
            terms = provider.batch.terms if provider.batch else None
            if terms is None or not (terms.limits.needs_bucket and terms.covers(endpoint.upstream)):
                continue
            region = provider.region or "${AWS::Region}"
            models = tuple(_bedrock_arns(endpoint.upstream, region))
            is_profile = any(_MODEL not in arn for arn in models)
            yield _Batch(
                models=models,
                invoked=models if is_profile else (),
                jobs=f"arn:${{AWS::Partition}}:bedrock:{region}"
                ":${AWS::AccountId}:model-invocation-job/*",
            )


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


def _counted_models(routing: Routing) -> Iterator[str]:
    """Yield the ARN of each model whose tokens Bedrock counts.

    Service Authorization Reference, Amazon Bedrock: `CountTokens` applies to the ARN of a model,
    not of a profile.
    """
    for model in routing.models.values():
        for endpoint in () if _is_judged_by_guardrail(model) else model.endpoints:
            provider = routing.providers[endpoint.provider]
            counts = merge_section(provider.dialect, endpoint.dialect).counts_tokens
            counted = base_model(endpoint.upstream)
            if counts and counted is not None and provider.signs_as == _BEDROCK:
                region = provider.region or "${AWS::Region}"
                yield f"arn:${{AWS::Partition}}:bedrock:{region}::foundation-model/{counted}"


def _bedrock_arns(upstream: str, region: str) -> Iterator[str]:
    """Yield the ARNs for an upstream id; a profile also needs its model in every region.

    Bedrock user guide, "Prerequisites for inference profiles" (2026-11-21). AWS changes the regions
    of a profile but not its model, so the region is a wildcard. It also matches the ARN of a
    `global` profile, which has no region.
    """
    geography, _, model = _checked_id(upstream).partition(".")
    ours = f"arn:${{AWS::Partition}}:bedrock:{region}"
    if upstream.startswith("arn:"):
        yield upstream
    elif geography in GEOGRAPHIES:
        yield f"{ours}:${{AWS::AccountId}}:inference-profile/{upstream}"
        yield f"arn:${{AWS::Partition}}:bedrock:*::foundation-model/{model}"
    else:
        yield f"{ours}::foundation-model/{upstream}"


def _checked_id(upstream: str) -> str:
    if not _UPSTREAM.fullmatch(upstream):
        raise NotPermissible(f"{upstream!r} cannot be the id of a Bedrock model")
    return upstream


def _guardrails(routing: Routing) -> Iterator[str]:
    """Yield the ARNs of all guardrails in the regions of their endpoints."""
    for model in routing.models.values():
        yield from _guardrail_arns(routing, model, None)
    for route in routing.routes.values():
        for rule in route.all_rules:
            for step in rule.steps:
                for slug in step:
                    yield from _guardrail_arns(routing, routing.models[slug], route.guardrail)


def _guardrail_arns(
    routing: Routing, model: ModelSection, of_route: GuardrailSection | None
) -> Iterator[str]:
    """Yield the guardrail ARN for each endpoint of a model; an id that is not an ARN becomes one.

    Service Authorization Reference, Amazon Bedrock: `ApplyGuardrail` applies to a guardrail's ARN.
    """
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
            # SageMaker writes ARNs in lower case, so this spelling is permitted, too.
            for name in (endpoint.upstream, endpoint.upstream.lower()):
                yield (
                    f"arn:${{AWS::Partition}}:sagemaker:{region}"
                    f":${{AWS::AccountId}}:endpoint/{name}"
                )


def _secrets(routing: Routing) -> Iterator[str]:
    """Yield the ARN of each secret that contains a provider's key."""
    for name in secret_names(routing):
        # Secrets Manager appends six random characters to an ARN. Question marks match exactly
        # these; a star would also match longer names.
        yield (
            "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}"
            f":secret:{name}-??????"
        )
