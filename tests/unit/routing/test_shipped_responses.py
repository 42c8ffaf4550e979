"""Work that the providers of the shipped rows for Responses run themselves. Keeps C75, C84."""

from pathlib import Path
from typing import Any

from tests.cells import cells
from tests.unit.routing.test_routing_yaml import FILE
from tollgate.core.compaction import Compaction
from tollgate.core.content import Text
from tollgate.core.request import GenerationRequest, UserMessage
from tollgate.providers.ports.formats import codec_of
from tollgate.routing.file.compile import canonical_json
from tollgate.routing.file.load import load
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.offers import Chains

AZURE = FILE.parent / "docs" / "examples" / "azure.yaml"
SHIPPED = Catalog.from_json(canonical_json(load(FILE)))


def catalog_of(path: Path) -> Catalog:
    return SHIPPED if path == FILE else Catalog.from_json(canonical_json(load(path)))


@cells(
    "case",
    [
        (FILE, "openai/gpt-5.4", "https://api.openai.com/v1"),
        (FILE, "x-ai/grok-4.5", "https://api.x.ai/v1"),
        (AZURE, "azure/gpt-5.4", "https://my-resource.openai.azure.com/openai/v1"),
    ],
    ids=lambda case: case[1],
)
def test_c75_the_provider_of_a_row_compacts_at_its_own_address(case: Any) -> None:
    path, slug, base_url = case
    catalog = catalog_of(path)
    chain = Chains(catalog).get(slug)
    assert chain is not None
    target = chain.offers[slug][0].attempt.target
    asked = UserMessage(content=(Text(text="Hi"),))
    request = GenerationRequest(
        model=slug, messages=(asked, asked), compaction=Compaction(by_provider=True)
    )
    wire = codec_of("openai_responses").encode(request, target)
    assert catalog.providers[target.provider].base_url == base_url
    assert wire.path == "/responses/compact"
    assert wire.body == {
        "model": target.upstream_model,
        "input": [{"role": "user", "content": "Hi"}],
    }


def test_c84_the_rows_that_run_background_responses_themselves() -> None:
    for catalog, expected in (
        (SHIPPED, {"openai-responses"}),
        (catalog_of(AZURE), {"azure-responses"}),
    ):
        assert {slug for slug, row in catalog.providers.items() if row.background} == expected


def test_c21_retired_models_of_deep_research_say_what_follows_them() -> None:
    assert "o3-deep-research" in SHIPPED.models["openai/gpt-5.6-sol"].replaces
