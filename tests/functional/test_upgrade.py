"""`tollgate upgrade` in a gateway's repository, from an index that is a folder of wheels.

Keeps C96.
"""

import hashlib
import os
import re
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from tests.functional.cut_wheels import cut
from tests.local_server import ROOT, environment
from tests.unit.cli.planned import BEFORE, routing, traffic
from tollgate import DISTRIBUTION
from tollgate.cli.catalog.release import build_release
from tollgate.cli.main import main
from tollgate.routing.file.compile import canonical_json
from tollgate.routing.planning.catalog import Catalog

CURRENT: Final = version(DISTRIBUTION)
TEMPLATE: Final = "infra/template.yaml"
ITEMS: Final = "functions/tollgate/stores/item_versions.py"
SCHEMA: Final = "infra/schema/routing.v1.json"
DEARER: Final = BEFORE.replace("input: 2.2, output: 11", "input: 4.4, output: 22").replace(
    "checked: 2026-11-21", "checked: 2026-11-30", 1
)
LINK: Final = (
    "# yaml-language-server: $schema=https://raw.githubusercontent.com/acme/tollgate/v{}/infra/schema"
    "/routing.v1.json\n"
)
GH: Final = """\
#!/bin/sh
printf '%s\\n' "$*" >> "$HOME/gh.txt"
echo "no attestation matches" >&2
exit $(cat "$HOME/status")
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A gateway's repository, an index with a newer release, and a `gh` that verifies."""
    folder, tools = tmp_path / "work", tmp_path / "bin"
    for each in (folder, tools):
        each.mkdir()
    (tools / "gh").write_text(GH)
    (tools / "gh").chmod(0o755)
    (tmp_path / "status").write_text("0")
    (folder / "requirements.txt").write_text(
        f"tollgate-llm=={CURRENT} \\\n    --hash=sha256:{'0' * 64}\n"
        f"tollgate-llm-slim=={CURRENT} \\\n    --hash=sha256:{'1' * 64}\n"
    )
    (folder / "source.yaml").write_text(BEFORE)
    catalog = build_release(folder / "source.yaml")
    (folder / "source.yaml").unlink()
    (folder / "catalog.yaml").write_text(catalog.text)
    own = _without_rows(BEFORE)
    pin = f"{{ release: {catalog.day}, sha256: {catalog.sha256} }}"
    parts = "[tollgate:openai, tollgate:anthropic, tollgate:bedrock]"
    own = own.replace("version: 1\n", f"version: 1\ninclude: {parts}\ncatalog: {pin}\n", 1)
    own = LINK.format(CURRENT) + own
    (folder / "routing.yaml").write_text(own)
    release(tmp_path, "9.1.0")
    monkeypatch.chdir(folder)
    return folder


def _without_rows(text: str) -> str:
    """Return a routing file without the sections that a catalog has."""
    kept, keeps = [], True
    for line in text.splitlines(keepends=True):
        if line[0] not in " \n#":
            keeps = not line.startswith(("providers:", "models:"))
        kept += [line] if keeps else []
    return "".join(kept)


def release(home: Path, number: str, **changed: str) -> None:
    """Cut a release with another price, parameter and permission, and further changes."""
    template = (ROOT / TEMPLATE).read_text()
    template = template.replace("Parameters:\n", "Parameters:\n  New: {Type: String}\n", 1)
    template = template.replace("- dynamodb:BatchGetItem\n", "- dynamodb:PartiQLSelect\n", 1)
    texts = {TEMPLATE: template, "routing.yaml": DEARER}
    paths = {"template": TEMPLATE, "items": ITEMS, "schema": SCHEMA}
    cut(home / "index", number, texts | {paths[name]: text for name, text in changed.items()})


def upgrade(repository: Path, *words: str, path: str | None = None) -> Result:
    home = repository.parent
    given = {
        **dict.fromkeys(os.environ),
        **environment(),
        "PATH": path or f"{home / 'bin'}:/usr/bin:/bin",
        "HOME": str(home),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(home / "index"),
        "TOLLGATE_REPOSITORY": "acme/tollgate",
    }
    return CliRunner().invoke(main, ("upgrade", *words), env=given, prog_name="tollgate")


def refused(repository: Path, *words: str, path: str | None = None) -> str:
    """Return the sentences of a refusal, which changes nothing."""
    before = {file: file.read_bytes() for file in repository.iterdir()}
    ended = upgrade(repository, *words, path=path)
    assert ended.exit_code == 1, ended.output
    assert {file: file.read_bytes() for file in repository.iterdir()} == before
    assert "Traceback" not in ended.output
    (sentences,) = ended.output.removeprefix("Error: ").splitlines()
    assert sentences.endswith("Nothing was changed.")
    return sentences


def test_c96_an_upgrade_is_one_number_and_states_its_effects(repository: Path) -> None:
    recorded = repository.parent / "traffic.jsonl"
    served = Catalog.from_json(canonical_json(routing(repository.parent, BEFORE)))
    recorded.write_bytes(b"".join(traffic(served)))
    ended = upgrade(repository, "--traffic", str(recorded))
    assert ended.exit_code == 0, (ended.output, ended.exception)
    assert ended.output.startswith(f"tollgate-llm {CURRENT} → 9.1.0\n")
    assert "\nAttested by acme/tollgate for the tag v9.1.0.\n" in ended.output
    assert "\nparameters\n  + New (must be stated)\n" in ended.output
    assert "  + ApiRole allow dynamodb:PartiQLSelect on CoreTable.Arn" in ended.output
    assert "input 2.20 → 4.40 (+100.0 %)" in ended.output
    assert "Spend $0.57 → $0.67 (+$0.097, +17.0 %)" in ended.output
    asked = (repository.parent / "gh.txt").read_text()
    assert asked.count("--repo acme/tollgate --signer-workflow acme/tollgate/.github/") == 2
    assert asked.count("--source-ref refs/tags/v9.1.0") == 2
    text = (repository / "requirements.txt").read_text()
    for name in ("tollgate_llm", "tollgate_llm_slim"):
        wheel = repository.parent / "index" / f"{name}-9.1.0-py3-none-any.whl"
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        assert f"{name.replace('_', '-')}==9.1.0 \\\n    --hash=sha256:{digest}\n" in text
    lock = (ROOT / "infra" / "environments" / "run.txt").read_text()
    assert text.endswith(re.sub(r"^ *#.*\n", "", lock, flags=re.MULTILINE))
    # Editors check the file by the schema of the new version.
    assert (repository / "routing.yaml").read_text().startswith(LINK.format("9.1.0"))


@pytest.mark.nightly
def test_a_dry_run_writes_nothing_and_the_same_version_says_so(repository: Path) -> None:
    before = (repository / "requirements.txt").read_bytes()
    dry = upgrade(repository, "--dry-run")
    assert (dry.exit_code, dry.output.endswith("\nNothing was written.\n")) == (0, True)
    assert (repository / "requirements.txt").read_bytes() == before
    release(repository.parent, CURRENT)
    same = upgrade(repository, CURRENT)
    assert (same.exit_code, same.output) == (0, f"requirements.txt has {CURRENT} already.\n")


def test_a_version_that_does_not_exist_is_refused(repository: Path) -> None:
    assert "version 9.9.9 cannot be fetched: " in refused(repository, "9.9.9")


def test_a_lock_that_does_not_match_is_refused(repository: Path) -> None:
    file = repository / "requirements.txt"
    text = file.read_text()
    file.write_text(text.replace(CURRENT, "0.0.1"))
    assert f"pins 0.0.1, but {CURRENT} is installed: run pip install" in refused(repository)
    file.write_text(text.replace(CURRENT, "0.0.1", 1))
    assert f"pins 0.0.1 and {CURRENT} of tollgate-llm: pin one" in refused(repository)
    file.write_text("click==8.0\n")
    assert "pins no version of tollgate-llm" in refused(repository)


def test_c96_a_release_without_an_attestation_is_refused(repository: Path) -> None:
    (repository.parent / "status").write_text("1")
    said = refused(repository)
    assert "has no valid attestation of acme/tollgate for the tag v9.1.0: no attest" in said
    nowhere = str(repository.parent)
    assert "`gh` is not installed: install it, or state --unverified" in refused(
        repository, path=nowhere
    )
    accepted = upgrade(repository, "--unverified", path=nowhere)
    assert accepted.exit_code == 0, accepted.output
    assert "Not verified: " in accepted.output


@pytest.mark.parametrize(
    ("name", "was", "then", "reason"),
    [
        ("items", "READ: Final = 1", "READ: Final = 0", "it would misread the store"),
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in (
                ("items", "WRITTEN: Final = 1", "WRITTEN: Final = 3", "in between first"),
                ("template", "  LedgerTable:\n    Type", "  L:\n    Type", "LedgerTable (AWS::"),
            )
        ),
    ],
    ids=["downgrade", "skipped", "lost"],
)
def test_c96_a_release_that_loses_or_misreads_data_is_refused(
    repository: Path, name: str, was: str, then: str, reason: str
) -> None:
    text = (ROOT / {"items": ITEMS, "template": TEMPLATE}[name]).read_text()
    assert was in text
    release(repository.parent, "9.2.0", **{name: text.replace(was, then, 1)})
    assert reason in refused(repository, "9.2.0")


@pytest.mark.nightly
def test_keys_that_a_release_deprecates_are_named_with_their_replacement(repository: Path) -> None:
    text = (ROOT / SCHEMA).read_text()
    old = '"aliases": {'
    assert old in text
    marked = text.replace(old, f'{old} "deprecated": true,', 1)
    release(repository.parent, "9.3.0", schema=marked)
    ended = upgrade(repository, "9.3.0", "--dry-run")
    assert ended.exit_code == 0, (ended.output, ended.exception)
    assert "\nkeys of routing.yaml\n  ! aliases is deprecated: " in ended.output
    assert ended.output.count(" is not a key") == 0
