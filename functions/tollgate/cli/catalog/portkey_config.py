"""Reader of Portkey configs.

Format: https://portkey.ai/docs/product/ai-gateway/configs, its sibling pages on fallbacks, load
balancing, conditional routing and automatic retries, and
https://portkey.ai/docs/guides/use-cases/combining-routing-strategies (seen 2026-11-27).
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import DecodeError, json

from tollgate.cli.catalog.litellm_config import (
    Deployment,
    ImportNote,
    LitellmConfig,
    NotALitellmConfig,
    as_list,
    as_mapping,
    read_source,
)

_SECTION: Final = "target"
# The providers whose name in Portkey differs from LiteLLM's prefix.
_PREFIXES: Final[Mapping[str, str]] = {
    "azure-ai": "azure_ai",
    "azure-openai": "azure",
    "fireworks-ai": "fireworks_ai",
    "google": "gemini",
    "jina": "jina_ai",
    "mistral-ai": "mistral",
    "novita-ai": "novita",
    "perplexity-ai": "perplexity",
    "together-ai": "together_ai",
    "vertex-ai": "vertex_ai",
    "x-ai": "xai",
    "zhipu": "zai",
}
# The keys of a target, with the deployment parameters that they are converted to.
_PARAMS: Final[Mapping[str, str]] = {
    "api_key": "api_key",
    "aws_region": "aws_region_name",
    "custom_host": "api_base",
}
_TARGET_KEYS: Final = frozenset(
    {
        "deployment_id",
        "name",
        "override_params",
        "provider",
        "resource_name",
        "strategy",
        "targets",
        "virtual_key",
        "weight",
    }
)
_GUARDRAILS: Final = (
    "`guardrail` of a route is for Bedrock's guardrails; others have no counterpart"
)
# Settings of a config or a target that are not copied, and whether an answer may change.
_ADVICE: Final[Mapping[str, tuple[str, bool]]] = {
    "after_request_hooks": (_GUARDRAILS, True),
    "before_request_hooks": (_GUARDRAILS, True),
    "cache": ("answers are stored only under an Idempotency-Key", False),
    "input_guardrails": (_GUARDRAILS, True),
    "output_guardrails": (_GUARDRAILS, True),
    "request_timeout": ("`timeouts` of an endpoint", False),
    "retry": ("`retry` of a route", False),
}
# Statuses by which a provider refuses the request itself, so that no other model is tried.
_REFUSED: Final = frozenset({400, 413, 415, 422})
_MILLISECOND_S: Final = 0.001


def read_portkey(path: Path, providers: Mapping[str, str]) -> LitellmConfig:
    """Return the config in a file, named after the file; raise NotALitellmConfig if it has no
    models.

    `providers` are the providers behind virtual keys and slugs.
    """
    try:
        content = as_mapping(json.decode(read_source(path)))
    except (DecodeError, UnicodeDecodeError) as invalid:
        raise NotALitellmConfig(f"{path.as_posix()} is not JSON: {invalid}") from invalid
    # Portkey's API wraps a config.
    config = as_mapping(as_mapping(content.get("data")).get("config")) or content
    read = _Reading(providers)
    read.config(path.stem, config)
    if not read.deployments:
        raise NotALitellmConfig(
            f"{path.as_posix()} names no model: callers name one, and known names need no import"
        )
    return LitellmConfig(
        deployments=tuple(read.deployments),
        sections={"router_settings": {**read.settings, "fallbacks": [read.fallbacks]}},
        source="portkey",
        notes=tuple(read.notes),
    )


class _Reading:
    """Visits a config and collects deployments, fallbacks and notes."""

    def __init__(self, providers: Mapping[str, str]) -> None:
        self._providers = providers
        self.deployments: list[Deployment] = []
        self.fallbacks: dict[str, list[str]] = {}
        self.settings: dict[str, Any] = {}
        self.notes: list[ImportNote] = []

    def config(self, name: str, config: Mapping[str, Any]) -> None:
        """Add the config under its name, and under the names of the models in its conditions."""
        retry = as_mapping(config.get("retry"))
        if isinstance(retry.get("attempts"), int):
            self.settings["num_retries"] = retry["attempts"]
            if "on_status_codes" in retry:
                text = "errors of the provider and rate limits are retried, whatever their status"
                self._note("retry.on_status_codes", text)
        timeout = config.get("request_timeout")
        if isinstance(timeout, int):
            self.settings["timeout"] = timeout * _MILLISECOND_S
        done = {"request_timeout"} | ({"retry"} if "num_retries" in self.settings else set())
        root = {key: value for key, value in config.items() if key not in done}
        strategy = as_mapping(root.get("strategy"))
        if strategy.get("mode") != "conditional":
            self._strategy(name, root)
            return
        targets = {
            str(each.get("name")): _inherit(root, each)
            for each in map(as_mapping, as_list(root.get("targets")))
        }
        for number, condition in enumerate(as_list(strategy.get("conditions")), start=1):
            where = f"condition {number}"
            then = str(as_mapping(condition).get("then"))
            models = list(_models_of(as_mapping(as_mapping(condition).get("query"))))
            if not models or then not in targets:
                text = "only $eq and $in of params.model are imported: write a route's `rules`"
                self._note(where, text, is_loss=True)
                continue
            for model in models:
                self._strategy(model, targets[then], model)
        default = strategy.get("default")
        if default in targets:
            self._strategy(name, targets[default])

    def _strategy(self, name: str, node: Mapping[str, Any], model: str | None = None) -> None:
        """Add a name with the targets of a strategy; `model` is the model that callers request."""
        strategy = as_mapping(node.get("strategy"))
        targets = [_inherit(node, each) for each in map(as_mapping, as_list(node.get("targets")))]
        mode = strategy.get("mode", "single")
        if not targets:
            self._target(name, node, model, {})
        elif mode == "loadbalance":
            for target in targets:
                weight = target.get("weight", 1)
                if weight == 0:
                    self._note(f"{_SECTION} of {name}", "a target with weight 0 is left out")
                    continue
                self._target(name, self._first(name, target), model, {"weight": weight})
        elif mode == "fallback":
            self._note_statuses(name, strategy)
            if not any("targets" in each for each in targets):
                for order, target in enumerate(targets):
                    self._target(name, target, model, {"order": order})
                return
            names = [name, *(f"{name}-{number}" for number in range(2, len(targets) + 1))]
            for each, target in zip(names, targets, strict=True):
                self._strategy(each, target, model)
            self.fallbacks[name] = [*self.fallbacks.get(name, ()), *names[1:]]
        else:
            if mode != "single":
                text = f"mode {mode} within another strategy: its first target is used"
                self._note(f"strategy of {name}", text, is_loss=True)
            self._target(name, self._first(name, targets[0]), model, {})

    def _first(self, name: str, node: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the first target of a nested strategy."""
        targets = as_list(node.get("targets"))
        if not targets:
            return node
        text = "a strategy within a weighted or single target: only its first target is used"
        self._note(f"strategy of {name}", text, is_loss=True)
        return self._first(name, _inherit(node, as_mapping(targets[0])))

    def _target(
        self, name: str, target: Mapping[str, Any], asked: str | None, draw: Mapping[str, Any]
    ) -> None:
        """Add a deployment for a target."""
        overrides = as_mapping(target.get("override_params"))
        slug = target.get("provider") or f"@{target.get('virtual_key', '')}"
        model = overrides.get("model", asked)
        if not isinstance(model, str):
            text = "names no model: state override_params.model"
            self._note(f"{_SECTION} of {name}", text, is_loss=True)
            return
        if model.startswith("@"):
            slug, _, model = model.partition("/")
        provider = self._provider(name, str(slug))
        params = {
            **{_PARAMS.get(key, key): value for key, value in self._kept(name, target)},
            **{key: value for key, value in overrides.items() if key != "model"},
            **draw,
        }
        facts: dict[str, Any] = {}
        if provider == "azure":
            facts["base_model"] = model
            model = str(target.get("deployment_id") or model)
            if resource := target.get("resource_name"):
                params["api_base"] = f"https://{resource}.openai.azure.com"
        self.deployments.append(
            Deployment(
                name=name,
                model=f"{provider}/{model}",
                params=params,
                facts=facts,
                section=_SECTION,
            )
        )

    def _kept(self, name: str, target: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield the settings of a target that become parameters; note settings with advice."""
        for key, value in target.items():
            if key in _ADVICE:
                text, is_loss = _ADVICE[key]
                self._note(f"{key} of {name}", text, is_loss=is_loss)
            elif key not in _TARGET_KEYS:
                yield key, value

    def _provider(self, name: str, slug: str) -> str:
        """Return LiteLLM's prefix for a provider, a virtual key or an @slug."""
        plain = slug.removeprefix("@")
        known = self._providers.get(plain)
        if known is None and plain != slug:
            text = f"if {slug} is not the provider {plain}, write --provider {plain}=PROVIDER"
            self._note(f"{_SECTION} of {name}", text, is_loss=True)
        known = known or plain
        return _PREFIXES.get(known, known)

    def _note_statuses(self, name: str, strategy: Mapping[str, Any]) -> None:
        codes: Sequence[Any] = as_list(strategy.get("on_status_codes"))
        others = [code for code in codes if code in _REFUSED]
        if not codes:
            text = "requests that a provider refuses as invalid are not tried at the next target"
            self._note(f"strategy of {name}", text, is_loss=True)
        elif others:
            text = f"status {', '.join(map(str, others))} does not lead to the next target"
            self._note(f"strategy of {name}", text, is_loss=True)

    def _note(self, where: str, text: str, *, is_loss: bool = False) -> None:
        note = ImportNote(where=where, text=text, is_loss=is_loss)
        if note not in self.notes:
            self.notes.append(note)


def _inherit(node: Mapping[str, Any], target: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a target that inherits unset settings from the strategy around it."""
    around = {key: value for key, value in node.items() if key not in ("strategy", "targets")}
    around.pop("weight", None)
    overrides = {
        **as_mapping(node.get("override_params")),
        **as_mapping(target.get("override_params")),
    }
    return {**around, **target, **({"override_params": overrides} if overrides else {})}


def _models_of(query: Mapping[str, Any]) -> Iterator[str]:
    """Yield the models of a condition that compares only the requested model."""
    if query.keys() != {"params.model"}:
        return
    test = query["params.model"]
    if isinstance(test, str):
        yield test
        return
    match dict(as_mapping(test)):
        case {"$eq": str(model), **rest} if not rest:
            yield model
        case {"$in": list(models), **rest} if not rest:
            yield from (model for model in models if isinstance(model, str))
