"""The locations in which endpoints run, taken from the rows of their providers."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from tollgate.providers.shared.bedrock_models import GEOGRAPHIES

# Countries of AWS regions, and of the geographies of inference profiles within one country: AWS
# Global Infrastructure, "AWS Regions" (2026-11-27).
_COUNTRIES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("us", "us-gov", "us-east-1", "us-east-2", "us-west-1", "us-west-2"), "US"),
    **dict.fromkeys(("us-gov-east-1", "us-gov-west-1"), "US"),
    **dict.fromkeys(("au", "ap-southeast-2", "ap-southeast-4"), "AU"),
    **dict.fromkeys(("ca", "ca-central-1", "ca-west-1"), "CA"),
    **dict.fromkeys(("jp", "ap-northeast-1", "ap-northeast-3"), "JP"),
    **dict.fromkeys(("ap-south-1", "ap-south-2"), "IN"),
    "af-south-1": "ZA",
    "ap-east-1": "HK",
    "ap-east-2": "TW",
    "ap-northeast-2": "KR",
    "ap-southeast-1": "SG",
    "ap-southeast-3": "ID",
    "ap-southeast-5": "MY",
    "ap-southeast-6": "NZ",
    "ap-southeast-7": "TH",
    "eu-central-1": "DE",
    "eu-central-2": "CH",
    "eu-north-1": "SE",
    "eu-south-1": "IT",
    "eu-south-2": "ES",
    "eu-west-1": "IE",
    "eu-west-2": "GB",
    "eu-west-3": "FR",
    "il-central-1": "IL",
    "me-central-1": "AE",
    "me-south-1": "BH",
    "mx-central-1": "MX",
    "sa-east-1": "BR",
}


class PlacedProvider(Protocol):
    """The fields of a provider that give its location."""

    @property
    def region(self) -> str | None:
        """AWS region."""
        ...

    @property
    def location(self) -> str | None:
        """Google Cloud location."""
        ...

    @property
    def countries(self) -> Sequence[str]:
        """Countries named in the row."""
        ...


class Place(Struct, frozen=True):
    """The region and the countries (ISO 3166 codes) of an endpoint; each is empty if unknown."""

    region: str
    countries: tuple[str, ...]


NOWHERE: Final = Place("", ())


def place_of(provider: PlacedProvider, upstream: str) -> Place:
    """Return the location of an endpoint; an inference profile may run anywhere in its
    geography.
    """
    region = provider.region or provider.location or ""
    geography = upstream.partition(".")[0]
    if provider.region is not None and geography in GEOGRAPHIES:
        region = geography
    elif provider.countries:
        return Place(region, tuple(provider.countries))
    country = _COUNTRIES.get(region)
    return Place(region, () if country is None else (country,))
