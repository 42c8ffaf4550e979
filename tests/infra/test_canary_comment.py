"""The comment of the action on the pull request of a candidate that was withdrawn.

Keeps C57.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.infra.test_workflows import ACTION_FOLDER

COMMIT = "0a1b2c3d" * 5
REASON = "errors 4.10 % against 1.00 %; allowed: 1 points more"
BEFORE = {"revision": 2, "candidate": "b" * 64, "withdrawn": None, "commit": COMMIT}
BACK = {"revision": 3, "candidate": None, "withdrawn": REASON, "commit": None}
LATER = {"revision": 4, "candidate": None, "withdrawn": None, "commit": COMMIT}
CURL = """#!/bin/sh
cat > "$FOLDER/config"; echo "$@" > "$FOLDER/curled"; cat "$FOLDER/reply"
"""
GH = """#!/bin/sh
echo "$@" >> "$FOLDER/calls"
case "$*" in
*/pulls*) echo 7 ;;
*/comments*) cat "$FOLDER/comments" ;;
esac
"""


def run(folder: Path, history: list[dict[str, Any]], comments: str = "", key: str = "k-1") -> str:
    """Return what the script prints; its programs leave their arguments in the folder."""
    for name, text in (("curl", CURL), ("gh", GH)):
        program = folder / name
        program.write_text(text)
        program.chmod(0o755)
    (folder / "reply").write_text(json.dumps({"data": {"history": history}}))
    (folder / "comments").write_text(comments)
    (folder / "calls").write_text("")
    ended = subprocess.run(
        ["bash", ACTION_FOLDER / "canary.sh"],
        env={
            "PATH": f"{folder}:/usr/bin:/bin",
            "FOLDER": str(folder),
            "TOLLGATE_URL": "https://gateway.example/api/v1/",
            "TOLLGATE_KEY": key,
            "REPOSITORY": "o/r",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout


def test_c57_the_pull_request_of_the_candidate_gets_one_comment(tmp_path: Path) -> None:
    marker = "<!-- tollgate-canary revision=3 -->"
    assert run(tmp_path, [LATER, BACK, BEFORE]) == ""
    calls = (tmp_path / "calls").read_text()
    assert f"repos/o/r/commits/{COMMIT}/pulls" in calls
    assert f"pr comment 7 --repo o/r --body {marker}\nThe gateway withdrew" in calls
    assert f"the candidate {'b' * 12} of this pull request: {REASON}." in calls
    assert (tmp_path / "curled").read_text().split()[-1] == "https://gateway.example/api/v1/catalog"
    assert "k-1" not in (tmp_path / "curled").read_text()
    assert (tmp_path / "config").read_text() == 'header = "authorization: Bearer k-1"\n'
    run(tmp_path, [BACK, BEFORE], comments=f"{marker}\nThe gateway withdrew")
    assert "pr comment" not in (tmp_path / "calls").read_text()


@pytest.mark.parametrize(
    ("history", "key", "words"),
    [
        ([], "k-1", ""),
        ([LATER, BEFORE], "k-1", ""),
        ([BACK, BEFORE | {"commit": None}], "k-1", "names no commit"),
        ([BACK, BEFORE | {"commit": "../../x"}], "k-1", "names no commit"),
        ([BACK], "k-1", "names no commit"),
        ([BACK, BEFORE], "", "name no gateway"),
    ],
)
def test_c57_without_a_candidate_its_commit_or_a_key_nobody_gets_a_comment(
    tmp_path: Path, history: list[dict[str, Any]], key: str, words: str
) -> None:
    assert words in run(tmp_path, history, key=key)
    assert (tmp_path / "calls").read_text() == ""
