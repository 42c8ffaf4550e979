"""Read a config of LiteLLM's proxy: its deployments, fallbacks and limits, and all other settings.

https://docs.litellm.ai/docs/proxy/config_settings, and the examples in litellm 1.109.1.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import Struct

_FILE_BYTES_MAX: Final = 4_000_000
_ENVIRONMENT: Final = "os.environ/"
# The fallbacks of LiteLLM, with the errors after which they are taken; none: after any.
FALLBACK_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "fallbacks": (),
    "context_window_fallbacks": ("context_length_exceeded",),
    "content_policy_fallbacks": ("content_filter",),
}


class NotALitellmConfig(ValueError):
    """A file that is no config of LiteLLM's proxy."""


class Deployment(Struct, frozen=True, kw_only=True):
    """One entry of `model_list`."""

    name: str
    model: str
    params: Mapping[str, Any]
    facts: Mapping[str, Any]
    """The `model_info` of the entry."""

    @property
    def share(self) -> float:
        """The weight by which LiteLLM draws it among those of the same name; 0 without one."""
        for key in ("weight", "rpm", "tpm"):
            stated = self.params.get(key)
            if isinstance(stated, int | float) and 0 < stated < inf:
                return float(stated)
        return 0.0

    def variable(self, key: str) -> str | None:
        """Return the name of the environment variable that a parameter refers to."""
        stated = self.params.get(key)
        if isinstance(stated, str) and stated.startswith(_ENVIRONMENT):
            return stated.removeprefix(_ENVIRONMENT)
        return None

    def fact(self, key: str) -> Any:
        """Return a value of the parameters or of `model_info`."""
        return self.params.get(key, self.facts.get(key))


class LitellmConfig(Struct, frozen=True, kw_only=True):
    """One config with its sections."""

    deployments: tuple[Deployment, ...]
    sections: Mapping[str, Any]

    def setting(self, *names: str) -> Any:
        """Return the first of these settings that is stated, of the router's and the proxy's."""
        for section in ("router_settings", "litellm_settings"):
            for name in names:
                if (found := as_mapping(self.sections.get(section)).get(name)) is not None:
                    return found
        return None

    def fallbacks(self, kind: str) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield each name with those to try after it."""
        for each in as_list(self.setting(kind)):
            for name, others in as_mapping(each).items():
                yield str(name), name_list(others)


def read_litellm_config(path: Path) -> LitellmConfig:
    """Read a config; NotALitellmConfig if it is none."""
    try:
        raw = path.read_bytes()
        if len(raw) > _FILE_BYTES_MAX:
            raise NotALitellmConfig(f"{path.as_posix()} is larger than {_FILE_BYTES_MAX} bytes")
        content = yaml.safe_load(raw)
    except yaml.MarkedYAMLError as invalid:
        # The whole message quotes the line, in which a key may stand.
        mark = invalid.problem_mark
        where = f" in line {mark.line + 1}" if mark else ""
        raise NotALitellmConfig(
            f"{path.as_posix()} cannot be read: {invalid.problem}{where}"
        ) from None
    except (OSError, yaml.YAMLError, RecursionError, ValueError) as unreadable:
        raise NotALitellmConfig(f"{path.as_posix()} cannot be read: {unreadable}") from unreadable
    sections = as_mapping(content)
    deployments = tuple(_deployments(sections.get("model_list")))
    if not deployments:
        raise NotALitellmConfig(f"{path.as_posix()} has no model_list with models")
    return LitellmConfig(deployments=deployments, sections=sections)


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping as it is, anything else as an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> Sequence[Any]:
    """Return a list as it is, anything else as an empty one."""
    return value if isinstance(value, list) else ()


def name_list(value: Any) -> Sequence[str]:
    """Return the texts of a list; anything else names no model."""
    return [each for each in as_list(value) if isinstance(each, str)]


def _deployments(entries: Any) -> Iterator[Deployment]:
    for entry in map(as_mapping, as_list(entries)):
        params = as_mapping(entry.get("litellm_params"))
        name, model = entry.get("model_name"), params.get("model")
        if isinstance(name, str) and isinstance(model, str):
            # Some examples state limits beside the parameters.
            beside = {key: entry[key] for key in ("rpm", "tpm") if key in entry}
            facts = as_mapping(entry.get("model_info"))
            yield Deployment(name=name, model=model, params={**beside, **params}, facts=facts)
