"""Policies on where prompts may be processed, and whether providers may train on or store them."""

import re
from collections.abc import Collection
from typing import Final, Literal

from msgspec import Struct

PolicyOwner = Literal["gateway", "member", "team", "key", "request"]
Training = Literal["none", "used"]

NO_TRAINING: Final = "no_training"
NO_RETENTION: Final = "no_retention"
_CODES: Final = re.compile("[A-Z]{2}")
# europa.eu, "EU countries", 2026-11-27.
EU: Final = frozenset(
    _CODES.findall(
        "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK"
    )
)
# ISO 3166-1 alpha-2, officially assigned codes (iso.org, 2026-11-27).
COUNTRIES: Final = EU | frozenset(
    _CODES.findall(
        "AD AE AF AG AI AL AM AO AQ AR AS AU AW AX AZ BA BB BD BF BH BI BJ BL BM BN BO BQ BR BS BT "
        "BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX DJ DM DO DZ EC EG EH ER ET "
        "FJ FK FM FO GA GB GD GE GF GG GH GI GL GM GN GP GQ GS GT GU GW GY HK HM HN HT ID IL IM IN "
        "IO IQ IR IS JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LY MA MC MD "
        "ME MF MG MH MK ML MM MN MO MP MQ MR MS MU MV MW MX MY MZ NA NC NE NF NG NI NP NR NU NZ OM "
        "PA PE PF PG PH PK PM PN PR PS PW PY QA RE RS RU RW SA SB SC SD SG SH SJ SL SM SN SO SR SS "
        "ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE "
        "VG VI VN VU WF WS YE YT ZA ZM ZW"
    )
)
_GEOGRAPHY: Final = "eu"


class PromptUse(Struct, frozen=True, kw_only=True):
    """The use that a provider makes of prompts, as far as its own pages state it."""

    training: Training | None = None
    """None if the provider states nothing."""
    retention_days: int | None = None
    """The longest time for which prompts are stored; None if the provider states nothing."""


UNSTATED: Final = PromptUse()


class PromptPolicy(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Demands that an endpoint must be known to meet before it gets a prompt."""

    owner: PolicyOwner = "request"
    regions: tuple[str, ...] = ()
    """`eu` or ISO 3166 codes of countries; empty for anywhere."""
    no_training: bool = False
    no_retention: bool = False

    @property
    def text(self) -> str:
        """The owner and the demands: `team: eu,no_training`."""
        demands = {NO_TRAINING: self.no_training, NO_RETENTION: self.no_retention}
        stated = (*self.regions, *(name for name, is_stated in demands.items() if is_stated))
        return f"{self.owner}: {','.join(stated)}"

    def refuse(self, use: PromptUse, region: str, countries: Collection[str]) -> str | None:
        """Return what an endpoint is not known to do; None if it meets the policy.

        An endpoint whose provider does not state something does not meet a policy on it.
        """
        if self.regions and not self._is_inside(region, countries):
            return f"to stay in {', '.join(self.regions)}"
        if self.no_training and use.training != "none":
            return "to leave prompts out of training"
        if self.no_retention and use.retention_days != 0:
            return "to discard prompts"
        return None

    def _is_inside(self, region: str, countries: Collection[str]) -> bool:
        named = set(self.regions)
        allowed = named | (EU if _GEOGRAPHY in named else frozenset())
        if countries:
            return allowed.issuperset(countries)
        return region == _GEOGRAPHY and allowed.issuperset(EU)


class UnmetPolicy(Struct, frozen=True, kw_only=True):
    """A policy's demand that a service is not known to meet, and the policy's owner."""

    demand: str
    owner: PolicyOwner


def find_unmet(
    policies: Collection[PromptPolicy], use: PromptUse, countries: Collection[str]
) -> UnmetPolicy | None:
    """Return the first demand that a service is not known to meet; None if it meets all."""
    for policy in policies:
        if demand := policy.refuse(use, "", countries):
            return UnmetPolicy(demand=demand, owner=policy.owner)
    return None


def parse_policy(text: str | None, owner: PolicyOwner) -> PromptPolicy | None:
    """Return the policy that a setting states as `eu,CH,no_training,no_retention`; None without.

    Raises ValueError for an unknown word.
    """
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    flags = {NO_TRAINING, NO_RETENTION}
    return PromptPolicy(
        owner=owner,
        regions=tuple(check_region(word) for word in words if word not in flags),
        no_training=NO_TRAINING in words,
        no_retention=NO_RETENTION in words,
    )


def check_region(region: str) -> str:
    """Return a region in its common spelling; raise ValueError for an unknown one."""
    if region.lower() == _GEOGRAPHY:
        return _GEOGRAPHY
    country = region.upper()
    if country not in COUNTRIES:
        raise ValueError(f"{region[:32]!r} is neither eu nor the ISO 3166 code of a country")
    return country
