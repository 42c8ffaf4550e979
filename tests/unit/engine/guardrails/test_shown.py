"""C56: what explanations, plans, records, logs, metrics and token counts say about guardrails.

Keeps C53, C56, C66.
"""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from tests.gateways import House
from tests.scripted import answers, frame
from tests.unit.engine.client_formats import exchange
from tests.unit.engine.guardrails.homes import CARD, ask, guarded, judge, patterns
from tests.unit.routing.catalogs import provider, routing
from tollgate.cli.main import main
from tollgate.cli.server.metrics import ServerMetrics
from tollgate.observability.emf import EmbeddedMetrics
from tollgate.observability.log import LogJournal
from tollgate.routing.review.diff import list_changes
from tollgate.web.records.generation_shapes import GenerationObject

FILE = """\
version: 1
providers:
  near: { codec: openai_chat, transport: http_sse, base_url: https://near.example/v1 }
models:
  acme/large: &MODEL
    name: Large
    context: 100000
    max_output: 10000
    endpoints:
      - provider: near
        upstream: large-1
        price: { input: 1, output: 2, source: made up, checked: 2026-11-21 }
guardrails:
  secrets: { patterns: { finds: [secret] }, action: mask }
  policy: { judge: { model: acme/large }, stages: [input, output], window: 1000 }
  others: { patterns: { finds: [email] }, applies_to: { keys: [another] } }
""".replace(" &MODEL", "")


def test_c53_c56_an_explanation_has_the_guardrails_and_holds_their_cost(tmp_path: Any) -> None:
    file = tmp_path / "routing.yaml"
    file.write_text(FILE)
    command = ["explain", "acme/large", "--output-tokens", "100", "--file", str(file)]
    told = CliRunner().invoke(main, command)
    assert "Guardrail secrets (patterns): mask on input, output." in told.output, told.output
    assert "Guardrail policy (judge): block on input, output, for $" in told.output
    assert "others" not in told.output
    explained = json.loads(CliRunner().invoke(main, [*command, "--json"]).output)
    names = [each["name"] for each in explained["guardrails"]]
    assert names == ["policy", "secrets"]
    costs = sum(float(each["cost_max"]) for each in explained["guardrails"])
    dearest = max(float(each["cost_max"]) for each in explained["candidates"])
    assert costs > 0
    assert abs(float(explained["hold"]) - costs - dearest) < 1e-9


def test_c56_a_plan_shows_guardrails_that_are_removed_or_weakened() -> None:
    row = {"patterns": {"finds": ("secret",)}, "action": "mask"}
    weaker = {**row, "action": "flag"}
    before = routing(guardrails={"a": row, "b": row})
    removed, changed = list_changes(before, routing(guardrails={"b": weaker}))
    assert (removed.kind, removed.what, removed.subject) == ("removed", "guardrail", "a")
    assert (changed.kind, changed.what, changed.subject) == ("changed", "guardrail", "b")
    assert [(fact.name, fact.before, fact.after) for fact in changed.facts] == [
        ("action", "mask", "flag")
    ]


async def judged() -> House:
    home = await guarded(answers("Hi"), far=[answers("safe")], policy=judge(stages=("input",)))
    assert (await ask(home)).status == 200
    return home


async def test_c56_c66_a_record_shows_judgements_and_their_cost() -> None:
    shown = GenerationObject.of((await judged()).record)
    (judgement,) = shown.judgements
    assert (judgement.guardrail, judgement.stage, judgement.verdict) == ("policy", "input", "pass")
    assert judgement.cost == shown.total_cost - sum(
        line.cost for line in shown.cost_lines if not line.item.startswith("guardrail_")
    )
    assert set(shown.tool_costs_micro_usd) == {"guardrail_input", "guardrail_output"}


async def test_c56_judgements_are_logged_and_counted_without_any_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    home = await guarded(secrets=patterns())
    await ask(home, CARD)
    with caplog.at_level("INFO"):
        LogJournal(EmbeddedMetrics("Tollgate", home.gateway.clock)).settled(home.record)
    (line,) = [each for each in caplog.records if each.message == "guardrail judged"]
    fields: Any = line.__dict__["fields"]
    assert (fields["guardrail"], fields["verdict"], fields["GuardrailJudgements"]) == (
        "secrets",
        "block",
        1,
    )
    assert CARD not in json.dumps([each.__dict__.get("fields") for each in caplog.records])
    metrics = ServerMetrics()
    metrics.count_generation(home.record)
    told = 'tollgate_guardrail_judgements_total{guardrail="secrets",verdict="block"} 1.0'
    assert told in metrics.render().decode()


async def test_c56_tokens_of_a_guarded_prompt_are_estimated_without_the_provider() -> None:
    providers = {
        "near": provider(codec="anthropic", dialect={"counts_tokens": True}),
        "far": provider(),
    }
    body = {"max_tokens": 9, "messages": [{"role": "user", "content": CARD}]}
    for rows, exactness in (({}, "exact"), ({"secrets": patterns(action="mask")}, "estimate")):
        sections = {"providers": providers}
        home = await guarded([frame({"input_tokens": 7})], sections=sections, **rows)
        reply = await exchange(home, "/v1/messages/count_tokens", body)
        assert reply.headers["x-tollgate-token-count"] == exactness, reply.body
        assert len(home.near.requests) == (1 if exactness == "exact" else 0)
