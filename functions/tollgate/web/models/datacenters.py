"""Locations of a model's endpoints, as shown by `/models`."""

from typing import Self

from pydantic import BaseModel, Field

from tollgate.core.prompt_policy import Training
from tollgate.routing.places import place_of
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.schema import EndpointSection, ModelSection


class PromptUseFields(BaseModel):
    """The use that a provider makes of prompts; absent if the provider does not state it."""

    training: Training | None = Field(
        default=None, description="`none` if prompts are not used for training."
    )
    retention_days: int | None = Field(
        default=None, description="Longest storage of prompts; 0 for none."
    )


class Datacenter(BaseModel):
    """The location of an endpoint; countries are ISO 3166 codes."""

    region: str | None = Field(
        default=None, description="AWS region or geography, or Google Cloud location."
    )
    country_codes: list[str] | None = None

    @classmethod
    def of(cls, catalog: Catalog, endpoint: EndpointSection) -> Self | None:
        """Return the location of an endpoint; None if it is unknown."""
        place = place_of(catalog.providers[endpoint.provider], endpoint.upstream)
        if not (place.region or place.countries):
            return None
        return cls(region=place.region or None, country_codes=list(place.countries) or None)


def list_datacenters(catalog: Catalog, *models: ModelSection) -> list[Datacenter] | None:
    """Return the distinct known locations of models; None if none is known."""
    datacenters: list[Datacenter] = []
    for model in models:
        for endpoint in model.endpoints:
            datacenter = Datacenter.of(catalog, endpoint)
            if datacenter is not None and datacenter not in datacenters:
                datacenters.append(datacenter)
    return datacenters or None
