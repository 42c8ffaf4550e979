"""`tollgate access` against a running gateway, with Secrets Manager beside it.

Keeps C100.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import boto3  # type: ignore[import-untyped]
import pytest

from tests.functional.command_line import printed, run
from tests.local_server import LocalServer
from tests.moto_server import running_moto

FILE = """
version: 1
workspace: { id: default, budget: 900000 }
teams: { atlas: { limits: { month: 500 } } }
members: { iris@acme.example: { team_id: atlas, limits: { day: 20 } } }
keys:
  atlas-batch: { team_id: atlas, limits: { day: 5.5 }, secret_name: tollgate/atlas-batch }
"""


@pytest.fixture(scope="module")
def aws() -> Iterator[dict[str, str]]:
    """Yield the environment that reaches Secrets Manager."""
    with running_moto() as url:
        yield {
            "AWS_ENDPOINT_URL_SECRETS_MANAGER": url,
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "eu-west-1",
        }


def test_c100_a_file_is_planned_applied_and_then_needs_nothing(
    server: LocalServer, tmp_path: Path, aws: dict[str, str]
) -> None:
    file = tmp_path / "access.yaml"
    file.write_text(FILE, encoding="utf-8")
    planned = run(server, "access", "plan", str(file))
    assert planned.returncode == 2, planned.stderr
    assert "+ key        atlas-batch        limits day $5.50" in planned.stdout
    assert "budget, month: no limit → $900,000.00" in planned.stdout

    unreachable = run(server, "access", "apply", str(file))
    assert unreachable.returncode == 1
    assert "secret tollgate/atlas-batch" in unreachable.stderr
    assert run(server, "teams", "show", "atlas").returncode == 1

    applied = run(server, "access", "apply", str(file), "--commit", "5c1d0e7", **aws)
    assert applied.returncode == 0, applied.stderr
    assert applied.stdout.splitlines()[-1] == "4 done."
    client = boto3.client(
        "secretsmanager",
        region_name="eu-west-1",
        endpoint_url=aws["AWS_ENDPOINT_URL_SECRETS_MANAGER"],
        aws_access_key_id="id",
        aws_secret_access_key="secret",
    )
    secret = client.get_secret_value(SecretId="tollgate/atlas-batch")["SecretString"]
    assert secret not in planned.stdout + applied.stdout + applied.stderr
    key = json.loads(printed(server, "keys", "show", "atlas-batch", "--json"))
    assert secret.endswith(key["label"][-4:])
    entries = json.loads(printed(server, "audit", "--target", "atlas", "--json"))
    assert [entry["commit"] for entry in entries] == ["5c1d0e7"]
    assert "at 5c1d0e7" in printed(server, "audit", "--target", "atlas")

    again = run(server, "access", "apply", str(file), **aws)
    assert (again.returncode, again.stdout) == (0, "Nothing to do.\n")
    same = run(server, "access", "plan", str(file))
    assert same.returncode == 0
    assert same.stdout.startswith("workspace default: Nothing to do.\n")

    file.write_text(FILE.replace("month: 500", "month: 300"), encoding="utf-8")
    comment = run(server, "access", "plan", "--markdown", str(file))
    assert comment.returncode == 2
    assert comment.stdout.startswith("<!-- tollgate-access-plan label=access:changes -->\n")
    assert "| limits of teams, month |" in comment.stdout
    assert "- team  atlas  limits month $500.00 → $300.00" in comment.stdout
    printed(server, "workspaces", "update", "default", "--no", "budget")


def test_c100_an_exported_file_plans_nothing(server: LocalServer, tmp_path: Path) -> None:
    file = tmp_path / "access.yaml"
    file.write_text(printed(server, "access", "export"), encoding="utf-8")
    assert run(server, "access", "plan", str(file)).returncode == 0


def test_c100_a_bad_file_is_one_sentence_and_a_status(server: LocalServer, tmp_path: Path) -> None:
    file = tmp_path / "access.yaml"
    for text, sentence in (
        (FILE.replace("500", "-500"), "month must be greater than 0"),
        (FILE.replace("id: default", "id: acme"), "The file is for the workspace acme, but"),
        (
            FILE.replace("{ team_id: atlas, limits: { day: 20", "{ team_id: x, limits: { day: 20"),
            "x, which",
        ),
    ):
        file.write_text(text, encoding="utf-8")
        refused = run(server, "access", "plan", "--markdown", str(file))
        assert refused.returncode == 1
        assert sentence in refused.stderr
        assert "the file must not be applied" in refused.stdout
        assert sentence in refused.stdout
        assert run(server, "access", "apply", str(file)).returncode == 1
    assert run(server, "access", "plan", "--nonsense").returncode == 1
    missing = run(server, "access", "plan", str(tmp_path / "none.yaml"))
    assert "cannot be read: No such file or directory" in missing.stderr
