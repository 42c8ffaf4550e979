"""`tollgate subprocessors` on the project's routing file and on small ones."""

import json
from datetime import date
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from tests.unit.routing.catalogs import endpoint, model, routing
from tollgate.cli.main import main
from tollgate.routing.file.subprocessors import list_models

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


def test_a_route_has_the_recipients_of_its_models() -> None:
    found = json.loads(run("--json", "--route", "smart").output)
    services = {row["service"] for row in found}
    assert services >= {"anthropic", "openai", "bedrock", "web_search"}
    assert "deepseek" not in services
    assert {slug for row in found for slug in row["models"]} == {
        "anthropic/claude-sonnet-5.5",
        "google/gemini-4-argon",
        "mistralai/mistral-medium-3.5",
        "openai/gpt-5.2",
    }


def test_successors_shadows_and_guardrails_of_a_route_count() -> None:
    ended = {"retires": date(2027, 1, 1), "after_retirement": "successor", "successor": "acme/new"}
    facts: dict[str, dict[str, Any]] = {"old": ended}
    names = ("small", "old", "new", "shadow", "judge", "other")
    found = routing(
        models={
            f"acme/{name}": model(endpoint("near", name), **facts.get(name, {})) for name in names
        },
        aliases={},
        routes={
            "all": {
                "description": "All.",
                "rules": (
                    {"if": {"capability": "tools"}, "try": ("acme/small",)},
                    {"try": ("acme/old",)},
                ),
                "shadow": {
                    "model": "acme/shadow",
                    "share": 1,
                    "workspace": "acme",
                    "key_id": "k",
                },
            }
        },
        guardrails={"kind": {"judge": {"model": "acme/judge"}}},
    )
    assert list_models(found, found.routes["all"]) == {
        f"acme/{name}" for name in ("small", "old", "new", "shadow", "judge")
    }


def test_an_unknown_route_is_an_error_that_names_the_routes() -> None:
    unknown = run("--route", "anthropic/claude-sonnet-5.5")
    assert (unknown.exit_code, "smart" in unknown.output) == (1, True)


def test_the_table_counts_models_and_csv_names_each() -> None:
    assert " more" in run().output
    assert "anthropic/claude" in run("--csv").output
