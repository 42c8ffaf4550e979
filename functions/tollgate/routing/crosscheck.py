"""What the schema cannot see: references, names taken twice, and prices that cannot be meant."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from difflib import get_close_matches
from typing import Final

from tollgate.routing.document import Document, Where
from tollgate.routing.problems import Problem, looks_like_secret
from tollgate.routing.schema import (
    GUARDING_CODECS,
    IncludedFile,
    KeySection,
    ModelSection,
    PriceSection,
    ProviderSection,
)

NAMED_SECTIONS: Final = ("models", "aliases", "routes")

_CHECKED_DAYS_MAX: Final = 90
# The cheapest tokens on sale cost about 0.01 dollars per million; per token they cost a millionth.
_PER_TOKEN_BELOW: Final = Decimal("0.0005")
_TRANSPORTS: Final[Mapping[str, tuple[str, ...]]] = {
    "openai_chat": ("http_sse", "sagemaker_runtime", "simulator"),
    "openai_responses": ("http_sse",),
    "bedrock": ("bedrock_runtime",),
}


@dataclass(frozen=True, slots=True)
class Part:
    """One file of the routing: where things stand, and what of it could be read."""

    document: Document
    content: IncludedFile

    def names(self, section: str) -> frozenset[str]:
        """Every name of a section, those with a faulty entry too."""
        entries = self.document.value((section,))
        return frozenset(entries) if isinstance(entries, dict) else frozenset()


def crosscheck(parts: Sequence[Part], today: date | None) -> Iterator[Problem]:
    """Check all files against each other; the first is the main one, which stands alone.

    What the main file names must be in it, since production leaves the included files out.
    """
    yield from _names_taken_twice(parts)
    main, *included = parts
    for part in parts:
        checker = _Checker(part, (main,) if part is main else parts, included)
        yield from checker.providers()
        yield from checker.models(today)
        yield from checker.names(today)


def _names_taken_twice(parts: Sequence[Part]) -> Iterator[Problem]:
    first: dict[tuple[str, str], str] = {}
    for part in parts:
        for section in ("providers", *NAMED_SECTIONS):
            space = "provider" if section == "providers" else "model, alias or route"
            for name in sorted(part.names(section)):
                where = (section, name)
                earlier = first.setdefault((space, name), part.document.place_text(where))
                if earlier != part.document.place_text(where):
                    message = f'"{name}" is already a {space}, defined at {earlier}'
                    yield part.document.at_key(where, "R022", message)


class _Checker:
    """Checks one file against those it may refer to."""

    def __init__(self, part: Part, visible: Sequence[Part], included: Sequence[Part]) -> None:
        self._document = part.document
        self._content = part.content
        self._visible = visible
        self._included = included

    def providers(self) -> Iterator[Problem]:
        """A row must be complete for its transport."""
        for slug, provider in self._content.providers.items():
            yield from self._provider(("providers", slug), provider)

    def models(self, today: date | None) -> Iterator[Problem]:
        """Limits, endpoints and prices of each model."""
        for slug, model in self._content.models.items():
            where: Where = ("models", slug)
            if model.max_output > model.context:
                message = f"max_output {model.max_output} is more than context {model.context}"
                yield self._document.at_value((*where, "max_output"), "R011", message)
            yield from self._endpoints(where, model, today)

    def names(self, today: date | None) -> Iterator[Problem]:
        """Where aliases and routes lead."""
        for name, alias in self._content.aliases.items():
            where: Where = ("aliases", name)
            yield from self._reference((*where, "to"), alias.to, ("models", "routes"))
            if today and alias.sunset and alias.sunset < today:
                message = f'alias "{name}" was to go on {alias.sunset}'
                yield self._document.at_value(
                    (*where, "sunset"), "R070", message, severity="warning"
                )
        for name, route in self._content.routes.items():
            for index, model in enumerate(route.models):
                step: Where = ("routes", name, "try", index)
                yield from self._reference(step, model, ("models",))
                if model in route.models[:index]:
                    yield self._document.at_value(step, "R024", f"{model} is tried twice")
                if route.guardrail:
                    yield from self._guarded(step, self._providers_of(model))

    def _provider(self, where: Where, provider: ProviderSection) -> Iterator[Problem]:
        transports = _TRANSPORTS[provider.codec]
        if provider.transport not in transports:
            message = f"codec {provider.codec} cannot use transport {provider.transport}"
            hint = f"write {' or '.join(transports)}"
            yield self._document.at_value((*where, "transport"), "R041", message, hint=hint)
        for transport, need, stated in (
            ("http_sse", "base_url", provider.base_url),
            ("bedrock_runtime", "region", provider.region),
            ("sagemaker_runtime", "region", provider.region),
        ):
            if provider.transport == transport and stated is None:
                message = f"provider {where[-1]} has no {need}, which {transport} needs"
                yield self._document.at_key(where, "R042", message)
        yield from self._key((*where, "key"), provider.key)

    def _key(self, where: Where, key: KeySection | None) -> Iterator[Problem]:
        if key is None:
            return
        if key.env is None and key.secret is None:
            yield self._document.at_value(where, "R043", "key names neither env nor secret")
        for home, name in (("env", key.env), ("secret", key.secret)):
            if name and looks_like_secret(name):
                message = f"{home} looks like the key itself; write where the key lives"
                yield self._document.at_value((*where, home), "R040", message)

    def _endpoints(
        self, where: Where, model: ModelSection, today: date | None
    ) -> Iterator[Problem]:
        seen = set()
        for index, endpoint in enumerate(model.endpoints):
            inside: Where = (*where, "endpoints", index)
            offer = (endpoint.provider, endpoint.upstream)
            if offer in seen:
                message = f"endpoint {'/'.join(offer)} stands twice"
                yield self._document.at_value(inside, "R024", message)
            seen.add(offer)
            yield from self._provider_of(inside, endpoint.provider)
            if endpoint.guardrail:
                yield from self._guarded((*inside, "guardrail"), (endpoint.provider,))
            yield from self._price((*inside, "price"), endpoint.price, today)

    def _providers_of(self, model: str) -> tuple[str, ...]:
        """Who serves a model; none if nobody defines it, which is a problem of its own."""
        for part in self._visible:
            if model in part.content.models:
                return tuple(endpoint.provider for endpoint in part.content.models[model].endpoints)
        return ()

    def _guarded(self, where: Where, providers: Sequence[str]) -> Iterator[Problem]:
        """A guardrail must not be left out by a provider that knows none."""
        for part in self._visible:
            for slug, provider in part.content.providers.items():
                if slug in providers and provider.codec not in GUARDING_CODECS:
                    message = f"provider {slug} cannot apply the guardrail"
                    yield self._document.at_value(where, "R044", message)

    def _price(self, where: Where, price: PriceSection, today: date | None) -> Iterator[Problem]:
        rates = {
            "input": price.input,
            "output": price.output,
            "cache_read": price.cache_read,
            "cache_write": price.cache_write,
            "cache_write_1h": price.cache_write_1h,
        }
        for name, rate in rates.items():
            if rate is not None and 0 < rate < _PER_TOKEN_BELOW:
                message = (
                    f"{name} price {rate:f} looks like dollars per token; per million tokens "
                    f"it is {(rate * 1_000_000).normalize():f}"
                )
                yield self._document.at_value((*where, name), "R031", message)
        if price.cache_read is not None and price.cache_read > price.input:
            message = f"cache_read {price.cache_read} is dearer than input {price.input}"
            yield self._document.at_value((*where, "cache_read"), "R032", message)
        if today and not timedelta(0) <= today - price.checked <= timedelta(days=_CHECKED_DAYS_MAX):
            message = f"price checked on {price.checked}, not within the last 90 days"
            yield self._document.at_value((*where, "checked"), "R071", message, severity="warning")

    def _provider_of(self, where: Where, provider: str) -> Iterator[Problem]:
        known = self._names(("providers",))
        if provider not in known:
            message = f'provider "{provider}" is not defined'
            yield self._undefined((*where, "provider"), "R020", message, ("providers",))

    def _reference(self, where: Where, name: str, sections: Sequence[str]) -> Iterator[Problem]:
        if name not in self._names(sections):
            kinds = " or ".join(section.removesuffix("s") for section in sections)
            yield self._undefined(where, "R021", f'"{name}" is not a {kinds}', sections)

    def _undefined(self, where: Where, code: str, message: str, sections: Sequence[str]) -> Problem:
        name = str(self._document.value(where))
        if name in self._known(sections, self._included):
            hint = "it is defined for development only, and production leaves that out"
            return self._document.at_value(where, code, message, hint=hint)
        other = next((kind for kind in NAMED_SECTIONS if name in self._names((kind,))), None)
        if other:
            return self._document.at_value(where, code, f"{message}, it is one of the {other}")
        nearest = get_close_matches(name, sorted(self._names(sections)), n=1)
        suggestion = f': did you mean "{nearest[0]}"?' if nearest else ""
        return self._document.at_value(where, code, message + suggestion)

    def _names(self, sections: Sequence[str]) -> frozenset[str]:
        return self._known(sections, self._visible)

    @staticmethod
    def _known(sections: Sequence[str], parts: Sequence[Part]) -> frozenset[str]:
        return frozenset(
            name for part in parts for section in sections for name in part.names(section)
        )
