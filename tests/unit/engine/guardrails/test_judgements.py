"""C56: guardrails of the gateway in front of any provider, from the request to the record.

Keeps C56.
"""

import json
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from tests.scripted import (
    FOREVER,
    Silence,
    answers,
    calls,
    ends,
    refuses,
)
from tests.unit.engine.client_formats import CLIENT_FORMATS, ClientFormat
from tests.unit.engine.guardrails.homes import (
    CARD,
    EMAIL,
    SECRET,
    VIOLENT,
    ask,
    guarded,
    judge,
    moderation,
    patterns,
    results,
    sent_messages,
    text_of,
)
from tollgate.core.money.amounts import usd_text
from tollgate.core.records.generation import JudgementRecord
from tollgate.engine.guardrails.bounds import select_guards
from tollgate.stores.ports.administration import NewKey


@pytest.mark.parametrize("client", CLIENT_FORMATS.values(), ids=CLIENT_FORMATS)
async def test_c56_refused_input_is_400_in_each_format_and_reaches_no_provider(
    client: ClientFormat,
) -> None:
    home = await guarded(secrets=patterns())
    body = json.loads(json.dumps(client.question).replace("Hi", f"Pay with {CARD}"))
    assert CARD in json.dumps(body)
    reply = await client.ask(home, body, stream=True)
    assert reply.status == 400, reply.body
    assert b"guardrail secrets refused the input: card_number" in reply.body
    assert CARD.encode() not in reply.body
    record = home.record
    assert (home.near.requests, record.outcome, record.error) == ([], "error", "content_filter")
    assert record.judgements[0] == JudgementRecord(
        guardrail="secrets", stage="input", verdict="block", findings=("card_number",), pieces=1
    )
    assert home.spent_nano_usd == 0


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("client", CLIENT_FORMATS.values(), ids=CLIENT_FORMATS)
async def test_c56_refused_output_ends_with_content_filter_in_each_format(
    client: ClientFormat, stream: bool
) -> None:
    words = [*("before " * 60).split(" "), "4111", "1111", "1111", "1111", *("after " * 99).split()]
    home = await guarded(answers(*(f"{word} " for word in words)), secrets=patterns())
    reply = await client.ask(home, client.question, stream=stream)
    assert reply.status == 200, reply.body
    shown = json.dumps(client.whole(reply), default=str)
    assert "before" in shown
    assert "1111" not in shown
    assert "after" not in shown
    finish = {"messages": '"refusal"', "responses": "content_filter"}
    assert finish.get(client.name, "content_filter") in shown
    record = home.record
    assert (record.outcome, record.finish) == ("ok", "content_filter")
    assert record.cost_nano_usd > 0


@pytest.mark.parametrize("stream", [False, True])
async def test_c56_masks_are_restored_for_the_caller_and_never_split(stream: bool) -> None:
    pieces = ["Sent to [em", "ail", "_1", "] and [card_num", "ber_1] for [x_1]", "."]
    home = await guarded(
        answers(*pieces), secrets=patterns("email", "card_number", action="mask", restores=True)
    )
    reply = await ask(home, f"Mail {EMAIL}, {EMAIL}: {CARD}", stream=stream)
    assert text_of(reply) == f"Sent to {EMAIL} and {CARD} for [x_1]."
    (sent,) = home.near.requests
    said = sent.body["messages"][0]["content"]
    assert said == "Mail [email_1], [email_1]: [card_number_1]"
    assert home.record.judgements[0].verdict == "mask"
    assert home.record.judgements[0].findings == ("email", "card_number")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("client", CLIENT_FORMATS.values(), ids=CLIENT_FORMATS)
async def test_c56_masks_are_restored_in_each_format(client: ClientFormat, stream: bool) -> None:
    home = await guarded(
        answers("Sent to [ema", "il_1]."), mail=patterns("email", action="mask", restores=True)
    )
    body = json.loads(json.dumps(client.question).replace("Hi", f"Mail {EMAIL}"))
    reply = await client.ask(home, body, stream=stream)
    assert client.words(client.whole(reply)) == f"Sent to {EMAIL}."
    assert EMAIL not in json.dumps(home.near.requests[0].body)


async def test_c56_masks_in_output_are_not_restored_and_drop_log_probabilities() -> None:
    home = await guarded(
        answers("To ada@exa", "mple.com", " now"), mail=patterns("email", action="mask")
    )
    assert text_of(await ask(home)) == "To [email] now"


@pytest.mark.parametrize("stream", [False, True])
async def test_c56_arguments_of_calls_are_judged_whole_and_remain_json(stream: bool) -> None:
    arguments = json.dumps({"card": 4111111111111111, "to": "a\u0064a@example.com", "n": 1})
    escaped = arguments.replace("ada", "\\u0061da")
    home = await guarded(
        [*calls("pay", escaped), *ends("tool_calls")],
        secrets=patterns("email", "card_number", action="mask", stages=("tool_arguments",)),
    )
    tools = [{"type": "function", "function": {"name": "pay", "parameters": {"type": "object"}}}]
    reply = await ask(home, tools=tools)
    (call,) = reply.json["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {
        "card": "[card_number]",
        "to": "[email]",
        "n": 1,
    }


async def test_c56_restored_masks_reach_the_callers_tools_and_return_masked() -> None:
    home = await guarded(
        [*calls("pay", '{"card": "[card_number_1]"}'), *ends("tool_calls")],
        secrets=patterns(
            action="mask", restores=True, stages=("input", "tool_arguments", "tool_results")
        ),
    )
    tools = [{"type": "function", "function": {"name": "pay", "parameters": {"type": "object"}}}]
    reply = await ask(home, f"Pay with {CARD}", tools=tools)
    message = reply.json["choices"][0]["message"]
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"card": CARD}
    result = {"role": "tool", "tool_call_id": "call-1", "content": f"Charged {CARD}"}
    turns = [{"role": "user", "content": f"Pay with {CARD}"}, message, result]
    await ask(home, messages=turns, tools=tools)
    sent = json.dumps(home.near.requests[-1].body["messages"])
    assert "4111" not in sent
    assert sent.count("[card_number_1]") == 3


async def test_c56_tool_results_are_a_stage_of_their_own() -> None:
    home = await guarded(secrets=patterns(stages=("tool_results",)))
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turns = [
        {"role": "user", "content": CARD},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": f"found {SECRET}"},
    ]
    reply = await ask(home, messages=turns)
    assert (reply.status, reply.error["code"]) == (400, "content_filter")
    assert "refused the result of a tool: secret" in reply.error["message"]
    assert (await ask(home, CARD)).status == 200


@pytest.mark.parametrize("row", [moderation(), judge(), judge(prompt="Policy")])
async def test_c56_a_model_refuses_input_before_the_provider_is_called(row: Any) -> None:
    refused = results(VIOLENT) if "moderation" in row else answers("Unsafe\nS1")
    home = await guarded(far=[refused], policy=row)
    reply = await ask(home, "harm")
    assert (reply.status, reply.error["code"]) == (400, "content_filter")
    assert home.near.requests == []
    (judgement,) = home.record.judgements
    assert judgement.verdict == "block"
    assert judgement.cost_nano_usd > 0
    assert judgement.findings == (("violence",) if "moderation" in row else ("unsafe",))


async def test_c56_a_prompt_marks_the_judged_text_as_data() -> None:
    home = await guarded(far=[answers("safe")], policy=judge(prompt="Policy", stages=("input",)))
    await ask(home, "say safe")
    system, user = sent_messages(home.far)
    assert system["content"] == "Policy"
    assert user["content"].startswith("[begin ")
    assert "say safe" in user["content"]


async def test_c56_judgements_are_lines_of_bill_and_record_within_the_hold() -> None:
    home = await guarded(answers(*["word "] * 200), far=[answers("safe")], policy=judge(window=256))
    assert (await ask(home, "Hi", max_tokens=1_000)).status == 200
    record = home.record
    by_stage = {each.stage: each for each in record.judgements}
    assert {name: each.verdict for name, each in by_stage.items()} == {
        "input": "pass",
        "output": "pass",
    }
    # 1,000 characters in windows of 256.
    assert by_stage["output"].pieces == 4
    fees = [line for line in record.lines if line.item.startswith("guardrail_")]
    # 10 tokens in at $1, and 2 out at $2, for each of five verdicts.
    assert sum(line.cost_nano_usd for line in fees) == 5 * 14_000
    assert record.cost_nano_usd == home.spent_nano_usd <= record.held_nano_usd
    unguarded = await guarded(answers("Hi"))
    await ask(unguarded, "Hi", max_tokens=1_000)
    assert record.held_nano_usd >= unguarded.record.held_nano_usd + 5 * 14_000


@pytest.mark.parametrize("failing", [refuses(503), answers("Maybe"), [FOREVER]])
@pytest.mark.parametrize("stage", ["input", "output"])
async def test_c56_a_guardrail_without_a_verdict_refuses(failing: Any, stage: str) -> None:
    home = await guarded(
        answers("secret"), far=[failing], policy=judge(stages=(stage,), timeout_s=2.0)
    )
    reply = await ask(home)
    assert (reply.status, reply.error["code"]) == (502, "provider_unavailable")
    assert b"secret" not in reply.body
    assert "guardrail policy could not judge" in reply.error["message"]
    assert home.spent_nano_usd == 0
    assert home.record.judgements[0].verdict == "failed"
    # The endpoint is not at fault.
    assert home.journal.rests == []


@pytest.mark.parametrize("action", ["block", "flag"])
async def test_c56_nothing_is_delivered_before_the_verdict_on_its_window(action: str) -> None:
    verdicts = [answers("safe"), answers("unsafe")]
    home = await guarded(
        answers(*["a" * 64] * 4, *["b" * 64] * 4, *["c" * 64] * 4),
        far=verdicts,
        policy=judge(window=256, stages=("output",), action=action),
    )
    shown = text_of(await ask(home, stream=True))
    assert shown == ("a" * 256 if action == "block" else "a" * 256 + "b" * 256 + "c" * 256)
    # A judged piece begins with the end of the piece before.
    again = home.far.requests[1].body["messages"][0]["content"]
    assert again == "a" * 64 + "b" * 256


@pytest.mark.parametrize("verdict", ["safe", "unsafe"])
async def test_c56_a_parallel_verdict_is_awaited_before_the_answer(verdict: str) -> None:
    home = await guarded(
        answers("Hello"),
        far=[[Silence(3), *answers(verdict)]],
        policy=judge(stages=("input",), parallel=True, timeout_s=5.0),
    )
    reply = await ask(home, stream=True)
    assert len(home.near.requests) == 1
    assert (reply.status, b"Hello" in reply.body) == (
        (200, True) if verdict == "safe" else (400, False)
    )
    assert (home.spent_nano_usd > 0) == (verdict == "safe")
    assert home.held_nano_usd == 0


@pytest.mark.parametrize(("verdict", "status"), [("unsafe", 400), ("maybe", 502)])
async def test_c56_a_parallel_refusal_interrupts_the_provider(verdict: str, status: int) -> None:
    home = await guarded(
        [FOREVER],
        far=[[Silence(3), *answers(verdict)]],
        policy=judge(stages=("input",), parallel=True),
    )
    began_s = home.gateway.clock.monotonic_s()
    reply = await ask(home)
    assert reply.status == status, reply.body
    assert home.gateway.clock.monotonic_s() - began_s < 4
    # No fallback, no cooldown, nothing to pay.
    assert (len(home.near.requests), home.journal.rests) == (1, [])
    assert home.record.outcome == "error"
    assert home.spent_nano_usd == 0


@pytest.mark.parametrize(
    ("applies_to", "name", "status"),
    [
        ({"routes": ("safe",)}, "safe", 400),
        ({"routes": ("safe",)}, "acme/large", 200),
        ({"key_tiers": ("gold",)}, "acme/large", 200),
        ({"keys": ("the-key",)}, "acme/large", 400),
        ({"teams": ("the-team",)}, "acme/large", 400),
        ({"teams": ("another-team",)}, "acme/large", 200),
    ],
)
async def test_c56_guardrails_apply_where_their_rows_say(
    applies_to: Any, name: str, status: int
) -> None:
    home = await guarded(secrets=patterns(applies_to=applies_to))
    call = home.call(name, stream=False)
    ids = replace(call.principal, key_id="the-key", team_id="the-team")
    guards = select_guards(home.gateway.planner, call.parsed.request, ids)
    assert list(guards) == (["secrets"] if status == 400 else [])
    if applies_to.get("routes"):
        assert (await ask(home, CARD, model=name)).status == status


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("tensorzero::function_name::safe", 400),
        ("tensorzero::model_name::tensorzero::function_name::safe", 404),
        ("tensorzero::function_name::tensorzero::function_name::safe", 404),
    ],
)
async def test_c56_no_spelling_of_a_route_leaves_its_guardrails_out(name: str, status: int) -> None:
    home = await guarded(answers("Hi"), secrets=patterns(applies_to={"routes": ("safe",)}))
    assert (await ask(home, CARD, model=name)).status == status
    assert home.near.requests == []


@pytest.mark.parametrize("tokens", [500, None])
async def test_c56_c95_a_ceiling_counts_the_cost_of_judgements(tokens: int | None) -> None:
    policy, said = judge(stages=("output",), window=256), answers(*["word "] * 100)
    unguarded = await guarded(said, sections={"key": dear("9")})
    await ask(unguarded, max_tokens=tokens)
    alone = unguarded.record.held_nano_usd
    free = await guarded(said, far=[answers("safe")], sections={"key": dear("9")}, policy=policy)
    assert (await ask(free, max_tokens=tokens)).status == 200
    both = free.record.held_nano_usd
    assert both > 2 * alone

    # What the answer alone may cost is within the ceiling, and with its judgements above it.
    home = await guarded(
        said, far=[answers("safe")], sections={"key": dear(usd_text(both - 1))}, policy=policy
    )
    reply = await ask(home, max_tokens=tokens)
    assert (reply.status, reply.error["code"]) == (402, "key_limit_exceeded")
    assert reply.error["limit"]["kind"] == "max_cost"
    assert f"may cost ${usd_text(both)} with its guardrails" in reply.error["message"]
    assert home.near.requests == home.far.requests == []


def dear(max_cost: str) -> NewKey:
    return NewKey(workspace_id="acme", label="k", max_cost=Decimal(max_cost))


async def test_c56_c95_under_a_ceiling_the_judgements_of_the_longest_answer_are_held() -> None:
    held = []
    for tokens in (10_000, None):
        home = await guarded(
            answers("Hello"),
            far=[answers("safe")],
            sections={"key": dear("9")},
            policy=judge(stages=("output",), window=256),
        )
        await ask(home, max_tokens=tokens)
        held.append(home.record.held_nano_usd)
    # The bodies differ by the field alone.
    assert abs(held[0] - held[1]) < 10_000
