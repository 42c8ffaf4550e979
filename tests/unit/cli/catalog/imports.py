"""Imports of LiteLLM's configs into a folder, from a part of the shipped routing file."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner, Result

from tests.unit.routing.test_routing_yaml import FILE as SHIPPED
from tollgate.cli.catalog.import_config import render_routing
from tollgate.cli.catalog.litellm_import import ImportedRouting
from tollgate.cli.main import main
from tollgate.routing.file.load import load
from tollgate.routing.routing_file import Routing

OPENAI = {"model": "openai/gpt-4o", "api_key": "os.environ/OPENAI_API_KEY"}
CLAUDE = {"model": "anthropic/claude-haiku-4-5", "api_key": "os.environ/ANTHROPIC_API_KEY"}
BEDROCK = {"model": "bedrock/converse/us.anthropic.claude-haiku-4-5-20251001-v1:0"}


_BASE = (
    *("anthropic/claude-haiku-4.5", "anthropic/claude-opus-4.7", "anthropic/claude-sonnet-4.5"),
    *("openai/gpt-4.1", "openai/gpt-4.1-mini", "openai/gpt-4o", "openai/gpt-4o-mini"),
    *("openai/gpt-5-mini", "openai/gpt-image-2", "openai/text-embedding-3-small"),
    *("openai/tts-1", "openai/whisper-1", "qwen/qwen3-32b"),
)


@cache
def shipped() -> Routing:
    return load(SHIPPED)


@cache
def base() -> str:
    """The file of providers and models that imports start from: a part of the shipped one."""
    models = {slug: shipped().models[slug] for slug in _BASE}
    used = {endpoint.provider for each in models.values() for endpoint in each.endpoints}
    providers = {slug: each for slug, each in shipped().providers.items() if slug in used}
    sections = {
        name: {
            slug: each.model_dump(mode="python", by_alias=True, exclude_unset=True)
            for slug, each in entries.items()
        }
        for name, entries in (("providers", providers), ("models", models))
    }
    for model in sections["models"].values():
        model.pop("successor", None)
        model.pop("after_retirement", None)
    return render_routing(ImportedRouting(sections=sections, notes=(), sources=()), SHIPPED)


def entry(name: str, params: dict[str, Any], **facts: Any) -> dict[str, Any]:
    return {"model_name": name, "litellm_params": params, "model_info": facts}


def imported(folder: Path, *entries: dict[str, Any], **sections: Any) -> tuple[Routing, str]:
    """The routing that a config becomes, and what the command says."""
    result = run(folder, {"model_list": list(entries), **sections})
    assert result.exit_code == 0, result.output
    return load(folder / "new.yaml"), result.stderr


def run(folder: Path, config: Any, *options: str, color: bool = False) -> Result:
    path = folder / "config.yaml"
    path.write_text(config if isinstance(config, str) else yaml.safe_dump(config))
    output = folder / "new.yaml"
    (folder / "base.yaml").write_text(base())
    named = ("--base", str(folder / "base.yaml"), "-o", str(output), *options)
    return CliRunner().invoke(main, ["import", "litellm", str(path), *named], color=color)
