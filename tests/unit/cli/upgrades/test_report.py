"""What an upgrade says of a release's catalog that the routing file cannot take."""

from pathlib import Path

from tests.unit.routing.file.test_catalog_parts import CATALOG, TAKES
from tollgate.cli.upgrades.report import plan_catalog
from tollgate.cli.upgrades.wheels import FetchedRelease


def test_c97_an_include_that_the_next_catalog_lacks_is_named(tmp_path: Path) -> None:
    file = tmp_path / "routing.yaml"
    file.write_text(TAKES)
    file.with_name("catalog.yaml").write_text(CATALOG)
    release = FetchedRelease(version="9.1.0", pins={}, wheels=(), folder=tmp_path / "release")
    routing = release.part("routing")
    routing.parent.mkdir(parents=True)
    routing.write_text(CATALOG.replace("acme", "acne").replace("2026-11-22", "2026-11-23"))
    assert plan_catalog(release, file, None) == (
        "This version cannot use that catalog: catalog.yaml has no provider acme: did you mean "
        "tollgate:acne?"
    )
