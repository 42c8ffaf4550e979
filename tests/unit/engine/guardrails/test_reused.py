"""Guardrails and the cache of a route.

Keeps C56, C59.
"""

import pytest

from tests.scripted import answers
from tests.unit.engine.guardrails.homes import CLEAN, MODELS, VIOLENT, moderation, patterns, results
from tests.unit.engine.test_answer_cache import another_key, cached
from tests.unit.routing.catalogs import endpoint, model
from tollgate.stores.ports.administration import NewKey


async def test_c59_a_key_behind_another_guardrail_gets_an_answer_for_itself() -> None:
    rows = {"cards": {**patterns(), "applies_to": {"key_tiers": ("gold",)}}}
    tiers = {"gold": {"rpm": 60}}
    home = await cached(sharing="workspace", guardrails=rows, key_tiers=tiers)
    await home.ask()
    guarded = NewKey(workspace_id="acme", label="o", answer_cache="workspace", tier="gold")
    await another_key(home, guarded)
    assert await home.status() == "miss"
    assert await home.status() == "hit; age=0"
    assert [len(record.judgements) for record in home.records] == [0, 2, 2]


async def test_c59_guardrails_judge_a_reused_answer_again() -> None:
    rows = {"words": moderation(stages=("input", "output"))}
    models = {**MODELS, "acme/large": model(endpoint("near", "large-1"))}
    judged = [results(CLEAN), results(CLEAN), results(CLEAN), results(VIOLENT)]
    home = await cached(far=judged, guardrails=rows, models=models)
    assert await home.status() == "miss"
    refused = await home.ask()
    assert refused.headers["x-tollgate-cache"] == "hit; age=0"
    assert refused.json["choices"][0]["finish_reason"] == "content_filter"
    assert refused.json["choices"][0]["message"]["content"] == ""
    assert home.sent == 1
    verdicts = [[each.verdict for each in record.judgements] for record in home.records]
    assert verdicts == [["pass", "pass"], ["pass", "block"]]


@pytest.mark.parametrize("spoken", ["4111 1111 1111 1111", "mail ada@example.com"])
async def test_c59_answers_that_a_guardrail_changes_are_not_stored(spoken: str) -> None:
    rows = {"cards": patterns("card_number"), "mails": patterns("email", action="mask")}
    home = await cached(answers(spoken), guardrails=rows)
    await home.ask()
    assert home.cache.stored == {}
