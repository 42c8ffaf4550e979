"""The examples of rows without an address that everybody shares: right beside what ships."""

from pathlib import Path
from shutil import copytree

import pytest

from tests.unit.routing.test_routing_yaml import as_editors_read, editors_validator
from tollgate.cli.catalog.evidence import gather_evidence
from tollgate.cli.catalog.verdicts import judge_file
from tollgate.routing.file.document import read_document
from tollgate.routing.file.load import inspect
from tollgate.routing.file.permissions import compile_permissions
from tollgate.routing.routing_file import Routing

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.yaml"))


def beside_what_ships(folder: Path, example: Path) -> Routing:
    """What production would serve if the file that ships included an example."""
    (folder / example.name).write_bytes(example.read_bytes())
    copytree(ROOT / "infra" / "catalog", folder / "infra" / "catalog")
    content = (ROOT / "routing.yaml").read_text(encoding="utf-8")
    file = folder / "routing.yaml"
    file.write_text(
        content.replace("include: [", f"include: [{example.name}, ", 1),
        encoding="utf-8",
    )
    inspection = inspect(file, dev=False)
    # Examples serve models of the main file under further slugs, so some bare names are ambiguous.
    assert {problem.code for problem in inspection.problems} <= {"R025"}
    assert inspection.routing is not None
    return inspection.routing


def test_there_is_an_example_of_each_provider_without_a_shared_address() -> None:
    assert [it.stem for it in EXAMPLES] == [
        "azure",
        "completions",
        "guardrail",
        "hosted",
        "images",
        "sagemaker",
        "self-hosted",
        "speech",
        "vertex",
    ]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda it: it.stem)
def test_an_example_is_right_priced_as_published_and_permissible(
    tmp_path: Path, example: Path
) -> None:
    routing = beside_what_ships(tmp_path, example)
    added = read_document(example, example.name).value(("models",))
    assert isinstance(added, dict)
    offers = [it for slug in added for it in routing.models[slug].endpoints]
    day = max(endpoint.price.checked for endpoint in offers)
    verdicts = judge_file(routing, gather_evidence(routing, day, None, None))
    for verdict in (it for it in verdicts if it.model in added):
        assert not verdict.differing
        price = verdict.endpoint.price
        is_ours = price.input == price.output == 0
        assert is_ours == (not verdict.agreeing)
    assert compile_permissions(routing).secrets


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda it: it.stem)
def test_the_schema_for_editors_accepts_an_example(example: Path) -> None:
    content = example.read_text(encoding="utf-8")
    reference = content.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    assert (example.parent / reference).is_file()
    assert [
        error.message for error in editors_validator().iter_errors(as_editors_read(content))
    ] == []
