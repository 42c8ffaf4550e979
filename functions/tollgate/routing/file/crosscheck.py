"""Checks rules that the schema cannot express: references, names, prices and policies."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from tollgate.providers.ports.base import SIGNED_SERVICES
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import TRANSPORT_NEEDS, WIRE_FORMATS
from tollgate.providers.ports.wire_format import WireFormat
from tollgate.routing.chains import RouteSection
from tollgate.routing.file.document import Where
from tollgate.routing.file.kind_checks import (
    check_dialect,
    check_guardrail,
    check_kind,
    check_required_keys,
    check_route_kind,
    check_successor,
)
from tollgate.routing.file.known_names import KnownNames, LoadedFile, find_circles
from tollgate.routing.file.lifecycle_checks import check_lifecycle
from tollgate.routing.file.name_checks import check_names
from tollgate.routing.file.policy_checks import (
    check_heir_policy,
    check_model_policy,
    check_route_policy,
)
from tollgate.routing.file.price_checks import check_prices, check_tier_format
from tollgate.routing.file.problems import Problem
from tollgate.routing.file.promise_checks import (
    PlacedModel,
    check_promise,
    check_route_tier,
    list_shadow_models,
    place_chains,
    place_steps,
    placed_heirs,
)
from tollgate.routing.file.secret_checks import KeyRules, check_host, check_key, check_pins
from tollgate.routing.file.shadow_checks import check_shadow
from tollgate.routing.file.signature_checks import check_signature, check_signed_model
from tollgate.routing.schema import (
    EndpointSection,
    ModelSection,
    ProviderSection,
)

NAMED_SECTIONS: Final = ("models", "aliases", "routes")

_WHOLE: Final = 100
_SPACES: Final[Mapping[str, str]] = {
    "providers": "provider",
    "models": "model, alias or route",
    "aliases": "model, alias or route",
    "routes": "model, alias or route",
    "key_tiers": "key tier",
}
_KINDS: Final[Mapping[tuple[str, ...], str]] = {
    NAMED_SECTIONS: "a model, alias or route",
    ("key_tiers",): "a key tier",
    ("models",): "a model",
}


def crosscheck(
    parts: Sequence[LoadedFile],
    development: Sequence[LoadedFile],
    today: date | None,
    rules: KeyRules,
) -> Iterator[Problem]:
    """Yield the problems across files; `parts` must not refer to files in `development`."""
    every = (*parts, *development)
    yield from _names_taken_twice(every)
    yield from check_names(every)
    models = {
        slug: PlacedModel(part.document, model)
        for part in every
        for slug, model in part.content.models.items()
    }
    names_of_every, names_of_production = KnownNames(every), KnownNames(parts)
    names_left_out = KnownNames(development)
    sections = {slug: placed.section for slug, placed in models.items()}
    for part in every:
        is_production = any(part is each for each in parts)
        visible = parts if is_production else every
        names = names_of_production if is_production else names_of_every
        scope = _Scope(visible, development, names, names_left_out, sections)
        checker = _Checker(part, scope, rules)
        yield from checker.providers()
        yield from checker.models(today)
        yield from checker.aliases(today)
        yield from checker.routes(models, today)
        yield from checker.key_tiers(names_of_every)


def _names_taken_twice(parts: Sequence[LoadedFile]) -> Iterator[Problem]:
    first: dict[tuple[str, str], str] = {}
    for part in parts:
        for section, space in _SPACES.items():
            for name in sorted(part.names(section)):
                where = (section, name)
                earlier = first.setdefault((space, name), part.document.place_text(where))
                if earlier != part.document.place_text(where):
                    message = f'"{name}" is already a {space}, defined at {earlier}'
                    yield part.document.at_key(where, "R022", message)


class _Scope(Struct, frozen=True):
    """The files and names that a file may refer to, and those that exist only in development."""

    visible: Sequence[LoadedFile]
    included: Sequence[LoadedFile]
    names: KnownNames
    names_left_out: KnownNames
    models: Mapping[str, ModelSection]  # of all files, not only those to which this file may refer


class _Checker:
    """Checks one file, with the help of the files to which it may refer."""

    def __init__(self, part: LoadedFile, scope: _Scope, rules: KeyRules) -> None:
        self._document = part.document
        self._content = part.content
        self._visible = scope.visible
        self._included = scope.included
        self._names = scope.names
        self._names_left_out = scope.names_left_out
        self._key_rules = rules
        self._all_models = scope.models
        self._circles = find_circles(
            {slug: model.successor for slug, model in scope.models.items() if model.successor}
        )
        self._policies = {
            slug: row.data_policy
            for each in (*scope.visible, *scope.included)
            for slug, row in each.content.providers.items()
        }

    def providers(self) -> Iterator[Problem]:
        """Yield the problems of each provider: transport, dialect, credentials and host."""
        for slug, provider in self._content.providers.items():
            yield from self._provider(("providers", slug), provider)

    def models(self, today: date | None) -> Iterator[Problem]:
        """Yield the problems of each model: limits, endpoints, lifecycle and data policies."""
        yield from check_required_keys(self._document)
        for slug, model in self._content.models.items():
            where: Where = ("models", slug)
            output_max = model.max_output or 0
            if output_max > model.context:
                message = f"max_output {output_max} is more than context {model.context}"
                yield self._document.at_value((*where, "max_output"), "R011", message)
            for number, endpoint in enumerate(model.endpoints):
                if output_max and (endpoint.max_output or 0) > output_max:
                    place = (*where, "endpoints", number, "max_output")
                    message = f"max_output {endpoint.max_output} is more than the model's"
                    yield self._document.at_value(place, "R011", message)
            yield from check_kind(self._document, where, model)
            if model.successor is not None:
                yield from self._reference((*where, "successor"), model.successor, ("models",))
            yield from check_successor(self._document, slug, model, models=self._all_models)
            yield from check_lifecycle(
                self._document, slug, model, circles=self._circles, today=today
            )
            yield from check_heir_policy(
                self._document, slug, model, models=self._all_models, policies=self._policies
            )
            yield from self._endpoints(where, model, today)
            yield from check_model_policy(self._document, slug, model, self._policies)

    def aliases(self, today: date | None) -> Iterator[Problem]:
        """Yield the problems of aliases: undefined names, cycles, and sunset dates that have
        passed.
        """
        for name, alias in self._content.aliases.items():
            where: Where = ("aliases", name)
            yield from self._reference((*where, "to"), alias.to, NAMED_SECTIONS)
            if name in self._names.circles:  # One problem is reported per cycle.
                message = f"alias leads in a circle: {' -> '.join(self._names.circles[name])}"
                yield self._document.at_value((*where, "to"), "R051", message)
            if today and alias.sunset and alias.sunset < today:
                message = f'alias "{name}" should have been removed on {alias.sunset}'
                yield self._document.at_value(
                    (*where, "sunset"), "R070", message, severity="warning"
                )

    def routes(self, models: Mapping[str, PlacedModel], today: date | None) -> Iterator[Problem]:
        """Yield the problems of routes: rules, steps, guardrails, promises and data policies."""
        for name, route in self._content.routes.items():
            where: Where = ("routes", name)
            yield from self._rules(where, route)
            for step, weights in place_steps(route, where):
                yield from self._step(step, weights)
            if route.guardrail is not None:
                yield from self._guardrails(where, route, models)
            yield from check_promise(self._document, name, route, models=models, today=today)
            yield from check_route_tier(self._document, name, route, models=models)
            yield from check_route_kind(self._document, name, route, models=models)
            yield from check_route_policy(
                self._document, name, route, models=models, policies=self._policies
            )
            for key, slug in list_shadow_models(route):
                yield from self._reference((*where, "shadow", key), slug, ("models",))
            yield from check_shadow(self._document, name, route, models=models)

    def key_tiers(self, every: KnownNames) -> Iterator[Problem]:
        """Yield a problem for each glob in a tier that does not match any name."""
        names = every.of(NAMED_SECTIONS)
        for tier, section in self._content.key_tiers.items():
            for index, glob in enumerate(section.models):
                if not any(fnmatchcase(name, glob) for name in names):
                    nearest = every.nearest(glob, NAMED_SECTIONS)
                    hint = f': did you mean "{nearest}"?' if nearest else ""
                    message = f'"{glob}" matches no model, alias or route{hint}'
                    where: Where = ("key_tiers", tier, "models", index)
                    yield self._document.at_value(where, "R021", message)

    def _rules(self, where: Where, route: RouteSection) -> Iterator[Problem]:
        always: int | None = None
        for number, rule in enumerate(route.rules or ()):
            place: Where = (*where, "rules", number)
            if always is not None:
                message = f"rule {number + 1} is never reached, because rule {always + 1} has no if"
                yield self._document.at_value(place, "R050", message)
            elif rule.condition is None:
                always = number
            tier = rule.condition.key_tier if rule.condition else None
            if tier is not None:
                yield from self._reference((*place, "if", "key_tier"), tier, ("key_tiers",))
        for place, steps in place_chains(route, where):
            tried: set[str] = set()
            for index, step in enumerate(steps):
                for model in sorted(tried & step.keys()):
                    message = f"{model} is tried twice"
                    yield self._document.at_value((*place, index), "R024", message)
                tried |= step.keys()

    def _step(self, where: Where, step: Mapping[str, int]) -> Iterator[Problem]:
        for model in step:
            place = (*where, model) if len(step) > 1 else where
            if model not in self._names.of(("models",)):
                message = f'"{model}" is not a model'
                yield self._undefined(place, model, ("models",), code="R021", message=message)
        if sum(step.values()) != _WHOLE:
            message = f"weights sum to {sum(step.values())}, not to 100"
            yield self._document.at_value(where, "R052", message)

    def _guardrails(
        self, where: Where, route: RouteSection, models: Mapping[str, PlacedModel]
    ) -> Iterator[Problem]:
        chain_models = {slug for _, step in place_steps(route, where) for slug in step}
        slugs = {each for slug in chain_models for each in (slug, *placed_heirs(slug, models))}
        for slug in sorted(slugs & models.keys()):
            for endpoint in models[slug].section.endpoints:
                formats = self._formats_of(endpoint.provider)
                if not all(each.applies_guardrails for each in formats):
                    message = f"{slug} at {endpoint.provider} cannot apply a guardrail"
                    yield self._document.at_value((*where, "guardrail"), "R053", message)

    def _rows_of(self, provider: str) -> list[ProviderSection]:
        rows = [part.content.providers.get(provider) for part in (*self._visible, *self._included)]
        return [row for row in rows if row is not None]

    def _formats_of(self, provider: str) -> list[WireFormat]:
        """Return a provider's wire format; empty if the provider is not defined."""
        return [WIRE_FORMATS[row.codec] for row in self._rows_of(provider)]

    def _serves(
        self, where: Where, endpoint: EndpointSection, model: ModelSection
    ) -> Iterator[Problem]:
        """Yield a problem if the provider's codec or transport cannot serve models of this kind."""
        slug, kind = endpoint.provider, model.kind
        for row in self._rows_of(slug)[:1]:
            format_ = WIRE_FORMATS[row.codec]
            if kind == "chat":
                is_served = format_.codec is not None
            else:
                # Bedrock does not document other kinds of work in OpenAI's format.
                is_served = (
                    kind in {*format_.batch_codecs, *format_.stream_codecs}
                    and row.transport in format_.batch_transports
                    and row.auth not in SIGNED_SERVICES
                    # Calls of jobs send a key, and no token of Google.
                    and not (kind in format_.job_codecs and row.auth == "google")
                )
            if not is_served:
                message = f"{slug} (codec {row.codec}, transport {row.transport}) has no {kind}"
                yield self._document.at_value((*where, "provider"), "R055", message)
            if "image" in model.makes and "image_output" not in format_.carries:
                message = f"{slug} (codec {row.codec}) cannot return images in replies"
                yield self._document.at_value((*where, "provider"), "R055", message)
            yield from check_dialect(self._document, where, endpoint, kind=kind, row=row)
            yield from check_signed_model(self._document, where, endpoint, row)

    def _needs(self, where: Where, *, slug: str, dialect: Dialect | None) -> Iterator[Problem]:
        for each in self._formats_of(slug):
            for need in sorted((dialect.met if dialect else frozenset()) - each.carries):
                message = f"the codec of {slug} has no {need}"
                yield self._document.at_value((*where, "dialect"), "R054", message)
            if dialect is not None and dialect.native_search and each.native_search is None:
                message = f"the codec of {slug} has no web search by the provider"
                yield self._document.at_value((*where, "dialect"), "R054", message)
            if dialect is not None and dialect.counts_tokens and each.counter is None:
                message = f"the codec of {slug} cannot count tokens"
                yield self._document.at_value((*where, "dialect"), "R054", message)

    def _provider(self, where: Where, provider: ProviderSection) -> Iterator[Problem]:
        transports = WIRE_FORMATS[provider.codec].transports
        if provider.transport not in transports:
            message = f"codec {provider.codec} cannot use transport {provider.transport}"
            hint = f"write {' or '.join(transports)}"
            yield self._document.at_value((*where, "transport"), "R041", message, hint=hint)
        yield from self._needs(where, slug=str(where[-1]), dialect=provider.dialect)
        needed = TRANSPORT_NEEDS.get(provider.transport)
        if needed is not None and getattr(provider, needed) is None:
            message = f"provider {where[-1]} has no {needed}, which {provider.transport} needs"
            yield self._document.at_key(where, "R042", message)
        for need, value in (("project", provider.project), ("location", provider.location)):
            if provider.auth == "google" and value is None:
                message = f"provider {where[-1]} has no {need}, which auth google needs"
                yield self._document.at_key(where, "R042", message)
        yield from check_signature(self._document, where, provider)
        if provider.codec == "anthropic":
            yield from self._carrier(where, provider)
        yield from check_key(self._document, where, provider.key, self._key_rules)
        is_development = any(self._document is part.document for part in self._included)
        yield from check_host(self._document, where, provider, development=is_development)
        if not is_development:
            yield from check_pins(self._document, where, provider, self._key_rules)

    def _carrier(self, where: Where, provider: ProviderSection) -> Iterator[Problem]:
        """Yield a problem if transport or auth does not fit the dialect's `claude_carrier`."""
        carrier = provider.dialect.claude_carrier
        if (carrier == "bedrock") != (provider.transport == "bedrock_invoke"):
            message = f"claude_carrier {carrier} cannot use transport {provider.transport}"
            yield self._document.at_key(where, "R041", message)
        if carrier == "vertex" and provider.auth != "google":
            message = f"provider {where[-1]} has no auth google, which claude_carrier vertex needs"
            yield self._document.at_key(where, "R042", message)

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
            yield from check_prices(self._document, inside, endpoint, today)
            formats = self._formats_of(endpoint.provider)
            yield from check_tier_format(self._document, inside, endpoint, formats)
            yield from check_guardrail(
                self._document, inside, endpoint, kind=model.kind, formats=formats
            )
            yield from self._needs(inside, slug=endpoint.provider, dialect=endpoint.dialect)
            yield from self._serves(inside, endpoint, model)
        yield from self._weights((*where, "endpoints"), model.endpoints)

    def _weights(self, where: Where, endpoints: Sequence[EndpointSection]) -> Iterator[Problem]:
        weights = [each.weight for each in endpoints if each.weight is not None]
        if weights and len(weights) < len(endpoints):
            message = "either all endpoints of a model have a weight, or none"
            yield self._document.at_value(where, "R052", message)
        elif weights and sum(weights) != _WHOLE:
            message = f"weights sum to {sum(weights)}, not to 100"
            yield self._document.at_value(where, "R052", message)

    def _provider_of(self, where: Where, provider: str) -> Iterator[Problem]:
        known = self._names.of(("providers",))
        if provider not in known:
            message = f'provider "{provider}" is not defined'
            place: Where = (*where, "provider")
            yield self._undefined(place, provider, ("providers",), code="R020", message=message)

    def _reference(self, where: Where, name: str, sections: Sequence[str]) -> Iterator[Problem]:
        if name not in self._names.of(sections):
            message = f'"{name}" is not {_KINDS[tuple(sections)]}'
            yield self._undefined(where, name, sections, code="R021", message=message)

    def _undefined(
        self, where: Where, name: str, sections: Sequence[str], *, code: str, message: str
    ) -> Problem:
        if name in self._names_left_out.of(sections):
            hint = "it is defined for development only, and production leaves that out"
            return self._document.at_value(where, code, message, hint=hint)
        other = next((kind for kind in NAMED_SECTIONS if name in self._names.of((kind,))), None)
        if other:
            return self._document.at_value(where, code, f"{message}, but one of the {other}")
        nearest = self._names.nearest(name, sections)
        suggestion = f': did you mean "{nearest}"?' if nearest else ""
        return self._document.at_value(where, code, message + suggestion)
