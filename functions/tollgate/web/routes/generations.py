"""Records of generations."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import is_id, without_prefix
from tollgate.core.principal import Principal
from tollgate.web.services import Services
from tollgate.web.shapes import GenerationObject, GenerationReply


def generation_routes(services: Services) -> APIRouter:
    """`/v1/generation`."""
    router = APIRouter(prefix="/v1", tags=["generations"])
    caller = Annotated[Principal, Depends(services.caller)]

    @router.get("/generation")
    async def show_generation(
        principal: caller,
        id_: Annotated[str, Query(alias="id", description="with or without its prefix")],
    ) -> GenerationReply:
        """One generation of this workspace, readable before its stream has ended."""
        bare = without_prefix(id_)
        record = None
        if is_id(bare):
            record = await services.generations.get(principal.workspace_id, bare)
        if record is None:
            raise RequestError(
                ErrorCode.NOT_FOUND, "There is no such generation in this workspace.", param="id"
            )
        return GenerationReply(data=GenerationObject.of(record))

    return router
