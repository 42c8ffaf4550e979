"""Health checks: liveness of the process, readiness of the store."""

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from tollgate.web.admission import admitted_router
from tollgate.web.services import Services


class Health(BaseModel):
    """The state of the service."""

    status: Literal["ok"] = "ok"
    catalog_sha: str = Field(description="SHA of the live catalog")


def health_routes(services: Services) -> APIRouter:
    """Return the routes `/v1/health/live` and `/v1/health/ready`."""
    router = admitted_router(services, prefix="/v1/health", tag="health")

    @router.get("/live")
    async def live() -> Health:
        """Report that the process runs, without access to the store."""
        return Health(catalog_sha=(await services.catalogs.for_key(None)).sha)

    @router.get("/ready")
    async def ready() -> Health:
        """Report that the process can serve requests, after a read from the store."""
        # No record has this id; the read raises service_unavailable if the store cannot be reached.
        await services.generations.get("-", services.ids.new_id())
        return Health(catalog_sha=(await services.catalogs.for_key(None)).sha)

    return router
