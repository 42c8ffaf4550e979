"""The workflow that plans and publishes: its permissions, its triggers, and its scripts."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.action import ACTION, NAMED, STEPS, git, run_step
from tests.infra.action import FOLDER as ACTION_FOLDER
from tests.infra.action import TEXT as ACTION_TEXT
from tests.local_server import ROOT
from tests.unit.cli.planned import BEFORE, after

FOLDER = ROOT / ".github" / "workflows"
TEXT = (FOLDER / "routing-plan.yml").read_text()
# The base loader, since `on` is a key here and no boolean.
WORKFLOW: dict[str, Any] = yaml.load(TEXT, Loader=yaml.BaseLoader)
PLAN, PUBLISH = WORKFLOW["jobs"]["plan"], WORKFLOW["jobs"]["publish"]
JOBS = {
    f"{file.name} {name}": job
    for file in sorted(FOLDER.glob("*.yml"))
    for name, job in yaml.load(file.read_text(), Loader=yaml.BaseLoader)["jobs"].items()
}
GATEWAY = "./.github/actions/gateway"
OFFICIAL = {
    "actions/checkout",
    "actions/setup-python",
    "actions/github-script",
    "aws-actions/configure-aws-credentials",
}


def uses_gateway(job: dict[str, Any]) -> dict[str, Any]:
    (found,) = [each["with"] for each in job["steps"] if each.get("uses") == GATEWAY]
    return dict(found)


def test_it_starts_on_changes_of_routing() -> None:
    assert set(WORKFLOW["on"]) == {"pull_request_target", "push"}
    assert WORKFLOW["on"]["push"]["branches"] == ["main"]
    paths = WORKFLOW["on"]["pull_request_target"]["paths"]
    assert paths == WORKFLOW["on"]["push"]["paths"]
    included = yaml.safe_load((ROOT / "routing.yaml").read_text()).get("include", [])
    assert "routing.yaml" in paths
    assert all(glob.startswith("infra/catalog/") for glob in included)


def test_each_pull_request_of_a_gateways_repository_is_planned() -> None:
    # routing.yaml may include any file; a change that is not planned is published with the next.
    text = (ROOT / "functions/tollgate/cli/repository/files/routing.yml").read_text()
    started = yaml.load(text.replace("@", ""), yaml.BaseLoader)["on"]
    assert started["pull_request_target"] == ""
    assert started["push"] == {"branches": ["main"], "paths": ["**.yaml"]}


def test_each_job_has_the_rights_it_needs_and_no_more() -> None:
    assert WORKFLOW["permissions"] == {}
    # GitHub makes a label only for who may write issues; the first of each kind is made here.
    rights = {"contents": "read", "pull-requests": "write", "issues": "write"}
    assert PLAN["permissions"] == rights
    assert PUBLISH["permissions"] == {"contents": "read", "id-token": "write"}
    for each in (*STEPS, *PLAN["steps"], *PUBLISH["steps"]):
        if each.get("uses", "").startswith("actions/checkout@"):
            assert each["with"]["persist-credentials"] == "false"


def test_only_official_actions_run_each_pinned_to_a_commit() -> None:
    steps = (*STEPS, *PLAN["steps"], *PUBLISH["steps"])
    used = [each["uses"] for each in steps if each.get("uses", GATEWAY) != GATEWAY]
    assert {name.partition("@")[0] for name in used} == OFFICIAL
    assert all(re.fullmatch(r"[a-z/-]+@[0-9a-f]{40}", name) for name in used)
    pinned = re.findall(r"uses: \S+@[0-9a-f]{40} # v\d+\.\d+\.\d+\n", TEXT + ACTION_TEXT)
    assert len(pinned) == len(used)


def test_nothing_that_somebody_wrote_becomes_a_command_or_a_script() -> None:
    for each in (*STEPS, *(step for job in JOBS.values() for step in job["steps"])):
        assert "${{" not in each.get("run", "")
        if "script" in each.get("with", ()):
            assert "${{" not in each["with"]["script"]
    expressions = set(re.findall(r"\$\{\{ (.*?) \}\}", TEXT))
    assert expressions == {
        "github.event.number || github.ref",
        "github.event_name == 'pull_request_target'",
        "vars.TOLLGATE_KEY_VARIABLES",
        "vars.TOLLGATE_URL",
        "secrets.TOLLGATE_KEY",
        "vars.TOLLGATE_PUBLISH_ROLE",
        "vars.AWS_REGION",
    }


def test_c93_nothing_of_a_pull_request_is_run_beside_a_secret() -> None:
    (target,) = [it for it in PLAN["steps"] if "actions/checkout@" in it.get("uses", "")]
    assert set(target["with"]) == {"persist-credentials"}
    (proposed,) = [it for it in STEPS if "actions/checkout@" in it.get("uses", "")]
    assert proposed["with"]["ref"] == "refs/pull/${{ github.event.number }}/merge"
    assert proposed["with"]["path"] == "proposed"
    for each in STEPS[STEPS.index(proposed) + 1 :]:
        if "proposed" in each.get("working-directory", ""):
            assert re.fullmatch(r'bash "\$GITHUB_ACTION_PATH/\w+\.sh"', each["run"])
    planned = [it for it in STEPS if it.get("working-directory") == "proposed"]
    assert [it["name"] for it in planned] == ["Check the pull request", "Plan", "Plan access"]
    for script in (ACTION_FOLDER / f"{name}.sh" for name in ("check", "plan", "access_plan")):
        # Only the installed command runs, and programs of the system on its output.
        words = re.findall(r"^ *(?:\S+=\d+\n *)?(\S+) ", script.read_text(), re.MULTILINE)
        assert set(words) <= {"#", "set", "test", "if", "cat", '"$TOLLGATE"'}, script


def test_c93_a_key_reaches_only_a_step_that_replays_traffic_and_none_of_a_fork() -> None:
    keyed = {it["name"]: it["env"]["TOLLGATE_KEY"] for it in STEPS if "inputs.key " in str(it)}
    assert set(keyed) == {
        "Plan",
        "Plan access",
        "Plan the refresh",
        "Upgrade",
        "Apply access",
        "Comment on a canary",
    }
    assert (
        keyed["Plan"]
        == keyed["Plan access"]
        == (
            "${{ github.event.pull_request.head.repo.full_name == github.repository"
            " && inputs.key || '' }}"
        )
    )


def test_c93_each_secret_and_role_belongs_to_an_environment() -> None:
    assert PLAN["environment"] == "routing-plan"
    assert PUBLISH["environment"] == "routing-publish"
    assert PUBLISH["if"] == "github.event_name == 'push'"


@pytest.mark.parametrize("name", JOBS)
def test_c93_a_job_with_secrets_runs_no_code_of_a_pull_request(name: str) -> None:
    job, file = JOBS[name], FOLDER / name.partition(" ")[0]
    events = set(yaml.load(file.read_text(), Loader=yaml.BaseLoader)["on"])
    # The ref of an event of a pull request is never main.
    is_of_main = job.get("if") == "github.ref == 'refs/heads/main'"
    if ("secrets." in str(job) or "environment" in job) and not is_of_main:
        assert "pull_request" not in events
    if "pull_request_target" in events:
        # Only the action checks out a pull request, and reads it.
        refs = [it["with"].get("ref") for it in job["steps"] if "checkout@" in it.get("uses", "")]
        assert refs == [None]


def test_c93_every_action_is_pinned_to_a_commit() -> None:
    # With the composite actions, which other repositories run.
    for file in sorted({*FOLDER.parent.rglob("*.yml"), *ROOT.glob("action.y*ml")}):
        for used in re.findall(r"uses: (\S+)", file.read_text()):
            assert re.fullmatch(r"[a-z/-]+@[0-9a-f]{40}", used) or used == GATEWAY, used


def test_ci_lets_the_whole_suite_end() -> None:
    (job,) = yaml.safe_load((FOLDER / "ci.yml").read_text())["jobs"].values()
    assert [each["run"] for each in job["steps"] if "run" in each] == ["make test"]
    # It took 35 minutes on two busy cores, which is what the smallest of GitHub's machines have.
    assert job["timeout-minutes"] >= 45


def test_the_action_states_its_inputs_and_reads_each() -> None:
    for name, stated in ACTION["inputs"].items():
        assert stated["description"]
        assert f"inputs.{name} " in ACTION_TEXT.replace("\n", " ")
    used = {name for job in (PLAN, PUBLISH) for name in uses_gateway(job)}
    assert used < set(ACTION["inputs"])


def test_each_script_is_a_step_and_each_step_a_script() -> None:
    called = set(re.findall(r"\$GITHUB_ACTION_PATH/(\w+\.sh)", ACTION_TEXT))
    assert called == {file.name for file in ACTION_FOLDER.glob("*.sh")}
    assert "/comment.js" in NAMED["Comment"]["env"]["SCRIPT"]


def test_without_a_role_nothing_is_published_and_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    said = run_step("Nothing to publish with", tmp_path / "work")
    assert (said.returncode, said.stdout[:18]) == (0, "::notice::Nothing ")
    assert NAMED["Nothing to publish with"]["if"].endswith("inputs.publish-role == ''")
    assert NAMED["Publish"]["if"].endswith("inputs.publish-role != ''")


def test_an_unknown_word_fails_the_job(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    for word in ("apply", "check", "plan", "publish", "refresh"):
        known = run_step("Refuse unusable inputs", tmp_path / "work", RUN=word, SOURCE="")
        assert known.returncode == 0
    refused = run_step("Refuse unusable inputs", tmp_path / "work", RUN="pln", SOURCE="")
    assert (refused.returncode, refused.stdout[:9]) == (1, "::error::")


@pytest.mark.parametrize("word", ["refresh", "upgrade"])
def test_c97_without_a_source_nothing_is_taken(tmp_path: Path, word: str) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "catalog.yaml").touch()
    refused = run_step("Refuse unusable inputs", tmp_path / "work", RUN=word, SOURCE="")
    assert (refused.returncode, refused.stdout[:17]) == (1, "::error::source: ")
    stated = run_step("Refuse unusable inputs", tmp_path / "work", RUN=word, SOURCE="a/tollgate")
    assert (stated.returncode, stated.stdout) == (0, "")
    # GitHub promises the context `action_repository` only outside of composite actions.
    assert "action_repository }}" not in ACTION_TEXT
    for name, variable in (("Fetch", "SOURCE"), ("Upgrade", "TOLLGATE_REPOSITORY")):
        assert NAMED[name]["env"][variable] == "${{ inputs.source }}"


@pytest.mark.parametrize(
    ("requirements", "reason"),
    [
        ("tollgate-gateway==1.0.0\n", "requirements.txt has no hashes"),
        pytest.param(
            f"tollgate-gateway==999.0.0 --hash=sha256:{'0' * 64}\n",
            "cannot be installed",
            marks=pytest.mark.nightly,
        ),
    ],
    ids=["no-hashes", "no-such-version"],
)
def test_requirements_that_do_not_match_fail_in_one_sentence(
    tmp_path: Path, requirements: str, reason: str
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "requirements.txt").write_text(requirements)
    offline = {"PIP_NO_INDEX": "1", "COMMAND": ""}
    refused = run_step("Install", folder, **offline)
    assert refused.returncode == 1
    (error,) = [line for line in refused.stdout.splitlines() if line.startswith("::error::")]
    assert reason in error
    assert not (tmp_path / "output").exists()


@pytest.fixture
def pull_request(tmp_path: Path) -> Path:
    """A checkout of a pull request as GitHub would merge it."""
    tmp_path = tmp_path / "proposed"
    tmp_path.mkdir()
    (tmp_path / "routing.yaml").write_text(BEFORE)
    git(tmp_path, "init --quiet --initial-branch=main", "add --all", "commit --quiet -m before")
    (tmp_path / "routing.yaml").write_text(after())
    git(tmp_path, "commit --quiet --all -m after")
    return tmp_path


def test_the_steps_check_and_plan_and_leave_the_comment(pull_request: Path) -> None:
    checked = run_step("Check the pull request", pull_request)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    planned = run_step("Plan", pull_request)
    assert planned.returncode == 0, planned.stdout + planned.stderr
    comment = (pull_request.parent / "routing-plan.md").read_text()
    assert comment.startswith("<!-- tollgate-plan label=routing:breaking -->\n")
    assert (pull_request.parent / "summary.md").read_text() == comment


def test_a_file_that_must_not_be_used_fails_the_job_and_has_a_comment_too(
    pull_request: Path,
) -> None:
    file = pull_request / "routing.yaml"
    file.write_text(file.read_text().replace("provider: bedrock", "provider: bedrok"))
    git(pull_request, "commit --quiet --all -m broken")
    for name in ("Check", "Check the pull request"):
        checked = run_step(name, pull_request)
        assert checked.returncode == 1
        assert "::error file=routing.yaml," in checked.stdout
    assert run_step("Plan", pull_request).returncode == 1
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
    script = script.replace("SCRIPT", NAMED["Comment"]["with"]["script"])
    variables = {
        "COMMENT": str(folder / "routing-plan.md"),
        "SCRIPT": str(ACTION_FOLDER / "comment.js"),
    }
    ended = subprocess.run(
        [node, "-e", script], env=variables, capture_output=True, text=True, check=True
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


def test_c100_access_has_another_comment_and_label(tmp_path: Path) -> None:
    body = "<!-- tollgate-access-plan label=access:changes -->\n1 added"
    added = ["addLabels", {**HERE, "labels": ["access:changes"]}]
    assert scripted(tmp_path, body, [OURS]) == [["createComment", {**HERE, "body": body}], added]
    theirs = {**OURS, "id": 4, "body": body}
    changed = {"owner": "o", "repo": "r", "comment_id": 4, "body": body}
    assert scripted(tmp_path, body, [OURS, theirs]) == [["updateComment", changed], added]


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
    checked = run_step("Check the pull request", pull_request)
    assert checked.returncode == 1
    assert checked.stdout == ""
