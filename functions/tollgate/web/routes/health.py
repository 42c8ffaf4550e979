"""Whether the service runs, and whether it can serve."""

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

from tollgate.web.services import Services


class Health(BaseModel):
    """It runs; `catalog_sha` names the routing it serves."""

    status: Literal["ok"] = "ok"
    catalog_sha: str


def health_routes(services: Services) -> APIRouter:
    """`/v1/health/live` and `/v1/health/ready`."""
    router = APIRouter(prefix="/v1/health", tags=["health"])

    @router.get("/live")
    async def live() -> Health:
        """The process answers."""
        return Health(catalog_sha=(await services.catalogs.for_key(None)).sha)

    @router.get("/ready")
    async def ready() -> Health:
        """The store answers too."""
        # A record that is not there: reading it raises service_unavailable if the store is away.
        await services.generations.get("-", services.ids.new_id())
        return Health(catalog_sha=(await services.catalogs.for_key(None)).sha)

    return router
