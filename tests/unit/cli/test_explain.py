"""`tollgate explain` by a file, as it is typed and as it is read.

Keeps C53, C80, C81.
"""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tollgate.cli.main import main

FILE = Path(__file__).parent / "explained.yaml"
ROUTING = Path(__file__).parents[3] / "routing.yaml"
# Where a test is about something else than prices and draws, these stay what they are.
FIXED = ("--session", "s-1", "--at", "2026-11-21")

CHOSEN = """\
best → smart → rule 3 (not rule 1: tier is team, not free; rule 2: no pdf in the input)  \
catalog {sha}
about 12,000 prompt tokens, 24,065 at most; drawn by 6a840baf5d8c3ff2

   model       share  draw   endpoint            share  draw   costs at most
1  acme/plain  10 %   56.90  openai/plain                      $0.0561
2  acme/large  90 %   44.11  anthropic/large-1   80 %   47.79  $0.141
3  acme/large  90 %   44.11  bedrock/us.large-1  20 %   18.75  $0.155
-  acme/small                openai/small                      $0.00280       does not support tools

Holds $0.155. Next on: provider_overloaded, provider_rate_limit, provider_timeout, \
provider_unavailable.
"""
FAILING = """\
acme/large  catalog {sha}
about 4 prompt tokens, 42 at most; drawn by 6a840baf5d8c3ff2

   model       endpoint            share  draw    costs at most
1  acme/large  anthropic/large-1   80 %   279.67  $0.0410
2  acme/large  bedrock/us.large-1  20 %   51.47   $0.0451

Holds $0.0451. Next on: content_filter, context_length_exceeded, provider_auth, \
provider_overloaded, provider_rate_limit, provider_timeout, provider_unavailable.
With timeout@anthropic, 429@bedrock:
    120.00 s  acme/large at anthropic/large-1  provider_timeout
    120.00 s  acme/large at bedrock/us.large-1  provider_rate_limit
    120.19 s  acme/large at bedrock/us.large-1  provider_rate_limit
    120.56 s  acme/large at bedrock/us.large-1  provider_rate_limit
No endpoint serves: the caller gets provider_rate_limit.
"""
REFUSED = """\
smart → rule 1  catalog {sha}
about 30,000 prompt tokens, 60,031 at most; drawn by 6a840baf5d8c3ff2

   model       endpoint      costs at most
-  acme/small  openai/small  $0.00308       takes 8000 tokens

Refused: The request has at least 20010 tokens by its size: acme/small takes 8000 tokens. \
(context_length_exceeded)
"""


def run(*arguments: str, **variables: str) -> Result:
    return CliRunner(env=variables).invoke(main, ["explain", "--file", str(FILE), *arguments])


def _nameless(shown: str) -> str:
    """What is shown, without the catalog's hash, which every new key of the file changes."""
    return re.sub(r"catalog [0-9a-f]{7}$", "catalog {sha}", shown, flags=re.MULTILINE)


def explained(*arguments: str) -> dict[str, object]:
    answer = json.loads(run(*arguments, "--json").stdout)
    assert isinstance(answer, dict)
    return answer


def test_c53_candidates_weights_draws_costs_and_what_removed_each() -> None:
    result = run(
        "best",
        *("--tier", "team", "--has", "tools"),
        *("--prompt-tokens", "12000", "--output-tokens", "8192"),
        *FIXED,
    )
    assert (_nameless(result.stdout), result.exit_code) == (CHOSEN, 0)


def test_c53_every_try_of_a_simulated_failure_and_its_pause() -> None:
    result = run(
        "acme/large", "--simulate", "timeout@anthropic", "--simulate", "429@bedrock", *FIXED
    )
    assert (_nameless(result.stdout), result.exit_code) == (FAILING, 1)


def test_c53_c81_a_text_of_any_size_is_no_conversation() -> None:
    """An endpoint that completes prompts takes it, whatever its size."""
    simulated = ["explain", "test/complete", "--dev", "--file", str(ROUTING)]
    result = CliRunner().invoke(main, [*simulated, "--prompt-tokens", "5000"])
    assert (result.exit_code, "about 5,000 prompt tokens" in result.stdout) == (0, True)
    refused = CliRunner().invoke(main, [*simulated, "--has", "image"])
    assert refused.exit_code == 1


def test_c53_what_is_refused_says_so_and_exits_with_one() -> None:
    result = run("smart", "--tier", "free", "--prompt-tokens", "30000", *FIXED)
    assert (_nameless(result.stdout), result.exit_code) == (REFUSED, 1)


@pytest.mark.parametrize(("left", "rule"), [("19%", 1), ("19", 1), ("20%", 2)])
def test_c53_a_share_of_a_budget_is_taken_to_be_left(left: str, rule: int) -> None:
    assert explained("thrifty", "--budget-left", left, *FIXED)["rule"] == rule


def test_c53_c58_a_prompt_policy_shows_what_it_leaves_out() -> None:
    result = run("acme/large", "--prompt-policy", "eu,no_retention", *FIXED)
    assert (result.exit_code, "as the prompt policy of the key demands" in result.stdout) == (
        1,
        True,
    )
    mistaken = run("acme/large", "--prompt-policy", "europe", *FIXED)
    assert (mistaken.exit_code, "is neither eu nor" in mistaken.output) == (2, True)


@pytest.mark.parametrize("left", ["101%", "-1", "a fifth", "1.5", ""])
def test_what_is_no_share_of_a_budget_is_a_mistake_in_the_command(left: str) -> None:
    result = run("thrifty", "--budget-left", left)
    assert (result.exit_code, "write a whole percent" in result.output) == (2, True)


def test_c53_json_has_what_the_route_answers() -> None:
    answer = explained("smart", "--simulate", "503@acme/plain", *FIXED)
    assert (answer["route"], answer["rule"]) == ("smart", 3)
    assert answer["hold"] == pytest.approx(0.04514, abs=1e-5)
    assert answer["simulation"] == {
        "faults": ["503@acme/plain"],
        "attempts": [
            {
                "model": "acme/plain",
                "provider": "openai",
                "upstream": "plain",
                "service_tier": None,
                "error": "provider_overloaded",
                "took_s": 0.0,
                "pause_s": 0.0,
            },
            {
                "model": "acme/large",
                "provider": "anthropic",
                "upstream": "large-1",
                "service_tier": None,
                "error": None,
                "took_s": 0.0,
                "pause_s": 0.0,
            },
        ],
        "error": None,
    }


def test_prices_are_those_of_the_moment_asked_about() -> None:
    before = explained("acme/large", "--session", "s-1", "--at", "2026-12-31T23:59:59")
    after = explained("acme/large", "--session", "s-1", "--at", "2027-01-01")
    assert before["hold"] == pytest.approx(0.04515, abs=1e-5)
    assert after["hold"] == pytest.approx(0.08209, abs=1e-5)


@pytest.mark.parametrize(
    ("has", "code"),
    [
        ("audio", "audio_not_supported_by_model"),
        ("image", "image_not_supported_by_model"),
        ("pdf", "file_not_supported_by_model"),
        ("structured_output", "invalid_request"),
        ("tools", "invalid_request"),
    ],
)
def test_what_a_request_has_leaves_out_whoever_cannot_take_it(has: str, code: str) -> None:
    answer = explained("acme/small", "--has", has)
    error = answer["error"]
    assert isinstance(error, dict)
    assert (error["code"], answer["hold"]) == (code, None)


def test_c53_a_request_without_a_session_says_which_conversation_draws_it(tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    body = {"model": "smart", "messages": [{"role": "user", "content": "x" * 8000}]}
    file.write_text(json.dumps(body), encoding="utf-8")
    conversation = explained("--request", str(file))["conversation"]
    assert conversation == explained("--request", str(file))["conversation"]
    assert conversation is not None
    shown = run("--request", str(file)).stdout
    assert f" (by {conversation} if its model's providers cache it)" in shown


def test_a_chat_request_is_explained_as_it_would_be_sent(tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    body = {
        "model": "smart",
        "messages": [{"role": "user", "content": "x" * 4000}],
        "session_id": "s-1",
        "provider": {"ignore": ["anthropic"]},
    }
    file.write_text(json.dumps(body), encoding="utf-8")
    answer = explained("--request", str(file))
    assert (answer["prompt_tokens"], answer["drawn_by"]) == (1004, "6a840baf5d8c3ff2")
    candidates = answer["candidates"]
    assert isinstance(candidates, list)
    removed = {each["provider"]: each["removed"] for each in candidates}
    assert removed["anthropic"] == "is in provider.ignore"


def test_what_the_command_line_says_is_over_what_the_request_says() -> None:
    body = json.dumps({"model": "smart", "messages": [{"role": "user", "content": "Hi"}]})
    command = ["explain", "acme/small", "--file", str(FILE), "--request", "-", "--json"]
    result = CliRunner().invoke(main, [*command, "--prompt-tokens", "1000"], input=body)
    answer = json.loads(result.stdout)
    assert (answer["requested"], answer["prompt_tokens"]) == ("acme/small", 1000)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("smrt",), 1, "There is no model, alias or route named smrt. Did you mean smart?"),
        (("test/echo",), 1, "left out; --dev keeps them"),
        (("smart", "--simulate", "429"), 1, "must be KIND@WHERE"),
        (("smart", "--simulate", "700@openai"), 1, "must be KIND@WHERE"),
        (("smart", "--simulate", "429@nobody"), 1, "429@nobody matches no endpoint of the plan"),
        (("smart", "--url", "http://localhost:1", "--tier", "free"), 2, "applies to a file"),
        (("smart", "--metadata", "team"), 2, "write NAME=VALUE"),
        ((), 2, "Give a model"),
        (("smart", "--format", "messages"), 2, "needs a --request"),
    ],
)
def test_what_cannot_be_explained_says_why(
    arguments: tuple[str, ...], status: int, said: str
) -> None:
    result = run(*arguments)
    assert (result.exit_code, said in result.stderr) == (status, True), result.stderr


def test_a_gateway_that_only_the_environment_names_is_named() -> None:
    gateway = {"TOLLGATE_URL": "http://localhost:1", "TOLLGATE_KEY": "k"}
    result = CliRunner(env=gateway).invoke(main, ["explain", "smart"])
    said = "As http://localhost:1 routes it; --file reads a file instead.\n"
    assert (result.exit_code, result.stderr.startswith(said)) == (1, True)


@pytest.mark.parametrize("content", ["", "[]", "{"])
def test_a_request_that_is_no_json_object_is_a_mistake_in_the_command(content: str) -> None:
    command = ["explain", "smart", "--file", str(FILE), "--request", "-"]
    result = CliRunner().invoke(main, command, input=content)
    assert (result.exit_code, "--request" in result.stderr) == (2, True)


def test_a_file_named_on_the_command_line_is_asked_even_where_a_gateway_is_set_up() -> None:
    assert run("smart", TOLLGATE_URL="http://localhost:1", TOLLGATE_KEY="k").exit_code == 0


BODIES: dict[str, dict[str, object]] = {
    "completions": {"prompt": "x" * 4000},
    "messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "x" * 4000}]},
    "responses": {"input": "x" * 4000},
}


@pytest.mark.parametrize("name", BODIES)
def test_c53_c80_c81_a_request_of_another_format_is_explained(name: str) -> None:
    body = json.dumps({"model": "smart", **BODIES[name]})
    command = ["explain", "acme/large", "--session", "s-1", "--file", str(FILE), "--json"]
    result = CliRunner().invoke(main, [*command, "--format", name, "--request", "-"], input=body)
    answer = json.loads(result.stdout)
    assert (answer["requested"], answer["drawn_by"]) == ("acme/large", "6a840baf5d8c3ff2")
    assert 1000 <= answer["prompt_tokens"] <= 1010


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--prompt-tokens", "9"),
        ("--output-tokens", "9"),
        ("--has", "tools"),
        ("--metadata", "team=a"),
    ],
)
def test_options_that_describe_a_chat_request_change_no_other(option: str, value: str) -> None:
    body = json.dumps({"model": "smart", **BODIES["responses"]})
    command = ["explain", "--file", str(FILE), "--format", "responses", "--request", "-"]
    result = CliRunner().invoke(main, [*command, option, value], input=body)
    assert (result.exit_code, f"{option} describes a chat request" in result.stderr) == (2, True)


def test_c21_c53_the_model_behind_a_name_that_the_file_does_not_state_is_shown() -> None:
    said = run("azure/large-1").stdout
    assert said.startswith("azure/large-1 → acme/large  catalog")


def test_c53_c59_c102_a_file_says_what_share_has_a_shadow_and_which_answers_are_reused() -> None:
    shown = run("compared").stdout
    assert "5 % of the route's requests from keys with content_days also go to acme/plain" in shown
    assert "Identical requests within 600 s get this answer, for nothing, if the key has" in shown
    assert explained("compared")["shadow"] == {
        "model": "acme/plain",
        "share": 5,
        "judge": None,
        "used": None,
        "unused": None,
    }
    assert "This request does not: its session is not drawn." in run("compared", *FIXED).stdout
    assert "shadow" not in run("smart").stdout
