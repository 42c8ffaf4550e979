"""The workflow that plans and publishes: its permissions, its triggers, and a run of its script."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.local_server import ROOT, TOLLGATE
from tests.unit.cli.planned import BEFORE, after

FOLDER = ROOT / ".github" / "workflows"
TEXT = (FOLDER / "routing-plan.yml").read_text()
# The base loader, since `on` is a key here and no boolean.
WORKFLOW: dict[str, Any] = yaml.load(TEXT, Loader=yaml.BaseLoader)
PLAN, PUBLISH = WORKFLOW["jobs"]["plan"], WORKFLOW["jobs"]["publish"]
STEPS = [step for job in (PLAN, PUBLISH) for step in job["steps"]]
OFFICIAL = {
    "actions/checkout",
    "actions/setup-python",
    "actions/github-script",
    "aws-actions/configure-aws-credentials",
}


def step(name: str) -> dict[str, Any]:
    (found,) = [each for each in PLAN["steps"] if each.get("name") == name]
    return found


def test_it_starts_on_changes_of_routing() -> None:
    assert set(WORKFLOW["on"]) == {"pull_request_target", "push"}
    assert WORKFLOW["on"]["push"]["branches"] == ["main"]
    paths = WORKFLOW["on"]["pull_request_target"]["paths"]
    assert paths == WORKFLOW["on"]["push"]["paths"]
    included = yaml.safe_load((ROOT / "routing.yaml").read_text()).get("include", [])
    assert "routing.yaml" in paths
    assert all(glob.startswith("infra/catalog/") for glob in included)


def test_each_job_has_the_rights_it_needs_and_no_more() -> None:
    assert WORKFLOW["permissions"] == {}
    # GitHub makes a label only for who may write issues; the first of each kind is made here.
    rights = {"contents": "read", "pull-requests": "write", "issues": "write"}
    assert PLAN["permissions"] == rights
    assert PUBLISH["permissions"] == {"contents": "read", "id-token": "write"}
    for each in STEPS:
        if each.get("uses", "").startswith("actions/checkout@"):
            assert each["with"]["persist-credentials"] == "false"


def test_only_official_actions_run_each_pinned_to_a_commit() -> None:
    used = [each["uses"] for each in STEPS if "uses" in each]
    assert {name.partition("@")[0] for name in used} == OFFICIAL
    assert all(re.fullmatch(r"[a-z/-]+@[0-9a-f]{40}", name) for name in used)
    assert len(re.findall(r"uses: \S+@[0-9a-f]{40} # v\d+\.\d+\.\d+\n", TEXT)) == len(used)


def test_nothing_that_somebody_wrote_becomes_a_command_or_a_script() -> None:
    for each in STEPS:
        assert "${{" not in each.get("run", "")
    assert "${{" not in step("Comment")["with"]["script"]
    expressions = set(re.findall(r"\$\{\{ (.*?) \}\}", TEXT))
    assert expressions == {
        "github.event.number",
        "github.event.number || github.ref",
        "github.event_name == 'pull_request_target'",
        "vars.TOLLGATE_KEY_VARIABLES",
        "vars.TOLLGATE_URL",
        (
            "github.event.pull_request.head.repo.full_name == github.repository"
            " && secrets.TOLLGATE_KEY || ''"
        ),
        "vars.TOLLGATE_PUBLISH_ROLE",
        "vars.AWS_REGION",
        "env.ROLE",
    }


def test_c93_nothing_of_a_pull_request_is_run_beside_a_secret() -> None:
    checkouts = [each for each in PLAN["steps"] if "actions/checkout@" in each.get("uses", "")]
    target, proposed = (each["with"] for each in checkouts)
    assert set(target) == {"persist-credentials"}
    assert proposed["ref"] == "refs/pull/${{ github.event.number }}/merge"
    assert proposed["path"] == "proposed"
    after = PLAN["steps"][PLAN["steps"].index(checkouts[1]) + 1 :]
    for each in after:
        if "run" in each:
            assert each["working-directory"] == "proposed"
            assert "../.venv/bin/tollgate" in each["run"]
            assert "make" not in each["run"]
    assert "secrets." not in str(PLAN["steps"][: PLAN["steps"].index(step("Plan"))])


def test_c93_each_secret_and_role_belongs_to_an_environment() -> None:
    assert PLAN["environment"] == "routing-plan"
    assert PUBLISH["environment"] == "routing-publish"
    assert PUBLISH["if"] == "github.event_name == 'push'"


def test_c93_every_action_of_every_workflow_is_pinned_to_a_commit() -> None:
    # With the composite actions, which other repositories run.
    for file in sorted({*FOLDER.parent.rglob("*.yml"), *ROOT.glob("action.y*ml")}):
        for used in re.findall(r"uses: (\S+)", file.read_text()):
            assert re.fullmatch(r"[a-z/-]+@[0-9a-f]{40}", used), f"{file.name}: {used}"


def test_ci_lets_the_whole_suite_end() -> None:
    (job,) = yaml.safe_load((FOLDER / "ci.yml").read_text())["jobs"].values()
    assert [each["run"] for each in job["steps"] if "run" in each] == ["make test"]
    # It took 35 minutes on two busy cores, which is what the smallest of GitHub's machines have.
    assert job["timeout-minutes"] >= 45


def test_without_a_role_nothing_is_published_and_it_says_so() -> None:
    first, *others = PUBLISH["steps"]
    assert first["if"] == "env.ROLE == ''"
    assert first["run"].startswith('echo "::notice::')
    assert all(each["if"] == "env.ROLE != ''" for each in others)
    assert others[-1]["run"] == ".venv/bin/tollgate publish"


def run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """A step as GitHub runs it: `bash -e`, with a summary to append to."""
    return subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=folder,
        env={
            "PATH": f"{TOLLGATE.parent}:/usr/bin:/bin",
            "PYTHONPATH": str(ROOT / "functions"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "TOLLGATE_URL": "",
            "TOLLGATE_KEY": "",
            "HOME": str(folder),
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def pull_request(tmp_path: Path) -> Path:
    """A checkout of a pull request as GitHub would merge it."""
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(TOLLGATE.parent)
    tmp_path = tmp_path / "proposed"
    tmp_path.mkdir()
    who = "git -c user.name=t -c user.email=t@example.com"
    commit = f"git add --all && {who} commit --quiet --message change"
    (tmp_path / "routing.yaml").write_text(BEFORE)
    (tmp_path / ".gitignore").write_text("*.md\n")
    begun = run(tmp_path, f"git init --quiet --initial-branch=main && {commit}")
    assert begun.returncode == 0, begun.stderr
    (tmp_path / "routing.yaml").write_text(after())
    assert run(tmp_path, commit).returncode == 0
    return tmp_path


def test_the_steps_check_and_plan_and_leave_the_comment(pull_request: Path) -> None:
    checked = run(pull_request, step("Check")["run"])
    assert checked.returncode == 0, checked.stdout + checked.stderr
    planned = run(pull_request, step("Plan")["run"])
    assert planned.returncode == 0, planned.stdout + planned.stderr
    comment = (pull_request.parent / "routing-plan.md").read_text()
    assert comment.startswith("<!-- tollgate-plan label=routing:breaking -->\n")
    assert (pull_request / "summary.md").read_text() == comment


def test_a_file_that_must_not_be_used_fails_the_job_and_has_a_comment_too(
    pull_request: Path,
) -> None:
    file = pull_request / "routing.yaml"
    file.write_text(file.read_text().replace("provider: bedrock", "provider: bedrok"))
    git = "git -c user.name=t -c user.email=t@example.com"
    assert run(pull_request, f"{git} commit --quiet --all --message broken").returncode == 0
    assert "::error file=routing.yaml," in run(pull_request, step("Check")["run"]).stdout
    assert run(pull_request, step("Plan")["run"]).returncode == 1
    assert "label=routing:invalid" in (pull_request.parent / "routing-plan.md").read_text()


GITHUB = """
const calls = []
const note = name => async asked => { calls.push([name, asked]) }
const github = {
  paginate: async (list, place) => list(place),
  rest: { issues: {
    listComments: async () => COMMENTS,
    listLabelsOnIssue: async () => [{ name: 'routing:route' }, { name: 'bug' }],
    ...Object.fromEntries(
      ['updateComment', 'createComment', 'removeLabel', 'addLabels'].map(n => [n, note(n)]))
  } }
}
const context = { repo: { owner: 'o', repo: 'r' }, issue: { number: 7 } }
const run = async () => { SCRIPT }
run().then(() => console.log(JSON.stringify(calls)))
"""


def scripted(folder: Path, body: str, comments: list[object]) -> list[Any]:
    """Return the calls of the script to GitHub for a comment, beside existing comments."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    (folder / "routing-plan.md").write_text(body)
    script = GITHUB.replace("COMMENTS", json.dumps(comments))
    script = script.replace("SCRIPT", step("Comment")["with"]["script"])
    ended = subprocess.run(
        [node, "-e", script], cwd=folder, capture_output=True, text=True, check=True
    )
    calls: list[Any] = json.loads(ended.stdout)
    return calls


BODY = "<!-- tollgate-plan label=routing:price -->\nspend"
OURS = {"id": 3, "user": {"type": "Bot"}, "body": "<!-- tollgate-plan label=none -->\nold"}
IMPOSTOR = {"id": 2, "user": {"type": "User"}, "body": OURS["body"]}
HERE = {"owner": "o", "repo": "r", "issue_number": 7}


def test_there_is_one_comment_and_one_label(tmp_path: Path) -> None:
    labels = [
        ["removeLabel", {**HERE, "name": "routing:route"}],
        ["addLabels", {**HERE, "labels": ["routing:price"]}],
    ]
    first = scripted(tmp_path, BODY, [IMPOSTOR])
    assert first == [["createComment", {**HERE, "body": BODY}], *labels]
    again = scripted(tmp_path, BODY, [IMPOSTOR, OURS])
    changed = {"owner": "o", "repo": "r", "comment_id": 3, "body": BODY}
    assert again == [["updateComment", changed], *labels]


def test_nothing_is_said_where_nothing_changes_but_what_was_said_is_brought_up_to_date(
    tmp_path: Path,
) -> None:
    body = BODY.replace("routing:price", "none")
    removed = ["removeLabel", {**HERE, "name": "routing:route"}]
    assert scripted(tmp_path, body, []) == [removed]
    assert [name for name, _ in scripted(tmp_path, body, [OURS])] == [
        "updateComment",
        "removeLabel",
    ]


def test_c93_a_routing_file_that_is_a_link_is_not_read(pull_request: Path) -> None:
    (pull_request.parent / "elsewhere").write_text("a line of another file")
    (pull_request / "routing.yaml").unlink()
    (pull_request / "routing.yaml").symlink_to(pull_request.parent / "elsewhere")
    checked = run(pull_request, step("Check")["run"])
    assert checked.returncode == 1
    assert checked.stdout == ""
