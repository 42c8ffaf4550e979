"""The models that can be asked for, with prices and capabilities, as the catalog states them."""

from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from fastapi import APIRouter, Depends
from pydantic import BaseModel

from tollgate.core.principal import Principal
from tollgate.routing.price import Price
from tollgate.routing.schema import ModelSection
from tollgate.web.services import Services

_PER_TOKEN_EXPONENT = -6


class Architecture(BaseModel):
    """What goes in and what comes out."""

    input_modalities: list[str]
    output_modalities: list[str]


class Pricing(BaseModel):
    """USD per token, or per request, as decimal strings."""

    prompt: str
    completion: str
    input_cache_read: str | None = None
    input_cache_write: str | None = None
    request: str | None = None


class ModelObject(BaseModel):
    """A model, in OpenAI's shape and OpenRouter's."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str
    name: str
    context_length: int
    architecture: Architecture
    pricing: Pricing
    supported_parameters: list[str]
    max_completion_tokens: int


class ModelsReply(BaseModel):
    """The models of the catalog."""

    object: Literal["list"] = "list"
    data: list[ModelObject]


def model_routes(services: Services) -> APIRouter:
    """`/v1/models`."""
    router = APIRouter(prefix="/v1", tags=["models"])
    anybody = Annotated[Principal | None, Depends(services.anybody)]

    @router.get("/models")
    async def list_models(principal: anybody) -> ModelsReply:
        """All models, or with a key those it may use; prices are of the first endpoint."""
        catalog = await services.catalogs.of(principal.key_id if principal else None)
        return ModelsReply(
            data=[
                _model(slug, section)
                for slug, section in catalog.models.items()
                if _allowed(slug, principal)
            ]
        )

    return router


def _allowed(slug: str, principal: Principal | None) -> bool:
    if principal is None or principal.models is None:
        return True
    return any(fnmatchcase(slug, glob) for glob in principal.models)


def _model(slug: str, section: ModelSection) -> ModelObject:
    return ModelObject(
        id=slug,
        created=0,
        owned_by=slug.partition("/")[0],
        name=section.name,
        context_length=section.context,
        architecture=Architecture(input_modalities=list(section.input), output_modalities=["text"]),
        pricing=_pricing(section.endpoints[0].price.price),
        supported_parameters=sorted(_parameters(section)),
        max_completion_tokens=section.max_output,
    )


def _parameters(section: ModelSection) -> set[str]:
    parameters = {"max_completion_tokens", "max_tokens", "stop", "temperature", "top_p"}
    if "tools" in section.supports:
        parameters |= {"parallel_tool_calls", "tool_choice", "tools"}
    return parameters


def _pricing(price: Price) -> Pricing:
    return Pricing(
        prompt=_per_token(price.input),
        completion=_per_token(price.output),
        input_cache_read=None if price.cache_read is None else _per_token(price.cache_read),
        input_cache_write=None if price.cache_write is None else _per_token(price.cache_write),
        request=None if price.request is None else f"{price.request:f}",
    )


def _per_token(usd_per_million: Decimal) -> str:
    text = f"{usd_per_million.scaleb(_PER_TOKEN_EXPONENT):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
