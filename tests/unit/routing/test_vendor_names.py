"""Names in the packages of OpenAI, Anthropic and LiteLLM, resolved by the file that ships.

Keeps C21.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, get_args

import pytest
from anthropic.types.model import Model
from openai.types import AudioModel, EmbeddingModel, ImageModel, ModerationModel
from openai.types.audio.speech_model import SpeechModel
from openai.types.shared import AllModels

from tests.unit.routing.catalogs import catalog, endpoint, model, provider
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.unknown_names import describe_unknown

ROOT = Path(__file__).parents[3]
LISTED = Path(__file__).with_name("names_of_litellm.txt")
SHARE_MIN = 0.95
LITERALS = (
    *(AllModels, AudioModel, EmbeddingModel, ImageModel, ModerationModel, Model, SpeechModel),
)
# Snapshots that the undated name no longer or never stood for, at OpenAI's prices of their own.
OTHER_SNAPSHOTS: Final = {"gpt-4o-2024-05-13", "gpt-4o-2024-11-20"}
# Models that the vendors serve and the catalog lacks: other kinds, closed programs, no price yet.
NOT_SERVED_HERE: Final = re.compile(
    r"claude-mythos-.*|gpt-.*(audio|cyber|rosalind).*|gpt-daybreak-.*|gpt-5\.[125]-(mini|pro).*"
    r"|gpt-6\.2-.*|gpt-image-2\.6-.*"
)
_DATE: Final = re.compile(r"-20[0-9]{2}-?[0-9]{2}-?[0-9]{2}$")


@cache
def shipped() -> Catalog:
    return Catalog.from_build(compile_catalog(ROOT / "routing.yaml").content)


def texts_of(literal: object) -> Iterator[str]:
    for part in get_args(literal):
        if isinstance(part, str):
            yield part
        else:
            yield from texts_of(part)


def listed() -> tuple[dict[str, str], dict[str, str]]:
    """Models, and reasons of names without one, by name."""
    models: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for line in LISTED.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            meaning, _, names = line.partition(": ")
            found = reasons if meaning.startswith("(") else models
            found |= dict.fromkeys(names.split(), meaning)
    return models, reasons


def test_c21_the_names_in_the_packages_of_openai_and_anthropic_resolve() -> None:
    catalog = shipped()
    bare = {slug.partition("/")[2].replace(".", "-") for slug in catalog.models}
    names = {name for literal in LITERALS for name in texts_of(literal)}
    there = {name for name in names if _DATE.sub("", name).replace(".", "-") in bare}
    assert len(there) > 70
    unknown = {name for name in there if catalog.target(name) not in catalog.models}
    assert unknown == OTHER_SNAPSHOTS & there
    assert len(unknown) <= (1 - SHARE_MIN) * len(there)


def test_c21_a_retired_name_in_the_packages_says_what_follows_it() -> None:
    catalog = shipped()
    names = {name for literal in LITERALS for name in texts_of(literal)}
    unknown = {name for name in names if catalog.target(name) not in catalog.models}
    retired = {name for name in unknown if not NOT_SERVED_HERE.fullmatch(name)} - OTHER_SNAPSHOTS
    assert len(retired) > 40
    silent = {name for name in retired if "; use " not in describe_unknown(catalog, name)}
    assert silent == set()


def test_c21_litellms_names_lead_to_the_models_that_they_name() -> None:
    catalog = shipped()
    models, reasons = listed()
    assert {name: catalog.target(name) for name in models} == models
    assert [name for name in reasons if catalog.target(name) in catalog.models] == []
    assert len(models) >= SHARE_MIN * (len(models) + len(reasons))


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("gpt-5", "openai/gpt-5"),
        ("gpt-5.1", "openai/gpt-5.1"),
        ("gemini-2.5-pro", "google/gemini-2.5-pro"),
        ("text-embedding-3-small", "openai/text-embedding-3-small"),
        ("text-embedding-3-large", "openai/text-embedding-3-large"),
        ("text-embedding-ada-002", "openai/text-embedding-ada-002"),
        ("whisper-1", "openai/whisper-1"),
        ("omni-moderation-latest", "openai/omni-moderation-latest"),
        ("gpt-oss-120b", "openai/gpt-oss-120b"),
        ("claude-opus-4-7", "anthropic/claude-opus-4.7"),
        ("claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4.5"),
        ("claude-haiku-4-5-20251001", "anthropic/claude-haiku-4.5"),
    ],
)
def test_c21_the_names_that_people_type_resolve(name: str, slug: str) -> None:
    assert shipped().target(name) == slug


def test_c21_a_model_of_this_machine_takes_no_name_of_another_model() -> None:
    models = {
        "openai/gpt-oss-20b": model(endpoint("near", "openai/gpt-oss-20b-maas")),
        "local/gpt-oss-20b": model(endpoint("near", "openai/gpt-oss-20b")),
        "local/llama3.2": model(endpoint("near", "llama3.2:latest")),
    }
    known = catalog(providers={"near": provider()}, models=models, aliases={}, routes={})
    for name in ("gpt-oss-20b", "openai/gpt-oss-20b", "gpt-oss-20b-maas"):
        assert known.target(name) == "openai/gpt-oss-20b"
    for name in ("llama3.2", "llama3.2:latest"):
        assert known.target(name) == "local/llama3.2"
    assert known.target("local/gpt-oss-20b") == "local/gpt-oss-20b"
