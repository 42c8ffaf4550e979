"""`tollgate subprocessors` on the project's routing file and on small ones."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from tollgate.cli.main import main

ROOT = Path(__file__).parents[3]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["subprocessors", str(ROOT / "routing.yaml"), *arguments])


def test_every_provider_that_serves_a_model_is_listed_with_its_host() -> None:
    found = json.loads(run("--json").output)
    hosts = {row["service"]: row["host"] for row in found}
    assert hosts["anthropic"] == "api.anthropic.com"
    assert hosts["bedrock"] == "AWS"
    assert hosts["web_search"] == "api.tavily.com"
    assert "test" not in hosts


def test_a_profile_of_bedrock_has_its_geography_instead_of_one_region() -> None:
    regions = {row["region"] for row in json.loads(run("--json").output) if row["host"] == "AWS"}
    assert {"us-east-1", "us"} <= regions


def test_a_glob_selects_the_recipients_of_some_models_and_tools() -> None:
    found = json.loads(run("--json", "--model", "anthropic/*").output)
    assert {row["service"] for row in found} >= {"anthropic", "bedrock", "web_search"}
    assert "openai" not in {row["service"] for row in found}
    assert all(slug.startswith("anthropic/") for row in found for slug in row["models"])


def test_the_table_counts_models_and_csv_names_each() -> None:
    assert " more" in run().output
    assert "anthropic/claude" in run("--csv").output
