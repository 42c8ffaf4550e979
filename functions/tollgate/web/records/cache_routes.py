"""The route that deletes the answers stored for identical requests."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from tollgate.web.admission import By, Caller, admitted_router
from tollgate.web.services import Services


class ClearedCache(BaseModel):
    """The number of answers that were deleted."""

    deleted: int = Field(description="at most 1,000; if so, repeat the request for the rest")


def cache_routes(services: Services) -> APIRouter:
    """Return the router of `/v1/cache`."""
    router = admitted_router(services, prefix="/v1", tag="generations")

    @router.delete("/cache")
    async def clear_cache(principal: Caller, by: By) -> ClearedCache:
        """Delete the workspace's stored answers, which identical requests would get."""
        cache = services.answer_cache
        deleted = await cache.clear(principal.workspace_id, by=by) if cache is not None else 0
        return ClearedCache(deleted=deleted)

    return router
