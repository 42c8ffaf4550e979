"""Conversion of a LiteLLM deployment to an endpoint with a provider, a price and limits."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from decimal import Decimal
from typing import Any, Final

from msgspec import Raw, Struct
from pydantic_core import to_json

from tollgate.cli.catalog.litellm_config import Deployment, ImportNote
from tollgate.cli.catalog.litellm_limits import DeploymentFacts, limit_unknown, widen_known
from tollgate.cli.catalog.litellm_parameters import list_unread
from tollgate.cli.catalog.litellm_servers import (
    PlainSection,
    ProviderOf,
    Unplaced,
    is_at,
    is_claude_at,
    is_foreign,
    no_provider,
    note_key,
    place_region,
    place_server,
    slug_of,
)
from tollgate.cli.catalog.price_map import PriceMap
from tollgate.cli.routing.published_prices import Unpublished, find_published_price
from tollgate.routing.litellm_names import litellm_names
from tollgate.routing.planning.named_models import NamedModels
from tollgate.routing.price_sections import OverrideSection
from tollgate.routing.routing_file import Routing
from tollgate.routing.schema import EndpointSection, ModelSection, ProviderSection

_MILLION: Final = Decimal(1_000_000)
# Prefixes of self-hosted servers, whose tokens cost nothing.
_OWN_SERVERS: Final = frozenset(
    {"hosted_vllm", "llamafile", "lm_studio", "ollama", "ollama_chat", "vllm", "xinference"}
)
# Prefixes of servers with OpenAI's format.
_ALIKE: Final = frozenset({"custom_openai", "litellm_proxy", "openai"})
_BEDROCK_ROUTE: Final = re.compile(r"(converse|invoke|converse_like|[a-z]{2}-[a-z]+-[0-9])/")
# Settings of an endpoint that also apply to other ids of the same model at the same provider.
_OF_ALIKE: Final = frozenset({"dialect", "guardrail", "max_output", "timeouts"})


class PlacedEndpoint(Struct, kw_only=True):
    """An endpoint made from a deployment, with the sections of its provider and model."""

    provider: str
    row: PlainSection
    endpoint: PlainSection
    model: PlainSection
    known_as: str | None
    """Slug of the same model in the base file; None if there is no such model."""
    notes: list[ImportNote]

    @property
    def id(self) -> str:
        """`provider/upstream`."""
        return f"{self.endpoint['provider']}/{self.endpoint['upstream']}"

    @property
    def kind(self) -> str:
        """The kind of work that the model does."""
        return str(self.model.get("kind", "chat"))


class Placement:
    """A converter of deployments that takes providers, models and prices from a base file.

    `addresses` maps environment variables to the server addresses that they contain.
    """

    def __init__(
        self,
        base: Routing,
        today: date,
        *,
        price_map: PriceMap | None = None,
        addresses: Mapping[str, str],
    ) -> None:
        self._base = base
        self._today = today
        self._map = price_map
        self._addresses = addresses
        self._rows = {
            slug: section.model_dump(mode="python", by_alias=True, exclude_unset=True)
            for slug, section in base.providers.items()
        }
        self._names = NamedModels(
            {slug: Raw(to_json(_names_of(model))) for slug, model in base.models.items()},
            {slug: section.row(slug) for slug, section in base.providers.items()},
        )

    def place(self, deployment: Deployment) -> PlacedEndpoint:
        """Return the endpoint for a deployment; raise Unplaced if the deployment has none."""
        prefix, upstream = self._split(deployment.model)
        slug = self._model_of(deployment, upstream)
        row = self._row(deployment, prefix, upstream, slug)
        notes = [*row.notes, *list_unread(deployment)]
        exact = self._offer(row.base, lambda each: each.upstream == upstream)
        if exact is not None:
            slug = exact[0]
            if deployment.fact("input_cost_per_token") is not None:
                note = "its price is that of the base file, not that of the config"
                notes.append(deployment.note(note))
        kind = "chat" if slug is None else self._base.models[slug].kind
        mode = self.mode_of(deployment)
        if slug is None and mode != "chat":
            raise Unplaced(
                f"mode {mode} is unknown: only chat models and models in the base file are imported"
            )
        context = None
        alike = exact or self._offer(row.base, lambda _: True, slug)
        alike = alike or self._offer(row.alike, lambda _: True, slug)
        if exact is not None:
            endpoint = {**exact[1], "provider": row.slug}
        else:
            price, context = self._price(deployment, prefix, upstream, row=row, slug=slug)
            kept = {key: alike[1][key] for key in _OF_ALIKE & alike[1].keys()} if alike else {}
            endpoint = {"provider": row.slug, "upstream": upstream, **price, **kept}
        if alike is None and kind not in ("chat", "embedding"):
            raise Unplaced(f"models of kind {kind} need a provider with their dialect: add one")
        facts = DeploymentFacts(deployment, next(self._entries(deployment, upstream), {}))
        codec = row.section["codec"]
        if slug is not None:
            model = self._base.models[slug].model_dump(
                mode="python", by_alias=True, exclude_unset=True, exclude={"endpoints"}
            )
            if alike is None and kind == "chat":
                model |= widen_known(model, facts, codec)
        else:
            model = dict(
                limit_unknown(deployment, facts, context=context, codec=codec, notes=notes)
            )
        return PlacedEndpoint(
            provider=row.slug,
            row=row.section,
            endpoint=endpoint,
            model=model,
            known_as=slug,
            notes=notes,
        )

    def mode_of(self, deployment: Deployment) -> str:
        """Return the mode of a deployment that the base file lacks: `chat`, `embedding`, …"""
        upstream = deployment.model.partition("/")[2]
        entry = next(self._entries(deployment, upstream), {})
        mode = DeploymentFacts(deployment, entry).get("mode") or "chat"
        return "chat" if mode in ("batch", "responses", "completion") else str(mode)

    def list_models_of(self, wildcard: str) -> list[tuple[str, str]]:
        """Return the matches of a wildcard such as `anthropic/*` in the base file: slugs of models,
        and their names at the provider.
        """
        prefix = wildcard.partition("/")[0]
        found = (
            (slug, endpoint.upstream)
            for slug, model in self._base.models.items()
            for endpoint in model.endpoints
            if prefix in self._prefixes(endpoint.provider)
        )
        return list(dict.fromkeys(found))

    def list_offers_of(self, name: str) -> list[str]:
        """Return `provider/upstream` of the endpoints of a model in the base file, by any name."""
        return [
            f"{endpoint.provider}/{endpoint.upstream}"
            for slug in self._names.find(name).slugs
            for endpoint in self._base.models[slug].endpoints
        ]

    def means(self, name: str, slug: str) -> bool:
        """Return True if a name can only mean this model, even if no file contains the name."""
        return self._names.find(name).slugs == (slug,)

    def _prefixes(self, provider: str) -> set[str]:
        """Return the prefixes that LiteLLM may use for a provider."""
        row = self._base.providers[provider]
        return {provider, *litellm_names(row.base_url, row.transport)}

    def _split(self, model: str) -> tuple[str, str]:
        prefix, slash, upstream = model.partition("/")
        if prefix == "bedrock" and slash:
            return prefix, _BEDROCK_ROUTE.sub("", upstream)
        prefixes = {name for slug in self._base.providers for name in self._prefixes(slug)}
        if slash and (prefix in prefixes | _OWN_SERVERS | _ALIKE | {"azure", "azure_ai"}):
            return prefix, upstream
        # LiteLLM infers the provider of a name without a prefix from the price map, else from the
        # model's vendor, else from the only provider with this name.
        if not slash and self._map and (entry := self._map.entries.get(model)):
            return str(entry.get("litellm_provider")), model
        known = () if slash else self._names.find(model).slugs
        found = [
            (slug, endpoint)
            for slug, section in self._base.models.items()
            for endpoint in section.endpoints
            if endpoint.upstream == model or known == (slug,)
        ]
        for slug, endpoint in found:
            if endpoint.provider == slug.partition("/")[0]:
                return endpoint.provider, model
        for _, endpoint in found:
            if endpoint.upstream == model:
                return endpoint.provider, model
        if slash:
            raise Unplaced(no_provider(prefix))
        raise Unplaced(f"no provider in the base file has {model}: write it as provider/model")

    def _model_of(self, deployment: Deployment, upstream: str) -> str | None:
        """Return the model of the base file that a deployment runs, by any of its names."""
        for name in (deployment.facts.get("base_model"), deployment.model, upstream):
            slugs = self._names.find(name).slugs if isinstance(name, str) else ()
            if len(slugs) == 1:
                return slugs[0]
        return None

    def _row(
        self, deployment: Deployment, prefix: str, upstream: str, model: str | None
    ) -> ProviderOf:
        """Return the provider for a deployment, preferably one that already serves the model."""
        address = deployment.params.get("api_base") or deployment.params.get("base_url")
        variable = deployment.variable("api_base") or deployment.variable("base_url")
        if variable is not None:
            address = self._addresses.get(variable)
            if address is None:
                raise Unplaced(f"its address is in the environment: --address {variable}=https://…")
        vendor = self._vendor(prefix, upstream)
        if prefix in ("azure", "azure_ai") or (address and prefix in _OWN_SERVERS | _ALIKE):
            return place_server(deployment, prefix, str(address or ""), vendor)
        if prefix in _OWN_SERVERS:
            raise Unplaced("api_base is missing: write the address of the server")
        found = [slug for slug in self._base.providers if prefix in self._prefixes(slug)]
        region = deployment.params.get("aws_region_name")
        found.sort(key=lambda each: self._rows[each].get("region") != region)
        if not found:
            raise Unplaced(no_provider(prefix))

        def serves(slug: str) -> tuple[bool, bool, bool]:
            exact = self._offer(slug, lambda each: each.upstream == upstream)
            own = self._offer(slug, lambda _: True, model)
            return exact is None, own is None, is_foreign(self._rows[slug]["codec"], upstream)

        slug = min(found, key=serves)
        section = dict(self._rows[slug])
        key = dict(section.get("key") or {})
        variable = deployment.variable("api_key")
        notes = tuple(note_key(deployment, key.get("env")))
        own_slug = slug
        if address and not is_at(section, str(address)):
            raise Unplaced(f"api_base is not the address of {slug}: add a provider")
        if variable and key and variable != key.get("env"):
            own_slug = f"{slug}-{slug_of(variable)}"
            section |= {"key": {"env": variable}}
        if region is not None and section.get("region") not in (None, region):
            own_slug, section = place_region(slug, section, region)
        alike = vendor[0] if vendor else None
        return ProviderOf(slug=own_slug, section=section, base=slug, alike=alike, notes=notes)

    def _vendor(self, prefix: str, upstream: str) -> tuple[str, PlainSection] | None:
        """Return the provider of a model's vendor, if the cloud serves the model by its API."""
        if is_claude_at(prefix, upstream):
            vendor, codec = "anthropic", "anthropic"
        elif prefix in ("azure", "azure_ai"):
            vendor, codec = "openai", "openai_chat"
        else:
            return None
        for slug, row in self._rows.items():
            if vendor in self._prefixes(slug) and row["codec"] == codec:
                return slug, row
        return None

    def _offer(
        self, provider: str | None, fits: Callable[[EndpointSection], bool], slug: str | None = ""
    ) -> tuple[str, PlainSection] | None:
        """Return the first fitting endpoint at a provider: of the model `slug`, or of any model for
        "".
        """
        for each in self._base.models if slug == "" else filter(None, [slug]):
            section = self._base.models[each]
            for endpoint in section.endpoints:
                if endpoint.provider == provider and fits(endpoint):
                    plain = endpoint.model_dump(mode="python", by_alias=True, exclude_unset=True)
                    plain.pop("weight", None)
                    return each, plain
        return None

    def _entries(self, deployment: Deployment, upstream: str) -> Iterator[Mapping[str, Any]]:
        """Yield the entries of the price map under the names of a deployment."""
        for name in _map_names(deployment, upstream):
            if self._map and (entry := self._map.entries.get(name)):
                yield entry

    def _price(
        self,
        deployment: Deployment,
        prefix: str,
        upstream: str,
        *,
        row: ProviderOf,
        slug: str | None,
    ) -> tuple[PlainSection, int | None]:
        """Return the price, and the context size if genai-prices publishes both."""
        rates = [deployment.fact(f"{side}_cost_per_token") for side in ("input", "output")]
        if None not in rates:
            source = {"source": "the config of LiteLLM", "checked": self._today}
            paid = [_per_million(rate) for rate in rates]
            return {"price": {"input": paid[0], "output": paid[1], **source}}, None
        if prefix in _OWN_SERVERS:
            zero = {"input": Decimal(0), "output": Decimal(0)}
            return {"price": {**zero, "source": "our own machines", "checked": self._today}}, None
        names = _map_names(deployment, upstream)
        kind = "chat" if slug is None else self._base.models[slug].kind
        mapped = self._map.find_named(names, kind) if self._map else None
        if self._map and mapped:
            source = {"source": f"litellm {self._map.version}", "checked": self._today}
            sections = [each.section for each in mapped.overrides]
            price: PlainSection = {"price": {**mapped.rates, **source}}
            return price | _with_overrides(sections), mapped.context
        section = ProviderSection.model_validate(row.section)
        for name in (upstream, names[0].rpartition("/")[2]):
            with suppress(Unpublished):
                found = find_published_price(section, name, self._today, kind=kind)
                price = {"price": found.price.model_dump(by_alias=True, exclude_none=True)}
                return price | _with_overrides(found.overrides), found.context
        for provider in (row.base, *self._base.providers):
            at_all = provider == row.base or prefix in self._prefixes(str(provider))
            if at_all and (same := self._offer(provider, lambda _: True, slug)) is not None:
                kept = ("price", "overrides")
                return {key: same[1][key] for key in kept if key in same[1]}, None
        raise Unplaced(
            "no price is published: add the model to the base file; for LiteLLM, state "
            "input_cost_per_token and output_cost_per_token, or base_model in model_info"
        )


def _names_of(model: ModelSection) -> Mapping[str, Any]:
    """Return the parts of a model from which its names are derived."""
    endpoints = [{"provider": each.provider, "upstream": each.upstream} for each in model.endpoints]
    return {"names": model.names, "replaces": model.replaces, "endpoints": endpoints}


def _map_names(deployment: Deployment, upstream: str) -> tuple[str, ...]:
    """Return the names under which LiteLLM looks for the price of a deployment, best first."""
    base = deployment.facts.get("base_model")
    return (*((base,) if isinstance(base, str) else ()), deployment.model, upstream)


def _with_overrides(sections: Iterable[OverrideSection]) -> PlainSection:
    plain = [each.model_dump(by_alias=True, exclude_none=True) for each in sections]
    return {"overrides": plain} if plain else {}


def _per_million(rate: Any) -> Decimal:
    """Return the rate per million tokens for a rate per token."""
    try:
        paid = Decimal(str(rate)) * _MILLION
    except ArithmeticError:
        paid = Decimal("NaN")
    if not paid.is_finite() or paid < 0:
        raise Unplaced("the price is not a number of dollars")
    return paid.normalize()
