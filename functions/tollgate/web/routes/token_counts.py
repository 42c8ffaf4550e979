"""The route that counts the tokens of a Messages request."""

from typing import Annotated, Final

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field
from starlette.requests import Request

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.ingress.formats import MESSAGES
from tollgate.routing.planning.exclusions import shorten
from tollgate.routing.planning.prompt_size import PromptSize
from tollgate.routing.planning.usable import list_usable_models
from tollgate.web.admission import Caller, admitted_router
from tollgate.web.services import Services

# What API Gateway lets through to a function.
_BODY_BYTES_MAX: Final = 6_000_000
_COUNTED_BY: Final = "x-tollgate-token-count"
_BODY: Final = {
    "required": True,
    "content": {
        "application/json": {"schema": {"$ref": "#/components/schemas/CountTokensRequest"}}
    },
}


class TokenCount(BaseModel):
    """The tokens of a prompt."""

    input_tokens: Annotated[int, Field(ge=0)]


def token_count_routes(services: Services) -> APIRouter:
    """Build the router of `/v1/messages/count_tokens`."""
    router = admitted_router(
        services, prefix=MESSAGES.path, tag=MESSAGES.tag, body_bytes_max=_BODY_BYTES_MAX
    )

    @router.post("/count_tokens", openapi_extra={"requestBody": _BODY})
    async def count_tokens(principal: Caller, request: Request, response: Response) -> TokenCount:
        """Count the tokens of a Messages request, free of charge.

        The count is an estimate by size, as `x-tollgate-token-count: estimate` says.
        """
        # Imported with its first request, as the format is.
        from tollgate.ingress.messages.parse import parse_count_request

        asked = parse_count_request(await request.body())
        catalog = await services.catalogs.for_key(principal.key_id)
        if not list_usable_models(catalog, asked.model, principal):
            raise RequestError(
                ErrorCode.MODEL_NOT_FOUND,
                f"There is no model {shorten(asked.model)} for this key.",
                param="model",
            )
        response.headers[_COUNTED_BY] = "estimate"
        return TokenCount(input_tokens=PromptSize.of(asked).estimate)

    return router
