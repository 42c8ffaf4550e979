"""Health checks: liveness of the process, readiness of the store."""

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from tollgate.web.admission import admitted_router
from tollgate.web.services import Services


class Health(BaseModel):
    """State of the service."""

    status: Literal["ok"] = "ok"
    catalog_sha: str = Field(description="SHA of the live catalog")


def health_routes(services: Services) -> APIRouter:
    """Return the routes `/v1/health/live` and `/v1/health/ready`."""
    router = admitted_router(services, prefix="/v1/health", tag="health")

    @router.get("/live")
    async def live() -> Health:
        """Reply without the store: the process runs."""
        return Health(catalog_sha=(await services.catalogs.for_key(None)).sha)

    @router.get("/ready")
    async def ready() -> Health:
        """Reply after a read of the store: the process can serve."""
        # No record has this id; the read raises service_unavailable if the store cannot be reached.
        await services.generations.get("-", services.ids.new_id())
        return Health(catalog_sha=(await services.catalogs.for_key(None)).sha)

    return router
