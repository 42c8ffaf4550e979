"""The route for the live catalog and its history; catalogs are published only from the command
line.
"""

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field

from tollgate.core.routing.publication import Publication
from tollgate.web.admission import Caller, admitted_router
from tollgate.web.services import Services
from tollgate.web.shapes import moment


class PublicationObject(BaseModel):
    """One publication: the catalog that went live, and the candidate whose test began."""

    revision: int = Field(description="number of the publication, from 1")
    live: str = Field(description="sha of the catalog that serves keys outside the test")
    candidate: str | None = Field(description="sha of the catalog tested on a share of the keys")
    percent: int = Field(description="share of keys that the candidate serves")
    withdrawn: str | None = Field(
        description="term whose breach made the gateway withdraw the previous revision's candidate;"
        " shown to keys of the operator's workspace"
    )
    published_at: datetime
    published_by: str | None = Field(description="shown to keys of the operator's workspace")
    commit: str | None = Field(description="shown to keys of the operator's workspace")

    @classmethod
    def of(cls, publication: Publication, *, shows_author: bool) -> "PublicationObject":
        """Build the object from a stored publication."""
        return cls(
            revision=publication.revision,
            live=publication.live,
            candidate=publication.candidate,
            percent=publication.percent,
            withdrawn=publication.withdrawn if shows_author else None,
            published_at=moment(publication.moved_s),
            published_by=publication.by if shows_author else None,
            commit=publication.commit if shows_author else None,
        )


class CatalogObject(BaseModel):
    """The live catalog, and up to 100 publications, latest first."""

    sha: str = Field(description="sha of the live catalog: the latest published or the bundled one")
    models: int
    routes: list[str]
    history: list[PublicationObject]


class CatalogReply(BaseModel):
    """The live catalog."""

    data: CatalogObject


def catalog_routes(services: Services) -> APIRouter:
    """Return the route `/v1/catalog`."""
    router = admitted_router(services, prefix="/v1", tag="models")

    @router.get("/catalog")
    async def show_catalog(principal: Caller) -> CatalogReply:
        """Show the live catalog, the candidate with its share of keys, and the history of both."""
        catalog = await services.catalogs.for_key(None)
        shows_author = services.is_operator(principal)
        return CatalogReply(
            data=CatalogObject(
                sha=catalog.sha,
                models=len(catalog.models),
                routes=sorted(catalog.routes),
                history=[
                    PublicationObject.of(publication, shows_author=shows_author)
                    for publication in await services.publications.history()
                ],
            )
        )

    return router
