"""What the shipped catalog states without a source is counted, by name and with the reason."""

import json
import re
from typing import Final

import pytest

from tests.unit.routing.test_routing_yaml import FILE, ROOT
from tollgate.routing.file.load import inspect, load

ROUTING: Final = load(FILE)
UNCONFIRMED: Final = json.loads(
    (ROOT / "infra" / "catalog" / "unconfirmed.json").read_text(encoding="utf-8")
)
_PAGE: Final = re.compile(r"\w\.(?:com|ai|org|google|dev|gov|md|py|json)\b|OpenAPI|docs/")
EXPECTED_ROWS: Final = {
    *(
        "anthropic",
        "azure",
        "bedrock",
        "cerebras",
        "cloudflare",
        "cohere",
        "dashscope",
        "databricks",
    ),
    *("deepinfra", "deepseek", "fireworks", "google", "groq", "huggingface", "hyperbolic", "jina"),
    *(
        "llamacpp",
        "lmstudio",
        "mistral",
        "moonshot",
        "nebius",
        "novita",
        "nvidia",
        "ollama",
        "openai",
    ),
    *(
        "openrouter",
        "perplexity",
        "sambanova",
        "together",
        "vertex",
        "vllm",
        "voyage",
        "xai",
        "zai",
    ),
}
# It may fall. Whoever adds a name looked for a page first.
UNCONFIRMED_MAX: Final = 6


def test_what_no_page_confirms_is_in_one_place_and_grows_no_more() -> None:
    assert len(UNCONFIRMED) <= UNCONFIRMED_MAX, sorted(UNCONFIRMED)
    assert all(reason.endswith(".") for reason in UNCONFIRMED.values())


@pytest.mark.parametrize("name", UNCONFIRMED)
def test_an_unconfirmed_fact_is_one_of_the_file(name: str) -> None:
    slug, fact = name.split(" ")
    assert getattr(ROUTING.models[slug], fact) is not None


def test_no_comment_of_the_file_appeals_to_memory() -> None:
    for path in inspect(FILE, dev=False).files:
        assert "from memory" not in path.read_text(encoding="utf-8"), path.name


def test_a_day_of_release_is_the_one_in_a_name() -> None:
    """Names such as deepseek-v3-0324 and qwen3-…-2507 carry a month."""
    wrong = []
    for slug, model in ROUTING.models.items():
        month = slug.rpartition("-")[2]
        if model.released is None or len(month) != 4 or not month.isdigit():
            continue
        as_dates = {f"{model.released:%m%d}", f"{model.released:%y%m}"}
        if month not in as_dates:
            wrong.append(f"{slug}: {model.released}")
    assert wrong == []


def test_a_model_is_named_for_people() -> None:
    names = {slug: model.name for slug, model in ROUTING.models.items()}
    assert [slug for slug, name in names.items() if "/" in name or name == slug] == []


def test_each_row_with_a_dialect_names_where_that_is_from() -> None:
    """A page or a file of a package, in a comment of the row."""
    without = []
    for path in inspect(FILE, dev=False).files:
        section = path.read_text(encoding="utf-8").partition("\nproviders:\n")[2]
        section = section.partition("\nmodels:\n")[0]
        for row in re.split(r"(?m)^  (?=[\w-]+:)", section)[1:]:
            name = row.partition(":")[0]
            comments = " ".join(re.findall(r"# (.*)", row))
            if "dialect:" in row and not _PAGE.search(comments):
                without.append(name)
    assert without == []


def test_each_provider_that_callers_of_rivals_have_is_a_row_or_an_example() -> None:
    """GitHub Models is none: it was retired on 2026-07-30."""
    examples = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "examples").glob("*.yaml")
    )
    rows = ROUTING.providers.keys() | set(re.findall(r"(?m)^  ([\w-]+):", examples))
    assert rows >= EXPECTED_ROWS
