"""`include: [tollgate:NAME]` takes parts of the pinned release in catalog.yaml. Keeps C97."""

from hashlib import sha256
from pathlib import Path

import pytest

from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.file.load import Inspection, inspect
from tollgate.routing.file.permissions import compile_permissions
from tollgate.routing.file.problems import render_text
from tollgate.routing.routing_file import Routing

CATALOG = (Path(__file__).parent / "catalog.yaml").read_text(encoding="utf-8")
PRICE = "price: { input: 0.5, output: 1, source: our contract, checked: 2026-11-22 }"
SHA = sha256(CATALOG.encode()).hexdigest()
PINNED = f"catalog: {{ release: 2026-11-22, sha256: {SHA} }}\n"
TAKES = f"version: 1\ninclude: [tollgate:acme]\n{PINNED}"


def inspected(folder: Path, text: str, catalog: str | None = CATALOG) -> Inspection:
    (folder / "routing.yaml").write_text(text, encoding="utf-8")
    if catalog is not None:
        (folder / "catalog.yaml").write_text(catalog, encoding="utf-8")
    return inspect(folder / "routing.yaml", dev=False)


def routed(folder: Path, text: str) -> Routing:
    inspection = inspected(folder, text)
    assert inspection.routing is not None, inspection.errors
    return inspection.routing


def refusal(inspection: Inspection) -> str:
    (problem,) = inspection.errors
    return render_text(problem)


def test_c97_a_part_is_a_provider_with_the_models_that_it_serves(tmp_path: Path) -> None:
    routing = routed(tmp_path, TAKES)
    assert sorted(routing.providers) == ["acme", "acme-batch"]
    assert sorted(routing.models) == ["acme/large", "acme/small"]
    large = routing.models["acme/large"]
    assert [each.provider for each in large.endpoints] == ["acme"]
    assert large.successor is None


def test_c97_only_the_included_providers_need_permissions(tmp_path: Path) -> None:
    inspected(tmp_path, TAKES)
    needed = compile_permissions(compile_catalog(tmp_path / "routing.yaml").routing)
    assert [pin for pin in needed.key_hosts if "other" in pin] == []


def test_c97_a_key_of_the_file_replaces_the_key_of_the_catalogs_row(tmp_path: Path) -> None:
    own = f"""\
providers:
  acme: {{ data_policy: zero, base_url: https://eu.acme.example/v1 }}
models:
  acme/large:
    name: Ours
    endpoints:
      - {{ provider: acme, upstream: large, {PRICE} }}
"""
    routing = routed(tmp_path, f"{TAKES}{own}".replace("acme]", "acme, tollgate:other]"))
    provider, model = routing.providers["acme"], routing.models["acme/large"]
    assert (provider.base_url, provider.data_policy) == ("https://eu.acme.example/v1", "zero")
    assert provider.key is not None
    assert (model.name, model.context, len(model.endpoints)) == ("Ours", 1000, 1)


def test_c97_null_leaves_a_row_of_the_catalog_out(tmp_path: Path) -> None:
    routing = routed(tmp_path, f"{TAKES}providers: {{ acme-batch: null }}\n")
    assert sorted(routing.providers) == ["acme"]
    assert sorted(routing.models) == ["acme/large"]
    routing = routed(tmp_path, f"{TAKES}models: {{ acme/large: null }}\n")
    assert sorted(routing.models) == ["acme/small"]


def test_c93_a_row_that_moves_a_secret_of_the_catalog_is_an_error_at_its_line(
    tmp_path: Path,
) -> None:
    own = "providers:\n  acme: { base_url: http://collector.example/v1 }\n"
    inspection = inspected(tmp_path, f"{TAKES}{own}")
    assert [(each.code, each.line) for each in inspection.errors] == [("R045", 5)]


def test_a_model_of_the_file_takes_its_facts_from_the_catalog(tmp_path: Path) -> None:
    own = f"""\
providers:
  mine: {{ codec: openai_chat, transport: http_sse, base_url: https://mine.example/v1 }}
models:
  other/larger:
    endpoints:
      - {{ provider: mine, upstream: larger, {PRICE} }}
"""
    model = routed(tmp_path, f"{TAKES}{own}").models["other/larger"]
    assert (model.name, [each.provider for each in model.endpoints]) == ("Larger", ["mine"])


@pytest.mark.parametrize(
    ("text", "catalog", "said"),
    [
        (
            TAKES.replace(":acme]", ":acne]"),
            CATALOG,
            "no provider acne: did you mean tollgate:acme",
        ),
        (TAKES, CATALOG.replace("input: 1", "input: 0"), f"but 2026-11-22 ({SHA[:12]}) is pinned"),
        (TAKES.replace("-22,", "-23,"), CATALOG, f"but 2026-11-23 ({SHA[:12]}) is pinned"),
        (TAKES.replace(PINNED, ""), CATALOG, '"catalog" is missing: it pins the release'),
        (TAKES, None, "catalog.yaml is not a file, from which tollgate:acme is read"),
    ],
)
def test_c97_a_release_that_is_not_the_pinned_one_is_one_error(
    tmp_path: Path, text: str, catalog: str | None, said: str
) -> None:
    # The route's model is of the catalog too, which is not a second error.
    shown = refusal(
        inspected(tmp_path, f"{text}routes: {{ r: {{ try: [acme/large] }} }}\n", catalog)
    )
    assert "error[R009]" in shown
    assert said in shown


def test_a_linked_catalog_outside_the_repository_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text(CATALOG, encoding="utf-8")
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "catalog.yaml").symlink_to(tmp_path / "secret.yaml")
    assert "outside this file's folder" in refusal(inspected(folder, TAKES, None))


def test_c97_a_part_for_development_is_left_out_of_production(tmp_path: Path) -> None:
    text = TAKES.replace("tollgate:acme]", "tollgate:other]")
    inspected(tmp_path, f"{text}dev: {{ include: [tollgate:acme] }}\n")
    inspection = inspect(tmp_path / "routing.yaml", dev=True)
    assert inspection.routing is not None
    assert inspection.production is not None
    assert {"acme", "other"} < inspection.routing.providers.keys()
    assert inspection.production.providers.keys() == {"other"}


@pytest.mark.parametrize("include", ["[tollgate:acme]", "[]"])
def test_c97_a_part_for_development_changes_no_row_of_production(
    tmp_path: Path, include: str
) -> None:
    own = """\
dev: { include: [tollgate:other] }
providers: { acme: { key: null }, acme-batch: null }
models: { acme/large: { successor: null }, acme/small: null, other/larger: null }
"""
    text = f"{TAKES.replace('[tollgate:acme]', include)}{own}"
    production = inspected(tmp_path, text)
    development = inspect(tmp_path / "routing.yaml", dev=True)
    assert development.production == production.production
    assert development.errors == production.errors
    if include == "[]":
        assert "endpoints" in render_text(production.errors[0])
        return
    assert development.production is not None
    assert development.production.providers["acme"].key is None
    assert development.routing is not None
    assert sorted(development.routing.models) == ["acme/large"]
    assert sorted(development.routing.providers) == ["acme", "other"]
