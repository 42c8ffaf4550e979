"""The compiled form: one spelling, named by its hash, read back unchanged."""

import json
import random
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.routing.catalogs import catalog, endpoint, model, provider, routing
from tollgate.routing.file.compile import canonical_json, compile_catalog
from tollgate.routing.file.problems import InvalidRouting
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.routing_file import Routing

ROOT = Path(__file__).parents[3]
FILE = ROOT / "routing.yaml"
WHOLE = Path(__file__).parent / "whole.yaml"

rates = st.decimals(min_value=0, max_value=1_000, places=6)


def test_the_sha_is_that_of_the_content() -> None:
    compiled = compile_catalog(FILE)
    assert compiled.sha == sha256(compiled.content).hexdigest()
    assert Catalog.from_json(compiled.content).sha == compiled.sha


def test_compiling_what_was_compiled_changes_nothing() -> None:
    content = compile_catalog(FILE, dev=True).content
    assert canonical_json(Routing.model_validate_json(content, strict=True)) == content


def test_every_section_survives_compiling_and_single_keys_stay_single() -> None:
    content = compile_catalog(WHOLE).content
    routing = Routing.model_validate_json(content, strict=True)
    assert canonical_json(routing) == content
    offer = json.loads(content)["models"]["acme/large"]["endpoints"][0]
    assert offer["timeouts"] == {"idle_s": 300.0}
    assert offer["dialect"] == {"reasoning_field": None, "stream_usage": False}
    assert json.loads(content)["routes"]["smart"]["retry"] == {"retries_max": 0}
    assert routing.models["acme/large"].endpoints[0].schedule.overrides


def test_the_same_file_compiles_to_the_same_bytes_wherever_its_parts_stand(tmp_path: Path) -> None:
    whole = compile_catalog(WHOLE).content
    text = WHOLE.read_text(encoding="utf-8")
    head, _, tiers = text.partition("key_tiers:")
    (tmp_path / "tiers.d").mkdir()
    (tmp_path / "tiers.d" / "all.yaml").write_text(f"version: 1\nkey_tiers:{tiers}", "utf-8")
    file = tmp_path / "routing.yaml"
    file.write_text(f"{head}include: ['tiers.d/*.yaml']\n", encoding="utf-8")
    assert compile_catalog(file).content == whole


def test_every_section_of_the_file_is_compiled() -> None:
    content = json.loads(compile_catalog(WHOLE).content)
    assert content.keys() == Routing.model_fields.keys()


def test_the_content_is_sorted_json_without_blanks() -> None:
    content = compile_catalog(FILE).content
    tidy = json.dumps(json.loads(content), sort_keys=True, separators=(",", ":"))
    assert content.decode() == tidy


def test_defaults_are_written_out_so_that_a_new_default_changes_no_published_catalog() -> None:
    defaults = json.loads(canonical_json(routing()))["defaults"]
    assert defaults["hold_output_tokens"] == 4096
    assert defaults["timeouts"]["non_streamed_total_s"] == 285.0
    assert json.loads(canonical_json(routing()))["routes"]["smart"]["next_on"]


@given(rates, rates)
def test_prices_survive_compiling_to_the_last_digit(rate_in: Decimal, rate_out: Decimal) -> None:
    offer = endpoint("near", "m", dollars_in=str(rate_in), dollars_out=str(rate_out))
    written = canonical_json(
        routing(providers={"near": provider()}, models={"a/b": model(offer)}, aliases={}, routes={})
    )
    price = Catalog.from_json(written).models["a/b"].endpoints[0].price.price
    assert (price.input, price.output) == (rate_in, rate_out)


def test_order_and_spelling_in_the_file_do_not_change_the_sha(tmp_path: Path) -> None:
    file = tmp_path / "routing.yaml"
    providers = "providers:\n  p: { codec: openai_chat, transport: simulator }\n"
    models = (
        "models:\n  a/b:\n    name: B\n    context: 10\n    max_output: 5\n    endpoints:\n"
        "      - provider: p\n        upstream: b\n"
        "        price: { input: 2.20, output: 10, source: s, checked: 2026-11-21 }\n"
    )
    file.write_text(f"version: 1\n{providers}{models}", encoding="utf-8")
    one = compile_catalog(file)
    other_spelling = models.replace("2.20", "2.2").replace("output: 10,", 'output: "10.0",')
    file.write_text(f"# moved\n{other_spelling}{providers}version: 1\n", encoding="utf-8")
    assert compile_catalog(file).sha == one.sha
    file.write_text(f"version: 1\n{providers}{models.replace('2.20', '2.21')}", encoding="utf-8")
    assert compile_catalog(file).sha != one.sha


def test_the_order_of_what_a_dialect_refuses_does_not_change_the_sha() -> None:
    def written(*names: str) -> bytes:
        row = provider(dialect={"refuses": names})
        return canonical_json(routing(providers={"near": row, "far": provider()}))

    assert written("user", "seed", "user") == written("seed", "user")
    assert b'"refuses":["seed","user"]' in written("user", "seed")


def test_production_leaves_out_what_is_included_for_development() -> None:
    production = Catalog.from_json(compile_catalog(FILE).content)
    development = Catalog.from_json(compile_catalog(FILE, dev=True).content)
    assert not [name for name in production.models if name.startswith("test/")]
    assert b"simulator" not in compile_catalog(FILE).content
    assert development.target("test/fallback") in development.routes
    assert development.models.keys() > production.models.keys()


def test_a_bad_file_is_not_compiled(tmp_path: Path) -> None:
    file = tmp_path / "routing.yaml"
    file.write_text("version: 3\n", encoding="utf-8")
    with pytest.raises(InvalidRouting):
        compile_catalog(file)


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_a_cut_or_foreign_catalog_is_refused(cut: int) -> None:
    with pytest.raises(ValueError, match=r"Routing|truncated|malformed"):
        Catalog.from_json(canonical_json(routing())[:cut])


def test_a_catalog_of_another_version_or_with_unknown_parts_is_refused() -> None:
    content = json.loads(canonical_json(routing()))
    changes: tuple[dict[str, object], ...] = ({"version": 2}, {"plugin": {}})
    for change in changes:
        with pytest.raises(ValueError, match=r"Routing|truncated|malformed"):
            Catalog.from_json(json.dumps({**content, **change}).encode())


def test_a_catalog_of_an_earlier_version_is_read_if_its_sections_without_a_use_are_empty() -> None:
    content = json.loads(canonical_json(routing()))
    empty: dict[str, object] = {"plugins": {}, "server_tools": {}}
    earlier = Catalog.from_json(json.dumps({**content, **empty}).encode())
    assert earlier.models == catalog().models
    with pytest.raises(ValueError, match=r"pdf\.price"):
        Catalog.from_json(json.dumps({**content, "plugins": {"pdf": {}}}).encode())


def test_tools_that_this_version_does_not_know_are_refused_before_a_request_needs_them() -> None:
    content = json.loads(canonical_json(routing()))
    stated = {**content, "server_tools": {"web_search": {"engine": "none such"}}}
    with pytest.raises(ValueError, match="engine"):
        Catalog.from_json(json.dumps(stated).encode())


def test_a_build_reads_its_tools_with_the_first_request_that_has_one() -> None:
    content = json.loads(canonical_json(routing()))
    stated = {**content, "server_tools": {"datetime": {}}}
    built = Catalog.from_build(json.dumps(stated).encode())
    assert built.tools.section.datetime is not None
    assert built.tools.section.web_search is None


def test_nearest_names_are_models_aliases_and_routes() -> None:
    shipped = Catalog.from_json(compile_catalog(FILE).content)
    assert shipped.nearest("gpt-4o-mni")[0] == "gpt-4o-mini"
    assert shipped.nearest("smrt") == ("smart",)
    shuffled = list("anthropic/claude-sonnet-5.5")
    random.Random(1).shuffle(shuffled)
    assert shipped.nearest("".join(shuffled)) == ()
