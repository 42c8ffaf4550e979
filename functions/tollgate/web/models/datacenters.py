"""Places in which a model's endpoints run, as `/models` shows them."""

from typing import Self

from pydantic import BaseModel, Field

from tollgate.routing.places import place_of
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.schema import EndpointSection, ModelSection


class Datacenter(BaseModel):
    """A place in which an endpoint runs; countries are ISO 3166 codes."""

    region: str | None = Field(
        default=None, description="AWS region or geography, or Google Cloud location."
    )
    country_codes: list[str] | None = None

    @classmethod
    def of(cls, catalog: Catalog, endpoint: EndpointSection) -> Self | None:
        """Return the place of an endpoint; None if it is not known."""
        place = place_of(catalog.providers[endpoint.provider], endpoint.upstream)
        if not (place.region or place.countries):
            return None
        return cls(region=place.region or None, country_codes=list(place.countries) or None)


def list_datacenters(catalog: Catalog, *models: ModelSection) -> list[Datacenter] | None:
    """Return the known places of models, each once; None without any."""
    found: list[Datacenter] = []
    for model in models:
        for endpoint in model.endpoints:
            place = Datacenter.of(catalog, endpoint)
            if place is not None and place not in found:
                found.append(place)
    return found or None
