"""The models that can be asked for, with prices and capabilities, as the catalog states them."""

from fnmatch import fnmatchcase
from typing import Annotated

from fastapi import APIRouter, Depends

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.principal import Principal
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.exclusions import shorten
from tollgate.web.model_shapes import (
    EndpointsReply,
    ModelObject,
    ModelsReply,
    model_endpoints,
    model_object,
    offers_of,
)
from tollgate.web.services import Services


def model_routes(services: Services) -> APIRouter:
    """`/v1/models`, and below it one model and its endpoints."""
    router = APIRouter(prefix="/v1", tags=["models"])
    anybody = Annotated[Principal | None, Depends(services.anybody)]

    async def catalog_of(principal: Principal | None) -> Catalog:
        return await services.catalogs.for_key(principal.key_id if principal else None)

    @router.get("/models", response_model_exclude_none=True)
    async def list_models(principal: anybody) -> ModelsReply:
        """All models, or with a key those it may use; prices are of the first endpoint, now."""
        catalog, now_s = await catalog_of(principal), services.clock.now_s()
        return ModelsReply(
            data=[
                model_object(catalog, slug, now_s=now_s)
                for slug in catalog.models
                if _allowed(slug, principal)
            ]
        )

    @router.get("/models/{author}/{slug}", response_model_exclude_none=True)
    async def one_model(author: str, slug: str, principal: anybody) -> ModelObject:
        """One model; OpenAI's `models.retrieve`."""
        catalog = await catalog_of(principal)
        name = _known(catalog, f"{author}/{slug}", principal)
        return model_object(catalog, name, now_s=services.clock.now_s())

    @router.get("/models/{alias}", response_model_exclude_none=True)
    async def model_of_alias(alias: str, principal: anybody) -> ModelObject:
        """The model that another name stands for."""
        catalog = await catalog_of(principal)
        slug = _known(catalog, alias, principal)
        return model_object(catalog, slug, now_s=services.clock.now_s())

    @router.get("/models/{author}/{slug}/endpoints", response_model_exclude_none=True)
    async def list_endpoints(author: str, slug: str, principal: anybody) -> EndpointsReply:
        """Who serves a model, at which price, and who rests after failures."""
        catalog = await catalog_of(principal)
        name = _known(catalog, f"{author}/{slug}", principal)
        ids = {offer.attempt.target.endpoint_id for offer in offers_of(catalog, name)}
        resting = await services.cooldowns.find_resting(ids, catalog.defaults.cooldown.policy)
        return EndpointsReply(
            data=model_endpoints(catalog, name, resting=resting, now_s=services.clock.now_s())
        )

    return router


def _known(catalog: Catalog, name: str, principal: Principal | None) -> str:
    """The model of a name or of an alias; RequestError where the caller has none of that name."""
    slug = catalog.target(name)
    if slug in catalog.models and _allowed(slug, principal):
        return slug
    hint = " or ".join(near for near in catalog.nearest(name) if _allowed(near, principal))
    raise RequestError(
        ErrorCode.MODEL_NOT_FOUND,
        f"There is no model {shorten(name)}." + (f" Did you mean {hint}?" if hint else ""),
        param="model",
    )


def _allowed(slug: str, principal: Principal | None) -> bool:
    if principal is None or principal.models is None:
        return True
    return any(fnmatchcase(slug, glob) for glob in principal.models)
