"""Every class of error in a routing file, as `tollgate check` prints it.

`bad/<code>_<what>.yaml` is the file, the `.txt` beside it the words. Three files of a folder below
are what some of them include.
"""

from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.cells import cells
from tollgate.core.secret import KeyVariables
from tollgate.routing.file.load import Inspection, inspect, load
from tollgate.routing.file.problems import InvalidRouting, mask_secrets, render_text

TODAY = date(2026, 11, 21)
BAD = Path(__file__).parent / "bad"
SECRETS = ("hunter2", "0123456789", "correct horse", "horse battery", "AKIAABC", "api_key=abc")


PINNED = frozenset({"secret:tollgate/openai>https://api.openai.com"})


def printed(file: Path, today: date = TODAY) -> str:
    return "".join(f"{render_text(problem)}\n" for problem in inspected(file, today).problems)


def inspected(file: Path, today: date = TODAY) -> Inspection:
    pinned = PINNED if file.stem.startswith("R046") else None
    return inspect(file, dev=True, today=today, pinned=pinned)


@pytest.fixture
def _beside_the_bad_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BAD)


@pytest.mark.usefixtures("_beside_the_bad_files")
@cells("case", sorted(path.stem for path in BAD.glob("*.yaml")))
def test_a_bad_file_is_told_by_place_code_words_and_excerpt(case: str) -> None:
    expected = Path(f"{case}.txt").read_text(encoding="utf-8")
    assert printed(Path(f"{case}.yaml")) == expected


@pytest.mark.usefixtures("_beside_the_bad_files")
@cells("case", sorted(path.stem for path in BAD.glob("R*.yaml")))
def test_a_bad_file_has_the_error_it_is_named_after_and_yields_no_routing(case: str) -> None:
    inspection = inspected(Path(f"{case}.yaml"))
    named = "R004" if case == "R001_empty" else case.partition("_")[0]
    assert named in {problem.code for problem in inspection.problems}
    assert inspection.routing is None


def test_no_part_of_a_pasted_key_is_repeated() -> None:
    shown = printed(BAD / "R040_literal_key.yaml")
    assert [secret for secret in SECRETS if secret in shown] == []


@pytest.mark.parametrize(
    "line",
    [
        "  p: { codec: a, codec: b, key: hunter2 }",
        "  p: { ? [a] : b, key: hunter2 }",
        "  p: { key: !secret hunter2 }",
        "  p: { key: 'hunter2', codec: [ }",
        '  p: { "api_key" : hunter2, &a }',
        "  key: hunter2: x",
        "  p: { codec: [a, key: { env: hunter2 } }",
        "  p: { codec: a, key[hunter2, b }",
        "  p: { key: &k hunter2, region: *k }",
        "  p: { password: { x: hunter2, x: hunter2 } }",
    ],
)
def test_a_key_is_masked_even_where_the_yaml_around_it_is_broken(line: str, tmp_path: Path) -> None:
    file = tmp_path / "routing.yaml"
    file.write_text(f"version: 1\nproviders:\n{line}\n", encoding="utf-8")
    shown = printed(file)
    assert "error[" in shown
    assert "hunter2" not in shown


@pytest.mark.parametrize(
    "value",
    [
        "sk-proj-abcdefghijklmnop",
        "gsk_abcdefghijklmnop1234",
        "AKIAABCDEFGHIJKLMNOP",
        "Bearer eyJhbGciOiJIUzI1NiJ9.e30.abc",
        "https://user:password-of-mine@host.example/v1",
        "https://host.example/v1?token=abcdefgh",
        "0123456789abcdef0123456789abcdef",
        "sk-abcdefghijkl+0123456789abcdef0123456789abcdef",
    ],
)
def test_what_looks_like_a_secret_is_masked_without_moving_the_caret(value: str) -> None:
    assert "*" in mask_secrets(value)
    assert len(mask_secrets(value)) == len(value)


@pytest.mark.parametrize(
    "value",
    [
        "us.anthropic.claude-haiku-4-5-20251001-v1:0",
        "accounts/fireworks/models/gpt-oss-120b",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        "tollgate/openai",
        "The strongest models, from three providers",
    ],
)
def test_what_a_routing_file_usually_holds_is_not_masked(value: str) -> None:
    assert mask_secrets(value) == value


def test_r001_what_cannot_be_read_is_an_error_not_a_crash(tmp_path: Path) -> None:
    file = tmp_path / "routing.yaml"
    assert "R001" in printed(file)
    file.write_bytes(b"version: \xff\xfe")
    assert "is not UTF-8" in printed(file)
    file.write_bytes(b"version: \x00")
    assert "R001" in printed(file)
    file.write_text("[" * 10_000, encoding="utf-8")
    assert "nested too deeply" in printed(file)
    file.write_text("a: &a [*a]", encoding="utf-8")
    assert "R001" in printed(file)
    file.write_text("version: 1\n---\nversion: 1\n", encoding="utf-8")
    assert "R001" in printed(file)
    file.write_bytes(b"#" * 4_000_001)
    assert "is larger than" in printed(file)


def test_a_long_line_is_told_by_its_place_alone(tmp_path: Path) -> None:
    file = tmp_path / "routing.yaml"
    file.write_text(f"version: {'a' * 1_000_000}", encoding="utf-8")
    assert printed(file).rstrip().endswith(":1:10: error[R004] version must be 1")


def test_r004_a_key_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "routing.yaml"
    file.write_text("version: 1\n? [a]\n: b\n", encoding="utf-8")
    assert "2:3: error[R004] a key must be text" in printed(file)


def test_r071_prices_grow_old_and_only_warn() -> None:
    old = TODAY + timedelta(days=91)
    inspection = inspect(BAD.parents[3] / "routing.yaml", dev=True, today=old)
    # Models that retire are near their end by then.
    assert {problem.code for problem in inspection.problems} <= {"R071", "R072"}
    assert "R071" in {problem.code for problem in inspection.problems}
    assert inspection.errors == ()
    assert inspection.routing is not None


def test_load_raises_every_error_at_once() -> None:
    with pytest.raises(InvalidRouting) as invalid:
        load(BAD / "several.yaml")
    assert [problem.code for problem in invalid.value.problems] == [
        "R004",
        "R003",
        "R011",
        "R020",
        "R021",
    ]
    assert "did you mean" in str(invalid.value)


@pytest.mark.parametrize("text", ["a: " + "[" * 50_000, "- " * 50_000, "? " * 50_000])
def test_r001_a_file_that_is_nested_too_deeply_is_told_and_ends_no_process(
    text: str, tmp_path: Path
) -> None:
    file = tmp_path / "routing.yaml"
    file.write_text(text, encoding="utf-8")
    assert printed(file).splitlines()[0].endswith("error[R001] is nested too deeply")


def test_r008_a_link_that_leads_out_of_the_repository_is_not_followed(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    (tmp_path / "outside.yaml").write_text("a line that stays unread", encoding="utf-8")
    (repository / "inside.yaml").symlink_to(tmp_path / "outside.yaml")
    file = repository / "routing.yaml"
    file.write_text("version: 1\ninclude: [inside.yaml]\n", encoding="utf-8")
    assert "R008" in printed(file)
    assert "unread" not in printed(file)


def test_what_is_included_may_be_anywhere_in_the_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").touch()  # as in a worktree
    (tmp_path / "shared.yaml").write_text("version: 1\n", encoding="utf-8")
    file = tmp_path / "eu" / "routing.yaml"
    file.parent.mkdir()
    file.write_text("version: 1\ninclude: [../shared.yaml]\n", encoding="utf-8")
    assert printed(file) == ""
    (tmp_path / ".git").unlink()
    assert "is outside this file's folder" in printed(file)


def test_c93_a_deployment_allows_variables_that_the_file_cannot(tmp_path: Path) -> None:
    file = tmp_path / "routing.yaml"
    file.write_text(
        (BAD / "R044_variable.yaml").read_text(encoding="utf-8"),
        encoding="utf-8",
    )
    everything = KeyVariables(("*",))
    found = inspect(file, dev=True, today=TODAY, variables=everything).problems
    refused = [problem.message.partition(" ")[0] for problem in found]
    assert refused == [
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "TOLLGATE_API_KEY",
        "LAMBDA_TASK_ROOT",
    ]


_LOCAL_ROW = """version: 1
providers:
  near:
    codec: openai_chat
    transport: http_sse
    base_url: http://127.0.0.1:9001
    key: {{ env: A_API_KEY }}
{more}"""


def test_c93_loopback_is_for_development_alone(tmp_path: Path) -> None:
    file = tmp_path / "routing.yaml"
    file.write_text(_LOCAL_ROW.format(more=""), encoding="utf-8")
    inspection = inspect(file, dev=True)
    assert [problem.code for problem in inspection.errors] == ["R045"]
    assert inspection.production is None
    assert inspection.routing == load(file, dev=True)
    with pytest.raises(InvalidRouting):
        load(file)


def test_c93_a_file_for_development_may_name_loopback(tmp_path: Path) -> None:
    (tmp_path / "near.yaml").write_text(_LOCAL_ROW.format(more=""), encoding="utf-8")
    file = tmp_path / "routing.yaml"
    file.write_text("version: 1\ndev: { include: [near.yaml] }\n", encoding="utf-8")
    inspection = inspect(file, dev=True)
    assert inspection.problems == ()
    assert inspection.production is not None
    assert not inspection.production.providers


def test_c93_another_error_stops_development_too(tmp_path: Path) -> None:
    file = tmp_path / "routing.yaml"
    file.write_text(_LOCAL_ROW.format(more="aliases: { x: { to: y } }"), encoding="utf-8")
    assert inspect(file, dev=True).routing is None
