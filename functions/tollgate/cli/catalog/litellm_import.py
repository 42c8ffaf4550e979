"""Conversion of other gateways' configs to a routing file, with notes on omitted settings."""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import chain, count, pairwise
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from tollgate.cli.catalog.litellm_config import (
    FALLBACK_KINDS,
    Deployment,
    ImportNote,
    LitellmConfig,
    as_mapping,
    name_list,
)
from tollgate.cli.catalog.litellm_endpoints import PlacedEndpoint, Placement
from tollgate.cli.catalog.litellm_servers import PlainSection, Unplaced
from tollgate.cli.catalog.litellm_settings import convert_defaults, convert_tiers, list_unused
from tollgate.cli.catalog.source_names import SourceName, SourceOffer
from tollgate.routing.chains import NEXT_ON_DEFAULT

_WHOLE: Final = 100
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}")
_CHAIN_ERRORS: Final = tuple(
    name for name in NEXT_ON_DEFAULT if name not in ("context_length_exceeded", "content_filter")
)
_ANY: Final = "*"

# Models of a step in a route, with their weights in percent.
_Step: TypeAlias = dict[str, int]


class ImportedRouting(Struct, frozen=True, kw_only=True):
    """The sections of a routing file, notes, and the names that the source serves."""

    sections: dict[str, Any]
    notes: tuple[ImportNote, ...]
    sources: tuple[SourceName, ...]


def import_litellm(config: LitellmConfig, placement: Placement) -> ImportedRouting:
    """Convert a config to the sections of a routing file."""
    return _Import(config, placement).run()


class _Import:
    """A conversion that collects sections and notes."""

    def __init__(self, config: LitellmConfig, placement: Placement) -> None:
        self._config = config
        self._placement = placement
        self._section = config.deployments[0].section
        self._notes: list[ImportNote] = [*config.notes]
        self._providers: dict[str, PlainSection] = {}
        self._models: dict[str, PlainSection] = {}
        self._aliases: dict[str, PlainSection] = {}
        self._routes: dict[str, PlainSection] = {}
        self._sources: dict[str, SourceName] = {}
        # All names that callers may request, and for each imported name the steps of its chain.
        self._names: set[str] = set()
        self._steps: dict[str, list[_Step]] = {}

    def run(self) -> ImportedRouting:
        groups: dict[str, list[Deployment]] = {}
        for deployment in self._config.deployments:
            groups.setdefault(deployment.name, []).append(deployment)
        chained = {name for name, _ in self._chains()}
        wild = [name for name, group in groups.items() if _is_wild(name, group)]
        expanded = {name: self._expand(name, groups[name], known=groups.keys()) for name in wild}
        self._names = {*groups, *(each for added in expanded.values() for each in added)}
        for name in groups:
            if name in wild:
                continue
            self._group(name, groups[name], is_chained=name in chained)
        for name in groups:
            if name in wild:
                self._wildcard(name, expanded[name], chained=chained)
        self._fallbacks()
        self._group_aliases()
        tiers = dict(convert_tiers(self._config, self._steps, self._notes))
        defaults = dict(convert_defaults(self._config, self._notes))
        self._notes += list_unused(self._config)
        sections: dict[str, Any] = {
            "version": 1,
            "defaults": defaults,
            "providers": self._providers,
            "models": dict(self._named_once()),
            "aliases": self._aliases,
            "routes": self._routes,
            "key_tiers": tiers,
        }
        filled = {name: section for name, section in sections.items() if section}
        sources = tuple(self._sources.values())
        return ImportedRouting(sections=filled, notes=tuple(self._notes), sources=sources)

    def _note(self, where: str, text: str, *, is_loss: bool = False) -> None:
        self._notes.append(ImportNote(where=where, text=text, is_loss=is_loss))

    def _named_once(self) -> Iterator[tuple[str, PlainSection]]:
        """Yield the models, without names that an alias, a route or an earlier model has."""
        taken = {*self._aliases, *self._routes, *self._models}
        for slug, model in self._models.items():
            names = {
                key: kept
                for key in ("names", "replaces")
                if (kept := tuple(name for name in model.get(key, ()) if name not in taken))
            }
            taken.update(*names.values())
            yield (
                slug,
                {key: value for key, value in model.items() if key not in ("names", "replaces")}
                | names,
            )

    def _group(
        self, name: str, group: Sequence[Deployment], *, is_chained: bool, wildcard: str = ""
    ) -> None:
        """Add a model for each model that a name's deployments run, and the name for all of them.

        A name with several models becomes a route that draws one by weight. `wildcard` is the
        entry of the source that the name matches, if the source does not state the name.
        """
        where = f"{self._section} {name}"
        placed: list[tuple[Deployment, PlacedEndpoint]] = []
        offers: list[SourceOffer] = []
        for deployment in group:
            found = self._place(deployment, placed[0][1].kind if placed else None)
            endpoint = None if found is None else found.id
            offers.append(SourceOffer(model=deployment.model, endpoint=endpoint))
            if found is None:
                continue
            if any(each.id == endpoint for _, each in placed):
                note = "appears twice with the same endpoint; their shares were added"
                self._notes.append(deployment.note(note))
            placed.append((deployment, found))
        # Names of a wildcard without an endpoint are not listed, because a note counts them.
        if placed or not wildcard:
            self._sources[name] = SourceName(
                name=name,
                kind=placed[0][1].kind if placed else self._placement.mode_of(group[0]),
                offers=tuple(offers),
                wildcard=wildcard,
            )
        if not placed:
            return
        orders = [each.params.get("order") for each, _ in placed]
        is_ordered = all(isinstance(each, int) for each in orders)
        if is_ordered:
            placed.sort(key=lambda each: int(each[0].params["order"]))
        elif any(each is not None for each in orders):
            self._note(where, "only some of its deployments have an order: all are drawn")
        shares = _percents([deployment.share for deployment, _ in placed])
        by_model: dict[str | None, dict[str, tuple[PlacedEndpoint, int]]] = {}
        for (_, each), share in zip(placed, shares, strict=True):
            members = by_model.setdefault(each.known_as, {})
            _, before = members.get(each.id, (each, 0))
            members[each.id] = each, before + share
        weights: _Step = {}
        many = len(by_model) > 1
        for known_as, members in by_model.items():
            pairs = list(members.values())
            slug = self._add(
                name, known_as, pairs, is_chained=is_chained or many, is_ordered=is_ordered
            )
            weights[slug] = sum(share for _, share in pairs)
        self._steps[name] = [{slug: _WHOLE} for slug in weights] if is_ordered else [weights]
        if many:
            says = "tried in order" if is_ordered else "drawn by weight"
            self._add_route(name, self._steps[name], set(_CHAIN_ERRORS), says)
        elif not is_chained:
            [slug] = weights
            if name != slug and not (wildcard and self._placement.means(name, slug)):
                self._name(name, slug)

    def _place(self, deployment: Deployment, kind: str | None) -> PlacedEndpoint | None:
        """Return the endpoint of a deployment, and add its provider; None without an endpoint."""
        try:
            found = self._placement.place(deployment)
        except Unplaced as reason:
            self._notes.append(deployment.note(str(reason), is_loss=True))
            return None
        self._notes += found.notes
        if kind not in (None, found.kind):
            note = f"has the kind {found.kind}, unlike the first deployment with this name"
            self._notes.append(deployment.note(note, is_loss=True))
            return None
        # Two servers whose slugs would be the same are two providers.
        slugs = chain([found.provider], (f"{found.provider}-{each}" for each in count(2)))
        slug = next(each for each in slugs if self._providers.get(each, found.row) == found.row)
        self._providers[slug] = found.row
        found.endpoint = {**found.endpoint, "provider": slug}
        return found

    def _expand(
        self, name: str, group: Sequence[Deployment], *, known: Set[str]
    ) -> dict[str, list[Deployment]]:
        """Return deployments for each model of the base file that a wildcard matches, by name."""
        added: dict[str, list[Deployment]] = {}
        for deployment in group:
            if name.count(_ANY) != 1 or not deployment.model.endswith(f"/{_ANY}"):
                note = "only provider/* under a name with one * is imported: name the models"
                self._notes.append(deployment.note(note, is_loss=True))
                continue
            for _, upstream in self._placement.list_models_of(deployment.model):
                its_name = name.replace(_ANY, upstream)
                if its_name not in known:
                    model = deployment.model.replace(_ANY, upstream)
                    each = replace(deployment, name=its_name, model=model)
                    added.setdefault(its_name, []).append(each)
        return added

    def _wildcard(
        self, name: str, added: Mapping[str, Sequence[Deployment]], *, chained: Set[str]
    ) -> None:
        """Add the models that a wildcard matches."""
        where = f"{self._section} {name}"
        before = len(self._notes)
        for its_name, deployments in added.items():
            is_chained = its_name in chained
            listed_as = "" if is_chained else name
            self._group(its_name, deployments, is_chained=is_chained, wildcard=listed_as)
        # Most notes are the same for each of the models.
        found = dict.fromkeys((each.text, each.is_loss) for each in self._notes[before:])
        self._notes[before:] = [
            ImportNote(where=where, text=text, is_loss=is_loss) for text, is_loss in found
        ]
        imported = sum(its_name in self._steps for its_name in added)
        note = f"{imported} models of the base file have such names; other names are refused"
        self._note(where, f"{note}: add models to the base file, then import again", is_loss=True)

    def _add(
        self,
        name: str,
        known_as: str | None,
        members: Sequence[tuple[PlacedEndpoint, int]],
        *,
        is_chained: bool,
        is_ordered: bool,
    ) -> str:
        """Add a model with these endpoints and shares; return its slug."""
        endpoints = [each.endpoint for each, _ in members]
        if len(members) > 1 and not is_ordered:
            shares = _percents([share for _, share in members])
            endpoints = [
                each | {"weight": share} for each, share in zip(endpoints, shares, strict=True)
            ]
        model = {"name": name, **members[0][0].model}
        # The endpoints may differ, so the model has each capability that any of them has.
        sections = [each.model for each, _ in members]
        for key in ("context", "max_output"):
            if key in model:
                model[key] = max(each[key] for each in sections)
        for key, least in (("input", ("text",)), ("supports", ())):
            if any(key in each for each in sections):
                lists = [each.get(key, least) for each in sections]
                model[key] = list(dict.fromkeys(one for each in lists for one in each))
        model["endpoints"] = endpoints
        model.pop("after_retirement", None)
        model.pop("successor", None)
        slug = self._slug(name, known_as, model, is_chained=is_chained)
        self._models[slug] = model
        return slug

    def _slug(
        self, name: str, known_as: str | None, model: PlainSection, *, is_chained: bool
    ) -> str:
        """Return an unused slug, or the slug of an identical model."""
        if known_as and (same := [slug for slug, each in self._models.items() if each == model]):
            return same[0]
        plain = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._") or "model"
        new_slug = f"{self._config.source}/{plain}"
        for slug in (known_as, new_slug):
            if slug is None or self._models.get(slug, model) != model:
                continue
            # The slug may already be a name for other endpoints.
            if slug not in self._names or slug in self._models or (slug == name and not is_chained):
                return slug
        used = sum(each.startswith(new_slug) for each in self._models)
        return f"{new_slug}-{used + 1}"

    def _name(self, name: str, target: str) -> None:
        if _NAME.fullmatch(name) is None:
            note = "a name may have only letters, digits and . _ : / -"
            self._note(f"{self._section} {name}", note, is_loss=True)
        else:
            self._aliases[name] = {"to": target}

    def _add_route(self, name: str, steps: Sequence[_Step], errors: set[str], says: str) -> None:
        if _NAME.fullmatch(name) is None:
            note = "a name may have only letters, digits and . _ : / -"
            self._note(f"{self._section} {name}", note, is_loss=True)
            return
        self._routes[name] = {
            "description": f"{name}, {says}",
            "try": [next(iter(step)) if len(step) == 1 else step for step in steps],
            "next_on": [error for error in NEXT_ON_DEFAULT if error in errors],
        }

    def _chains(self) -> Iterator[tuple[str, tuple[tuple[str, ...], Sequence[str]]]]:
        """Yield each model name that has fallbacks, with the errors that lead to the fallbacks."""
        names = tuple(dict.fromkeys(each.name for each in self._config.deployments))
        for kind, errors in FALLBACK_KINDS.items():
            for name, fallbacks in self._config.fallbacks(kind):
                # LiteLLM's "*" stands for each name without fallbacks of the kind.
                stated = {each for each, _ in self._config.fallbacks(kind)}
                for each in [it for it in names if it not in stated] if name == _ANY else [name]:
                    yield each, (errors, fallbacks)
        default = name_list(self._config.setting("default_fallbacks"))
        for name in names if default else ():
            if name not in default and _ANY not in name:
                yield name, ((), default)

    def _fallbacks(self) -> None:
        """Add a route for each name that has fallbacks: first its own models, then the others."""
        chains: dict[str, tuple[set[str], dict[str, None]]] = {}
        for name, (errors, fallbacks) in self._chains():
            causes, models = chains.setdefault(name, (set(), {}))
            causes.update(errors or _CHAIN_ERRORS)
            models.update(dict.fromkeys(each for each in fallbacks if each != name))
        for name, (causes, after) in chains.items():
            where = f"fallbacks of {name}"
            for each in (name, *after):
                if each not in self._steps:
                    self._note(where, f"{each} was not imported", is_loss=True)
            if name not in self._steps:
                continue
            own = self._steps[name]
            slugs = [slug for step in own for slug in step]
            offers = [offer for slug in slugs for offer in self._models[slug]["endpoints"]]
            if len(offers) > 1 and not causes.issuperset(_CHAIN_ERRORS):
                causes.update(_CHAIN_ERRORS)
                note = "its fallbacks are also tried after errors of the provider"
                self._note(where, note, is_loss=True)
            self._sources[name].fallbacks = tuple(after)
            steps = list(self._without_repeats(where, [own, *map(self._steps.get, after)]))
            self._add_route(name, steps, causes, "and its fallbacks")

    def _without_repeats(self, where: str, chains: Sequence[list[_Step] | None]) -> Iterator[_Step]:
        """Yield the steps of chains without models that an earlier step tries."""
        tried: set[str] = set()
        kind = ""
        for step in (step for steps in chains for step in steps or ()):
            kind = kind or self._kind(next(iter(step)))
            for slug in step:
                if self._kind(slug) != kind:
                    self._note(where, f"{slug} has another kind of work", is_loss=True)
            kept = {
                slug: share
                for slug, share in step.items()
                if slug not in tried and self._kind(slug) == kind
            }
            tried.update(kept)
            if kept:
                shares = _percents([float(share) for share in kept.values()])
                yield dict(zip(kept, shares, strict=True))

    def _kind(self, slug: str) -> str:
        return str(self._models[slug].get("kind", "chat"))

    def _group_aliases(self) -> None:
        for name, target in as_mapping(self._config.setting("model_group_alias")).items():
            where = f"model_group_alias {name}"
            model = as_mapping(target).get("model", target)
            if not isinstance(model, str):
                self._note(where, "no model is named", is_loss=True)
            elif model in self._steps:
                [first, *_] = self._steps[model]
                self._name(str(name), model if model in self._routes else next(iter(first)))
                if model in self._sources:
                    self._sources[str(name)] = replace(self._sources[model], name=str(name))
            else:
                self._note(where, f"{model} was not imported", is_loss=True)


def _is_wild(name: str, group: Sequence[Deployment]) -> bool:
    return any(_ANY in each for each in (name, *(deployment.model for deployment in group)))


def _percents(shares: Sequence[float]) -> list[int]:
    """Return shares as integer percentages that sum to 100; equal shares if any share is 0."""
    if not all(shares):
        shares = [1.0] * len(shares)
    bounds = [0.0]
    for share in shares:
        bounds.append(bounds[-1] + share)
    ends = [round(bound / bounds[-1] * _WHOLE) for bound in bounds]
    return [end - start for start, end in pairwise(ends)]
