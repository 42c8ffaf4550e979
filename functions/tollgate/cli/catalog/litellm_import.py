"""Conversion of a LiteLLM proxy config to a routing file, with notes on unconverted settings."""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from math import inf
from typing import Any, Final

from msgspec import Struct, field

from tollgate.cli.catalog.litellm_config import (
    FALLBACK_KINDS,
    Deployment,
    LitellmConfig,
    as_mapping,
    name_list,
)
from tollgate.cli.catalog.litellm_endpoints import PlacedEndpoint, Placement, PlainSection, Unplaced
from tollgate.routing.chains import NEXT_ON_DEFAULT

_WHOLE: Final = 100
_RETRIES_MAX: Final = 2
_SECONDS_MAX: Final = 900
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}")
_CHAIN_ERRORS: Final = tuple(
    name for name in NEXT_ON_DEFAULT if name not in ("context_length_exceeded", "content_filter")
)
# LiteLLM's sections of budgets for keys, with the name of the tier that each section becomes.
_TIERS: Final = {
    "default_key_generate_params": "default",
    "upperbound_key_generate_params": "upper-bound",
    "default_internal_user_params": "internal-user",
}
_PERIODS: Final = {"24h": "day", "1d": "day", "7d": "week", "30d": "month", "1mo": "month"}
# Settings that need no note, because the import reads them or the gateway always behaves that way.
_KEPT: Final = frozenset(
    {
        "litellm_settings.drop_params",
        "litellm_settings.modify_params",
        "litellm_settings.num_retries",
        "litellm_settings.request_timeout",
        "litellm_settings.telemetry",
        "router_settings.allowed_fails",
        "router_settings.cooldown_time",
        "router_settings.enable_pre_call_checks",
        "router_settings.model_group_alias",
        "router_settings.num_retries",
        "router_settings.timeout",
        *(
            f"{part}.{kind}"
            for part in ("litellm_settings", "router_settings")
            for kind in FALLBACK_KINDS
        ),
        *(f"{part}.default_fallbacks" for part in ("litellm_settings", "router_settings")),
        *(f"litellm_settings.{name}" for name in _TIERS),
    }
)
_ADVICE: Final[Mapping[str, str]] = {
    "general_settings.master_key": "use `tollgate first-key` and `tollgate keys create`",
    "general_settings.database_url": "keys and money are in DynamoDB; no other database is needed",
    "guardrails": "use `guardrail` in a route for Bedrock's guardrails; others have no counterpart",
    "litellm_settings.cache": "answers are stored only under an Idempotency-Key",
    "litellm_settings.callbacks": "spans go to a collector by OTLP, and metrics are log lines",
    "litellm_settings.failure_callback": "spans go to a collector by OTLP, and metrics are log "
    "lines",
    "litellm_settings.max_budget": "`tollgate workspaces update` sets the budget of a workspace",
    "litellm_settings.success_callback": "spans go to a collector by OTLP, and metrics are log "
    "lines",
    "router_settings.redis_host": "cooldowns and limits are shared through DynamoDB",
    "router_settings.routing_strategy": "endpoints are drawn by weight, or tried in order; "
    "a request may sort them by `provider.sort`",
}


class ImportedRouting(Struct, kw_only=True):
    """The sections of a routing file, and notes: each a setting, and the reason why it was not
    converted.
    """

    sections: dict[str, Any]
    notes: list[tuple[str, str]] = field(default_factory=list)


def import_litellm(config: LitellmConfig, placement: Placement) -> ImportedRouting:
    """Convert a config to the sections of a routing file."""
    return _Import(config, placement).run()


class _Import:
    """A conversion that collects sections and notes."""

    def __init__(self, config: LitellmConfig, placement: Placement) -> None:
        self._config = config
        self._placement = placement
        self._notes: list[tuple[str, str]] = []
        self._providers: dict[str, PlainSection] = {}
        self._models: dict[str, PlainSection] = {}
        self._aliases: dict[str, PlainSection] = {}
        self._routes: dict[str, PlainSection] = {}
        # Slugs by LiteLLM's model names.
        self._slugs: dict[str, str] = {}

    def run(self) -> ImportedRouting:
        groups: dict[str, list[Deployment]] = {}
        for deployment in self._config.deployments:
            groups.setdefault(deployment.name, []).append(deployment)
        chained = {name for name, _ in self._chains()}
        for name, group in groups.items():
            self._group(name, group, is_chained=name in chained)
        self._fallbacks()
        self._group_aliases()
        tiers = dict(self._tiers())
        self._unused()
        sections: dict[str, Any] = {
            "version": 1,
            "defaults": dict(self._defaults()),
            "providers": self._providers,
            "models": dict(self._named_once()),
            "aliases": self._aliases,
            "routes": self._routes,
            "key_tiers": tiers,
        }
        filled = {name: section for name, section in sections.items() if section}
        return ImportedRouting(sections=filled, notes=self._notes)

    def _named_once(self) -> Iterator[tuple[str, PlainSection]]:
        """Yield the models; a name is left out where an alias, a route or a model before has it."""
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

    def _group(self, name: str, group: Sequence[Deployment], *, is_chained: bool) -> None:
        """Add one model for all deployments of a name, and the name as the model's alias."""
        where = f"model_list {name}"
        if "*" in name or any("*" in each.model for each in group):
            models = self._placement.list_models_of(group[0].model)
            advice = f"name the models, such as {models[0]}" if models else "name the models"
            self._notes.append((where, f"wildcards are not supported: {advice}"))
            return
        placed: list[tuple[Deployment, PlacedEndpoint]] = []
        for deployment in group:
            try:
                found = self._placement.place(deployment)
            except Unplaced as reason:
                self._notes.append((f"{where} ({deployment.model})", str(reason)))
                continue
            self._notes += [(f"{where} ({deployment.model})", note) for note in found.notes]
            offers = [(each.endpoint["provider"], each.endpoint["upstream"]) for _, each in placed]
            if (found.endpoint["provider"], found.endpoint["upstream"]) in offers:
                note = "appears twice with the same endpoint; the second was left out"
                self._notes.append((f"{where} ({deployment.model})", note))
                continue
            if placed and found.kind != placed[0][1].kind:
                note = f"has the kind {found.kind}, unlike the first deployment with this name"
                self._notes.append((f"{where} ({deployment.model})", note))
                continue
            self._providers.setdefault(found.provider, found.row)
            found.endpoint = found.endpoint | {"provider": found.provider}
            placed.append((deployment, found))
        if placed:
            self._add(name, placed, is_chained=is_chained)

    def _add(
        self,
        name: str,
        placed: Sequence[tuple[Deployment, PlacedEndpoint]],
        *,
        is_chained: bool,
    ) -> None:
        endpoints = [each.endpoint for _, each in placed]
        if len(placed) > 1:
            shares = _percents([deployment.share for deployment, _ in placed])
            endpoints = [
                each | {"weight": share} for each, share in zip(endpoints, shares, strict=True)
            ]
        first = placed[0][1]
        limits: PlainSection = {
            key: min(each.model[key] for _, each in placed)
            for key in ("context", "max_output")
            if key in first.model
        }
        for endpoint in endpoints:
            if endpoint.get("max_output", 0) > limits.get("max_output", inf):
                endpoint.pop("max_output")
        model = {"name": name, **first.model, **limits, "endpoints": endpoints}
        model.pop("after_retirement", None)
        model.pop("successor", None)
        lists_of = ("input", "supports") if first.kind == "chat" else ("input",)
        for key in lists_of:
            lists = [each.model.get(key, ["text"] if key == "input" else []) for _, each in placed]
            model[key] = [each for each in lists[0] if all(each in other for other in lists)]
        slug = self._slug(name, first.known_as, model, is_chained=is_chained)
        self._models[slug] = model
        self._slugs[name] = slug
        if name != slug and not is_chained:
            self._name(name, slug)

    def _slug(
        self, name: str, known_as: str | None, model: PlainSection, *, is_chained: bool
    ) -> str:
        """Return an unused slug, or the slug of an identical model."""
        new_slug = f"litellm/{re.sub(r'[^a-z0-9._-]+', '-', name.lower()).strip('-._') or 'model'}"
        for slug in (known_as, new_slug):
            same = slug is not None and self._models.get(slug, model) == model
            if slug is not None and same and not (is_chained and slug == name):
                return slug
        used = sum(each.startswith(new_slug) for each in self._models)
        return f"{new_slug}-{used + 1}"

    def _name(self, name: str, target: str) -> None:
        if _NAME.fullmatch(name) is None:
            note = "a name may have only letters, digits and . _ : / -"
            self._notes.append((f"model_list {name}", note))
        else:
            self._aliases[name] = {"to": target}

    def _chains(self) -> Iterator[tuple[str, tuple[tuple[str, ...], Sequence[str]]]]:
        """Yield each model name that has fallbacks, with the errors that lead to the fallbacks."""
        for kind, errors in FALLBACK_KINDS.items():
            for name, fallbacks in self._config.fallbacks(kind):
                yield name, (errors, fallbacks)
        default = name_list(self._config.setting("default_fallbacks"))
        if default:
            for deployment in self._config.deployments:
                if deployment.name not in default:
                    yield deployment.name, ((), default)

    def _fallbacks(self) -> None:
        """Add a route for each name that has fallbacks: first its own model, then the fallbacks."""
        chains: dict[str, tuple[set[str], dict[str, None]]] = {}
        for name, (errors, fallbacks) in self._chains():
            causes, models = chains.setdefault(name, (set(), {}))
            causes.update(errors or _CHAIN_ERRORS)
            models.update(dict.fromkeys(fallbacks))
        for name, (causes, after) in chains.items():
            missing = [each for each in (name, *after) if each not in self._slugs]
            for each in missing:
                self._notes.append((f"fallbacks of {name}", f"{each} was not imported"))
            tried = dict.fromkeys(
                self._slugs[each] for each in (name, *after) if each in self._slugs
            )
            for slug in list(tried)[1:]:
                if self._kind(slug) != self._kind(next(iter(tried))):
                    del tried[slug]
                    self._notes.append((f"fallbacks of {name}", f"{slug} has another kind of work"))
            if name in self._slugs and _NAME.fullmatch(name):
                self._routes[name] = {
                    "description": f"{name}, and its fallbacks",
                    "try": list(tried),
                    "next_on": [error for error in NEXT_ON_DEFAULT if error in causes],
                }

    def _kind(self, slug: str) -> str:
        return str(self._models[slug].get("kind", "chat"))

    def _group_aliases(self) -> None:
        for name, target in as_mapping(self._config.setting("model_group_alias")).items():
            model = as_mapping(target).get("model", target)
            if not isinstance(model, str):
                self._notes.append((f"model_group_alias {name}", "no model is named"))
            elif model in self._slugs:
                self._name(str(name), model if model in self._routes else self._slugs[model])
            else:
                self._notes.append((f"model_group_alias {name}", f"{model} was not imported"))

    def _defaults(self) -> Iterator[tuple[str, PlainSection]]:
        retries = self._config.setting("num_retries")
        if isinstance(retries, int):
            yield "retry", {"retries_max": max(0, min(retries, _RETRIES_MAX))}
            if retries > _RETRIES_MAX:
                note = f"{_RETRIES_MAX} is the maximum; then the next endpoint is tried"
                self._notes.append(("num_retries", note))
        total = self._config.setting("request_timeout", "timeout")
        if isinstance(total, int | float) and 0 < total < inf:
            yield "timeouts", {"non_streamed_total_s": min(total, _SECONDS_MAX)}
        cooldown = {
            name: value
            for name, value in (
                ("after_failures", self._config.setting("allowed_fails")),
                ("rest_s", self._config.setting("cooldown_time")),
            )
            if isinstance(value, int) and value > 0
        }
        if cooldown:
            yield "cooldown", cooldown

    def _tiers(self) -> Iterator[tuple[str, PlainSection]]:
        for section, tier in _TIERS.items():
            parameters = as_mapping(self._config.setting(section))
            limits: PlainSection = {}
            models = [name for name in name_list(parameters.get("models")) if name in self._slugs]
            if models:
                limits["models"] = models
            rpm = parameters.get("rpm_limit")
            if isinstance(rpm, int) and rpm > 0:
                limits["rpm"] = rpm
            budget = parameters.get("max_budget")
            if isinstance(budget, int | float) and 0 <= budget < inf:
                lasts = str(parameters.get("budget_duration") or "")
                period = _PERIODS.get(lasts, "month" if lasts else "total")
                limits["budget"] = {"usd": Decimal(str(budget)), "per": period}
                if lasts and lasts not in _PERIODS:
                    note = f"a budget of {lasts} became a monthly budget"
                    self._notes.append((f"litellm_settings.{section}", note))
            if limits:
                yield tier, limits

    def _unused(self) -> None:
        """Add a note for each setting that was not converted."""
        for section, content in self._config.sections.items():
            if section == "model_list":
                continue
            inside = as_mapping(content)
            names = [f"{section}.{name}" for name in inside] if section.endswith("settings") else []
            for name in names or [section]:
                if name not in _KEPT:
                    self._notes.append((name, _ADVICE.get(name, "it has no counterpart")))


def _percents(shares: Sequence[float]) -> list[int]:
    """Return shares as integer percentages that sum to 100; equal shares if any share is 0."""
    if not all(shares):
        shares = [1.0] * len(shares)
    bounds = [0.0]
    for share in shares:
        bounds.append(bounds[-1] + share)
    ends = [round(bound / bounds[-1] * _WHOLE) for bound in bounds]
    return [end - start for start, end in pairwise(ends)]
