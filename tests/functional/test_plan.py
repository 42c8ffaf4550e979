"""`tollgate plan` in a repository, as it is typed.

Keeps C53, C65.
"""

import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.unit.cli.planned import BEFORE, after, routing, traffic
from tollgate.cli.main import main
from tollgate.routing.file.compile import canonical_json
from tollgate.routing.planning.catalog import Catalog

SAME, ERROR, CHANGES = 0, 1, 2
INCLUDING = BEFORE.replace("version: 1\n", 'version: 1\ninclude: ["routing.d/**/*.yaml"]\n', 1)
TIER = "version: 1\nkey_tiers:\n  gold: { rpm: 9 }\n"

Commit = Callable[..., str]


@pytest.fixture
def commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commit:
    """Commits files in a new repository, None removes one; the commit's name."""
    monkeypatch.chdir(tmp_path)
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, "/dev/null")
    git("init", "--quiet", "--initial-branch=main")

    def committed(**files: str | None) -> str:
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            if text is not None:
                path.write_text(text)
        git("add", "--all")
        who = ("-c", "user.name=t", "-c", "user.email=t@example.com")
        git(*who, "commit", "--quiet", "--allow-empty", "--message", "change")
        return git("rev-parse", "HEAD").strip()

    return committed


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def plan(*arguments: str, **variables: str) -> Result:
    settings = {"TOLLGATE_URL": "", "TOLLGATE_KEY": "", **variables}
    return CliRunner(env=settings).invoke(main, ["plan", *arguments])


def test_c53_two_revisions_of_git_and_traffic_of_a_file(commit: Commit, tmp_path: Path) -> None:
    base, head = commit(routing_yaml=BEFORE), commit(routing_yaml=after())
    served = Catalog.from_json(canonical_json(routing(tmp_path, BEFORE)))
    recorded = tmp_path / "traffic.jsonl"
    recorded.write_bytes(b"".join(traffic(served)))
    golden = (Path(__file__).parents[1] / "unit" / "cli" / "planned.txt").read_text()
    result = plan(f"{base}..{head}", "--traffic", str(recorded))
    assert result.output.replace(base[:7], "8f2c1d0").replace(head[:7], "41be77a") == golden
    assert result.exit_code == CHANGES
    for named in (("HEAD^..HEAD",), ("HEAD^..",), ("HEAD^", "HEAD"), ("HEAD^...HEAD",)):
        assert plan(*named, "--traffic", str(recorded)).output == result.output


def test_a_revision_is_the_same_as_itself(commit: Commit) -> None:
    commit(routing_yaml=BEFORE)
    result = plan("HEAD..HEAD")
    assert "No request would notice." in result.output
    assert result.exit_code == SAME
    assert plan().exit_code == SAME


def test_the_head_is_the_working_tree_if_none_is_named(commit: Commit, tmp_path: Path) -> None:
    commit(routing_yaml=BEFORE)
    (tmp_path / "routing.yaml").write_text(after())
    for named in ((), ("HEAD",), ("main",)):
        result = plan(*named)
        assert "→ working tree" in result.output
        assert result.exit_code == CHANGES


def test_a_file_stands_for_a_revision(commit: Commit, tmp_path: Path) -> None:
    commit(routing_yaml=BEFORE)
    (tmp_path / "other.yaml").write_text(after())
    result = plan("HEAD", "other.yaml")
    assert "→ other.yaml" in result.output
    assert result.exit_code == CHANGES


def test_what_is_included_is_read_from_the_same_commit(commit: Commit, tmp_path: Path) -> None:
    commit(routing_yaml=INCLUDING, routing_d__tiers_yaml=TIER)
    commit(routing_d__deep__more_yaml=TIER.replace("gold", "iron"))
    (tmp_path / "routing.d" / "tiers.yaml").write_text("broken")
    result = plan("HEAD^..HEAD")
    assert "+ tier  iron  rpm 9" in result.output
    assert result.exit_code == CHANGES


@pytest.mark.parametrize(
    "glob", ["../*.yaml", "/etc/*", "a/../../*.yaml", "**/../*.yaml", "../../../etc/passwd"]
)
def test_an_included_file_cannot_be_outside_of_the_repository(commit: Commit, glob: str) -> None:
    commit(routing_yaml=INCLUDING.replace("routing.d/**/*.yaml", glob))
    result = plan("HEAD..HEAD")
    assert "is not in the repository" in result.output
    assert result.exit_code == ERROR


def test_a_link_in_a_commit_is_not_followed(commit: Commit, tmp_path: Path) -> None:
    (tmp_path / "routing.yaml").symlink_to("/etc/passwd")
    commit()
    result = plan("HEAD..HEAD")
    assert "routing.yaml:1:1: error[R001] is not there" in result.output
    assert result.exit_code == ERROR


def test_a_first_file_is_all_new(commit: Commit) -> None:
    commit(README_md="nothing yet")
    head = commit(routing_yaml=BEFORE)
    result = plan("HEAD^..HEAD")
    assert "the file is not there: all of it is new." in result.output
    assert "+ model     acme/large" in result.output
    assert result.exit_code == CHANGES
    assert f"`{head[:7]}`" in plan("HEAD^..HEAD", "--markdown").output


def test_a_base_that_fails_the_check_is_compared_as_if_it_were_not_there(commit: Commit) -> None:
    commit(routing_yaml="version: 2")
    commit(routing_yaml=BEFORE)
    assert "does not pass the check: all of it is new." in plan("HEAD^..HEAD").output


def test_a_head_that_fails_the_check_is_an_error_with_its_place(commit: Commit) -> None:
    commit(routing_yaml=BEFORE)
    commit(routing_yaml=BEFORE.replace("provider: bedrock", "provider: bedrok"))
    result = plan("HEAD^..HEAD")
    assert "routing.yaml:21:19: error[R020]" in result.output
    assert result.exit_code == ERROR
    comment = plan("HEAD^..HEAD", "--markdown").output
    assert comment.startswith("<!-- tollgate-plan label=routing:invalid -->")


def test_a_head_without_the_file_is_an_error(commit: Commit) -> None:
    commit(routing_yaml=BEFORE)
    commit(routing_yaml=None)
    assert plan("HEAD^..HEAD").exit_code == ERROR


@pytest.mark.parametrize(
    "arguments",
    [
        ("--no-such-option",),
        ("--", "--upload-pack=x"),
        ("HEAD..--output=x",),
        ("nobody..HEAD",),
        ("a", "b", "c"),
        ("HEAD", "--traffic", "missing.jsonl"),
        ("HEAD", "--url", "http://127.0.0.1:1"),
        ("HEAD", "--since", "soon", "--url", "http://127.0.0.1:1"),
    ],
)
def test_what_cannot_be_planned_exits_with_one(commit: Commit, arguments: tuple[str, ...]) -> None:
    commit(routing_yaml=BEFORE)
    assert plan(*arguments).exit_code == ERROR


@pytest.mark.parametrize("named", ["--output=x", "-x", ""])
def test_what_looks_like_an_option_never_reaches_git(commit: Commit, named: str) -> None:
    commit(routing_yaml=BEFORE)
    assert plan("--", named, "HEAD").output == f"Error: {named!r} is not a revision of git.\n"


def test_traffic_that_cannot_be_read_is_an_error(commit: Commit, tmp_path: Path) -> None:
    commit(routing_yaml=BEFORE)
    (tmp_path / "traffic.jsonl").write_text("{}\n")
    result = plan("HEAD", "--traffic", "traffic.jsonl")
    assert "line 1: Object missing required field `id`" in result.output
    assert result.exit_code == ERROR


def test_without_a_key_the_url_of_the_environment_names_no_traffic(commit: Commit) -> None:
    commit(routing_yaml=BEFORE)
    result = plan("HEAD", TOLLGATE_URL="http://127.0.0.1:1")
    assert "No traffic is replayed" in result.output
    assert result.exit_code == SAME


def test_c97_each_side_reads_the_catalog_of_its_own_commit(commit: Commit) -> None:
    catalog = BEFORE.replace("version: 1\n", "version: 1\nrelease: 2026-11-22\n", 1)
    dearer = catalog.replace("2026-11-22\n", "2026-11-23\n", 1)
    dearer = dearer.replace("input: 2.2, output: 11", "input: 4.4, output: 11", 1)

    def including(text: str) -> str:
        sha, day = sha256(text.encode()).hexdigest(), text.partition("release: ")[2][:10]
        pin = f"catalog: {{ release: {day}, sha256: {sha} }}"
        return (
            f"version: 1\ninclude: [tollgate:openai, tollgate:anthropic, tollgate:bedrock]\n{pin}\n"
        )

    base = commit(routing_yaml=including(catalog), catalog_yaml=catalog)
    head = commit(routing_yaml=including(dearer), catalog_yaml=dearer)
    review = plan(f"{base}..{head}")
    assert review.exit_code == CHANGES, review.output
    assert "input 2.20 → 4.40" in review.output


def test_c97_a_commit_with_parts_for_development_alone_can_be_planned(commit: Commit) -> None:
    catalog = BEFORE.replace("version: 1\n", "version: 1\nrelease: 2026-11-22\n", 1)
    pin = f"{{ release: 2026-11-22, sha256: {sha256(catalog.encode()).hexdigest()} }}"
    parts = f"dev: {{ include: [tollgate:openai] }}\ncatalog: {pin}\n"
    commit(routing_yaml=f"{BEFORE}{parts}", catalog_yaml=catalog)
    review = plan("HEAD..HEAD")
    assert review.exit_code == SAME, review.output
