"""Routes that list the models, routes, aliases and presets of the catalog, with prices."""

from typing import Annotated, Final, Literal, get_args

from fastapi import APIRouter, Header, Query
from pydantic import BaseModel, Field

from tollgate.core.errors import ErrorCode, RequestError, invalid_request
from tollgate.core.principal import Principal
from tollgate.core.request import PRESET_PREFIX, Modality
from tollgate.core.work.kinds import WORK_KINDS
from tollgate.ingress.formats import ANTHROPIC_VERSION
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.exclusions import list_usable_models, shorten
from tollgate.routing.planning.unknown_names import describe_unknown
from tollgate.web.admission import OptionalCaller, admitted_router
from tollgate.web.models.claude_model_shapes import (
    ClaudeModelObject,
    ClaudeModelsReply,
    claude_model,
    claude_models,
)
from tollgate.web.models.codex_model_shapes import CodexModel, codex_models
from tollgate.web.models.endpoint_status import find_status
from tollgate.web.models.model_shapes import (
    SHOWN_MODALITIES,
    EndpointsReply,
    ModelEndpoints,
    ModelObject,
    model_endpoints,
    name_object,
    offers_of,
)
from tollgate.web.services import Services

_PAGE_MAX: Final = 1_000
_ALL: Final = "all"
# The modalities by which lists can be filtered: the inputs and outputs of models.
_MODALITIES: Final = frozenset(
    {
        *(SHOWN_MODALITIES.get(name, name) for name in get_args(Modality)),
        *(kind.makes for kind in WORK_KINDS.values()),
    }
)
AnthropicVersion = Annotated[str | None, Header(alias=ANTHROPIC_VERSION)]

MadeModalities = Annotated[
    str | None,
    Query(max_length=64, description="Only models that make one of these: `text,rerank`."),
]
HandledModalities = Annotated[
    str | None, Query(max_length=64, description="Only models that accept or make one of these.")
]


class ModelsReply(BaseModel):
    """The models, routes, aliases and presets of the catalog."""

    object: Literal["list"] = "list"
    data: list[ModelObject]
    total_count: int
    # OpenRouter's SDKs require the null. Replies omit null fields, but keep nulls in dicts.
    links: dict[Literal["next"], None] = Field(
        default={"next": None}, description="`next` is null, because the list has only one page."
    )
    models: list[CodexModel] | None = Field(
        default=None, description="For Codex, which sends `client_version`: models with tools."
    )


def model_routes(services: Services) -> APIRouter:
    """Return the routes of all models, one model, and a model's endpoints."""
    router = admitted_router(services, prefix="/v1", tag="models")

    async def catalog_of(principal: Principal | None) -> Catalog:
        return await services.catalogs.for_key(principal.key_id if principal else None)

    @router.get("/models", response_model_exclude_none=True)
    async def list_models(
        principal: OptionalCaller,
        *,
        anthropic_version: AnthropicVersion = None,
        client_version: str | None = None,
        limit: Annotated[int, Query(ge=1, le=_PAGE_MAX)] = _PAGE_MAX,
        after_id: str | None = None,
        before_id: str | None = None,
        output_modalities: MadeModalities = None,
        modality: HandledModalities = None,
    ) -> ModelsReply | ClaudeModelsReply:
        """List all models, routes, aliases and presets; with a key, only those that the key may
        use.

        Retired models are left out, unless a successor takes their place. Prices are the current
        ones of the first endpoint. A request with `anthropic-version` gets Anthropic's list, in
        pages by `limit`, `after_id` and `before_id`; all others get the whole list. A request with
        `client_version`, which Codex sends, gets `models` in Codex's format as well as `data`.
        """
        catalog, now_s = await catalog_of(principal), services.clock.now_s()
        presets = (f"{PRESET_PREFIX}{slug}" for slug in catalog.presets.rows)
        usable = {
            name: list_usable_models(catalog, name, principal)
            for name in (*catalog.models, *catalog.routes, *catalog.aliases, *presets)
        }
        shown = [
            name_object(catalog, name, models, now_s=now_s)
            for name, models in usable.items()
            if not all(catalog.models[slug].is_refused_at(now_s) for slug in models)
        ]
        shown = _making(_parse_modalities(output_modalities, "output_modalities"), shown)
        shown = _handling(_parse_modalities(modality, "modality"), shown)
        if anthropic_version is not None:
            chats = _making(frozenset({"text"}), shown)
            return claude_models(chats, limit=limit, after_id=after_id, before_id=before_id)
        if client_version is None:
            return ModelsReply(data=shown, total_count=len(shown))
        return ModelsReply(data=shown, total_count=len(shown), models=list(codex_models(shown)))

    @router.get("/models/{author}/{slug}/endpoints", response_model_exclude_none=True)
    async def list_endpoints(author: str, slug: str, principal: OptionalCaller) -> EndpointsReply:
        """List the endpoints of a model, with prices, cooldowns, speeds and faults of keys."""
        catalog = await catalog_of(principal)
        name = _resolve(catalog, f"{author}/{slug}", principal)
        return EndpointsReply(data=await _endpoints_of(services, catalog, name))

    @router.get("/models/{name:path}", response_model_exclude_none=True)
    async def show_model(
        name: str, principal: OptionalCaller, anthropic_version: AnthropicVersion = None
    ) -> ModelObject | ClaudeModelObject:
        """Show one model, route or alias, like OpenAI's or Anthropic's `models.retrieve`."""
        catalog = await catalog_of(principal)
        models = list_usable_models(catalog, name, principal)
        if not models:
            raise _unknown(catalog, name, principal)
        shown = name_object(catalog, name, models, now_s=services.clock.now_s())
        return shown if anthropic_version is None else claude_model(shown)

    return router


async def _endpoints_of(services: Services, catalog: Catalog, slug: str) -> ModelEndpoints:
    targets = [offer.attempt.target for offer in offers_of(catalog, slug)]
    status = await find_status(services, catalog, targets)
    return model_endpoints(catalog, slug, status, now_s=services.clock.now_s())


def _parse_modalities(listed: str | None, param: str) -> frozenset[str]:
    """Return the modalities in a filter, or none for `all`; raise RequestError for an
    unknown one.
    """
    names = frozenset((listed or _ALL).split(","))
    if unknown := names - _MODALITIES - {_ALL}:
        raise invalid_request(
            f"{param} has {shorten(min(unknown))}; possible are {', '.join(sorted(_MODALITIES))}.",
            param,
        )
    return frozenset() if _ALL in names else names


def _making(modalities: frozenset[str], shown: list[ModelObject]) -> list[ModelObject]:
    """Return the models that can make one of the named modalities; all models if none is named."""
    if not modalities:
        return shown
    return [model for model in shown if modalities & {*model.architecture.output_modalities}]


def _handling(modalities: frozenset[str], shown: list[ModelObject]) -> list[ModelObject]:
    """Return the models that accept or can make one of the named modalities; all if
    none is named.
    """
    if not modalities:
        return shown
    return [
        model
        for model in shown
        if modalities
        & {*model.architecture.input_modalities, *model.architecture.output_modalities}
    ]


def _resolve(catalog: Catalog, name: str, principal: Principal | None) -> str:
    """Return the slug of the model that a name or alias stands for.

    Raises RequestError if there is no such model, or if the caller may not use it.
    """
    slug = catalog.target(name)
    if slug in catalog.models and list_usable_models(catalog, name, principal):
        return slug
    raise _unknown(catalog, name, principal)


def _unknown(catalog: Catalog, name: str, principal: Principal | None) -> RequestError:
    message = describe_unknown(
        catalog,
        name,
        lambda near: near != name and bool(list_usable_models(catalog, near, principal)),
    )
    return RequestError(ErrorCode.MODEL_NOT_FOUND, message, param="model")
