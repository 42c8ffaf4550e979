"""Reader of LiteLLM proxy configs.

Format: https://docs.litellm.ai/docs/proxy/config_settings, and the examples in litellm 1.109.1.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import Struct

_FILE_BYTES_MAX: Final = 4_000_000
_ENVIRONMENT: Final = "os.environ/"
# The errors that lead to each kind of LiteLLM's fallbacks; an empty tuple means any error.
FALLBACK_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "fallbacks": (),
    "context_window_fallbacks": ("context_length_exceeded",),
    "content_policy_fallbacks": ("content_filter",),
}


class NotALitellmConfig(ValueError):
    """Raised for a file that is not a LiteLLM proxy config."""


class ImportNote(Struct, frozen=True, kw_only=True):
    """A setting that was not converted without changes, with the reason."""

    where: str
    text: str
    is_loss: bool = False
    """True if requests that the source serves may be served differently, or not at all."""


class Deployment(Struct, frozen=True, kw_only=True):
    """An entry in `model_list`."""

    name: str
    model: str
    params: Mapping[str, Any]
    facts: Mapping[str, Any]
    """The entry's `model_info`."""
    section: str = "model_list"
    """The section of the source that notes on this deployment name."""

    @property
    def share(self) -> float:
        """The weight of this deployment among deployments of the same name; 0 if not set."""
        for key in ("weight", "rpm", "tpm"):
            weight = self.params.get(key)
            if isinstance(weight, int | float) and 0 < weight < inf:
                return float(weight)
        return 0.0

    def variable(self, key: str) -> str | None:
        """Return the environment variable that a parameter refers to, or None."""
        value = self.params.get(key)
        if isinstance(value, str) and value.startswith(_ENVIRONMENT):
            return value.removeprefix(_ENVIRONMENT)
        return None

    def note(self, text: str, *, is_loss: bool = False) -> ImportNote:
        """Return a note on this deployment."""
        return ImportNote(
            where=f"{self.section} {self.name} ({self.model})", text=text, is_loss=is_loss
        )

    def fact(self, key: str) -> Any:
        """Return a value from the parameters or from `model_info`."""
        return self.params.get(key, self.facts.get(key))


class LitellmConfig(Struct, frozen=True, kw_only=True):
    """A LiteLLM proxy config."""

    deployments: tuple[Deployment, ...]
    sections: Mapping[str, Any]
    source: str = "litellm"
    """The author in the slugs of models that the base file lacks."""
    notes: tuple[ImportNote, ...] = ()
    """Notes on settings that the reader left out."""

    def setting(self, *names: str) -> Any:
        """Return the first of these settings that the router's or the proxy's section has, or
        None.
        """
        for section in ("router_settings", "litellm_settings"):
            for name in names:
                if (found := as_mapping(self.sections.get(section)).get(name)) is not None:
                    return found
        return None

    def fallbacks(self, kind: str) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield each model name with its fallbacks of one kind."""
        for each in as_list(self.setting(kind)):
            for name, fallbacks in as_mapping(each).items():
                yield str(name), name_list(fallbacks)


def read_source(path: Path) -> bytes:
    """Return the text of a file; raise NotALitellmConfig if the file cannot be read."""
    try:
        raw = path.read_bytes()
    except OSError as unreadable:
        raise NotALitellmConfig(f"{path.as_posix()} cannot be read: {unreadable}") from unreadable
    if len(raw) > _FILE_BYTES_MAX:
        raise NotALitellmConfig(f"{path.as_posix()} is larger than {_FILE_BYTES_MAX} bytes")
    return raw


def read_yaml_source(path: Path) -> Mapping[str, Any]:
    """Return the mapping in a file, or an empty mapping for other content."""
    raw = read_source(path)
    try:
        return as_mapping(yaml.safe_load(raw))
    except yaml.MarkedYAMLError as invalid:
        # The full message quotes the line, which may contain a key.
        mark = invalid.problem_mark
        where = f" in line {mark.line + 1}" if mark else ""
        raise NotALitellmConfig(
            f"{path.as_posix()} cannot be read: {invalid.problem}{where}"
        ) from None
    except (yaml.YAMLError, RecursionError, ValueError) as unreadable:
        raise NotALitellmConfig(f"{path.as_posix()} cannot be read: {unreadable}") from unreadable


def read_litellm_config(path: Path) -> LitellmConfig:
    """Return the config in a file; raise NotALitellmConfig if the file has none."""
    sections = read_yaml_source(path)
    notes: list[ImportNote] = []
    deployments = tuple(_deployments(sections.get("model_list"), notes))
    if not deployments:
        raise NotALitellmConfig(f"{path.as_posix()} has no model_list with models")
    return LitellmConfig(deployments=deployments, sections=sections, notes=tuple(notes))


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping, otherwise an empty mapping."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> Sequence[Any]:
    """Return the value if it is a list, otherwise an empty list."""
    return value if isinstance(value, list) else ()


def name_list(value: Any) -> Sequence[str]:
    """Return the strings in a list, which are the names of models."""
    return [each for each in as_list(value) if isinstance(each, str)]


def _deployments(entries: Any, notes: list[ImportNote]) -> Iterator[Deployment]:
    for place, entry in enumerate(map(as_mapping, as_list(entries)), start=1):
        params = as_mapping(entry.get("litellm_params"))
        name, model = entry.get("model_name"), params.get("model")
        if not (isinstance(name, str) and isinstance(model, str)):
            text = "model_name or litellm_params.model is missing"
            notes.append(ImportNote(where=f"model_list, entry {place}", text=text, is_loss=True))
        else:
            # Some configs set limits next to the parameters.
            limits = {key: entry[key] for key in ("rpm", "tpm") if key in entry}
            facts = as_mapping(entry.get("model_info"))
            yield Deployment(name=name, model=model, params={**limits, **params}, facts=facts)
