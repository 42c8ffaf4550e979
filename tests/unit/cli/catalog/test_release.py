"""The catalog of this version as one file. Keeps C97."""

import re
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tollgate.cli.catalog.release import build_release
from tollgate.cli.main import main
from tollgate.routing.file.load import inspect, load

ROOT = Path(__file__).parents[4]
ROUTING = ROOT / "routing.yaml"
CATALOG = (ROOT / "tests/unit/routing/file/catalog.yaml").read_text(encoding="utf-8")


def test_c97_a_release_has_every_provider_and_model_with_their_prices(tmp_path: Path) -> None:
    made = build_release(ROUTING)
    (tmp_path / "catalog.yaml").write_text(made.text, encoding="utf-8")
    shipped = load(ROUTING, dev=True)
    parts = ", ".join(f"tollgate:{slug}" for slug in shipped.providers)
    (tmp_path / "routing.yaml").write_text(
        f"version: 1\ninclude: [{parts}]\n"
        f"catalog: {{ release: {made.day}, sha256: {made.sha256} }}\n",
        encoding="utf-8",
    )
    inspection = inspect(tmp_path / "routing.yaml", dev=True)
    assert inspection.routing is not None, inspection.errors
    assert inspection.routing.providers == shipped.providers
    assert inspection.routing.models == shipped.models
    assert made.day == max(re.findall(r"checked: ([\d-]{10})", made.text))


@pytest.fixture
def gateway(tmp_path: Path) -> Path:
    """Return the routing file of a gateway's repository with a small catalog, pinned."""
    (tmp_path / "catalog.yaml").write_text(CATALOG, encoding="utf-8")
    file = tmp_path / "routing.yaml"
    pin = f"{{ release: 2026-11-22, sha256: {sha256(CATALOG.encode()).hexdigest()} }}"
    file.write_text(f"version: 1\ninclude: [tollgate:acme]\ncatalog: {pin}\n", encoding="utf-8")
    return file


def refresh(file: Path, text: str, *options: str) -> Result:
    newer = file.with_name("newer")
    newer.write_text(text, encoding="utf-8")
    arguments = ["catalog", "refresh", str(file), "--release", str(newer), *options]
    return CliRunner().invoke(main, arguments)


def test_c97_a_newer_release_replaces_the_catalog_and_its_pin(gateway: Path) -> None:
    text = CATALOG.replace("release: 2026-11-22", "release: 2026-11-23").replace(
        "input: 1", "input: 2"
    )
    shown = refresh(gateway, text)
    assert shown.exit_code == 1
    assert "+release: 2026-11-23" in shown.output
    assert load(gateway).models["acme/small"].endpoints[0].price.input == 1

    written = refresh(gateway, text, "--write")
    assert written.exit_code == 0, written.output
    assert load(gateway).models["acme/small"].endpoints[0].price.input == 2
    assert "release: 2026-11-23" in gateway.read_text(encoding="utf-8")
    assert refresh(gateway, text).exit_code == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version: 1\n", "is not a release of the catalog: it states no day; nothing is written"),
        (CATALOG.replace("11-22", "11-21"), "is older than that of 2026-11-22, which stays"),
        (CATALOG.replace("acme", "acne").replace("11-22", "11-23"), "nothing is written"),
    ],
)
def test_c97_a_release_that_cannot_be_used_changes_nothing(
    gateway: Path, text: str, said: str
) -> None:
    before = {path.name: path.read_bytes() for path in gateway.parent.iterdir()}
    refused = refresh(gateway, text, "--write")
    assert refused.exit_code == 1
    assert said in refused.output
    gateway.with_name("newer").unlink()
    assert {path.name: path.read_bytes() for path in gateway.parent.iterdir()} == before


@pytest.mark.nightly
def test_each_part_of_the_catalog_stands_alone(tmp_path: Path) -> None:
    made = build_release(ROUTING)
    (tmp_path / "catalog.yaml").write_text(made.text, encoding="utf-8")
    for slug in sorted({slug.partition("-")[0] for slug in load(ROUTING).providers}):
        (tmp_path / "routing.yaml").write_text(
            f"version: 1\ninclude: [tollgate:{slug}]\n"
            f"catalog: {{ release: {made.day}, sha256: {made.sha256} }}\n",
            encoding="utf-8",
        )
        assert inspect(tmp_path / "routing.yaml", dev=False).errors == (), slug
