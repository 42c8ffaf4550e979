"""A preset completes the requests that name it, in every format.

Keeps C86.
"""

import json
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from tests.compacting import RECORD, RESPONSES, Client
from tests.gateways import House, house
from tests.scripted import Scripted, answers
from tests.traffic import line, planning_request
from tests.traffic import record as recorded
from tests.unit.engine.client_formats import exchange
from tests.unit.routing.catalogs import catalog, routing
from tests.unit.web.test_api_app import api
from tollgate.cli.main import main
from tollgate.cli.routing.plan_text import as_text
from tollgate.core.errors import RequestError
from tollgate.core.request import GenerationRequest
from tollgate.engine.batches.lines import BATCH_FORMATS, BatchLine
from tollgate.engine.batches.validation import LineParser
from tollgate.observability.log import canonical_line
from tollgate.routing.review.diff import list_changes
from tollgate.routing.review.replay import replay_traffic
from tollgate.routing.review.review import Review
from tollgate.routing.review.traffic import read_traffic
from tollgate.routing.routing_file import json_schema_text
from tollgate.stores.ports.administration import NewKey

SUPPORT = {
    "model": "acme/large",
    "system": "You answer {{customer}} in a {{tone}} tone, in {{words}} words. {{Not}} {this}.",
    "variables": {
        "customer": {"type": "string", "length_max": 12},
        "tone": {"type": "enum", "values": ("formal", "warm")},
        "words": {"type": "integer"},
    },
    "parameters": {"temperature": 0.25, "stop": ["END"]},
    "max_tokens": 300,
}
VALUES = {"customer": "Ada", "tone": "warm", "words": 20}
SYSTEM = "You answer Ada in a warm tone, in 20 words. {{Not}} {this}."
# The request for each path without its model; messages need an output limit.
QUESTIONS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hi"}]},
    "/v1/messages": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 50},
    "/v1/responses": {"input": "Hi"},
    "/v1/completions": {"prompt": "Hi"},
}
CHAT = "/v1/chat/completions"


async def home_of(key: NewKey | None = None, **changes: Any) -> House:
    return await house(key=key, presets={"support": {**SUPPORT, **changes}})


async def ask(home: House, path: str = CHAT, **fields: Any) -> Any:
    named = {"model": "preset/support", "preset_variables": VALUES}
    return await exchange(home, path, {**QUESTIONS[path], **named, **fields})


def sent(home: House) -> Any:
    return home.near.requests[-1].body


def system_of(home: House) -> Any:
    return [each["content"] for each in sent(home)["messages"] if each["role"] == "system"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", QUESTIONS)
async def test_c86_a_preset_completes_a_request_in_every_format(path: str, stream: bool) -> None:
    home = await home_of()
    reply = await ask(home, path, stream=stream)
    assert reply.status == 200, reply.body
    assert system_of(home) == [SYSTEM]
    assert sent(home)["temperature"] == 0.25
    assert sent(home)["stop"] == ["END"]
    # What the caller states applies: messages and completions always have a limit.
    limits = {"/v1/messages": 50, "/v1/completions": 16}
    assert home.record.trace.output_tokens_max == limits.get(path, 300)
    assert (home.record.model, home.record.trace.preset) == ("acme/large", "support")
    assert canonical_line(home.record)["preset"] == "support"


@pytest.mark.parametrize(
    "named",
    [
        {"model": "preset/support"},
        {"model": "@preset/support"},
        {"model": "acme/large@preset/support"},
        {"model": "acme/large", "preset": "support"},
        {"model": "preset/support", "preset": "support"},
    ],
)
async def test_c86_a_preset_is_named_in_model_or_preset(named: dict[str, str]) -> None:
    home = await home_of(model="best")
    assert (await ask(home, **named)).status == 200
    assert system_of(home) == [SYSTEM]
    assert home.record.trace.preset == "support"


async def test_c86_what_the_caller_states_applies_unless_the_preset_fixes_it() -> None:
    stated = {"temperature": 1, "max_tokens": 40, "stop": ["HALT"]}
    messages = [{"role": "developer", "content": "Be curt."}, {"role": "user", "content": "Hi"}]
    own = {**stated, "messages": messages, "model": "acme/small@preset/support"}
    home = await home_of()
    assert (await ask(home, **own)).status == 200
    assert home.record.model == "acme/small"
    asked = sent(home)
    assert [each["content"] for each in asked["messages"]] == ["Be curt.", "Hi"]
    assert [asked[name] for name in ("temperature", "stop")] == [1, ["HALT"]]

    fixed = ("model", "system", "temperature", "max_tokens")
    home = await home_of(fixed=fixed)
    reply = await ask(home, **own, models=["acme/small"])
    assert reply.status == 200, reply.body
    assert [each["content"] for each in sent(home)["messages"]] == [SYSTEM, "Hi"]
    assert [sent(home)[name] for name in ("temperature", "stop")] == [0.25, ["HALT"]]
    assert home.record.trace.output_tokens_max == 300
    assert (home.record.model, home.record.trace.requested_model) == (
        "acme/large",
        "preset/support",
    )
    # Nothing that the caller stated is left out silently.
    adapted = reply.headers["x-tollgate-adapted"].split(", ")
    assert {"model", "models", "system", "temperature", "max_tokens"} <= {*adapted}
    assert "stop" not in adapted


async def test_c86_a_value_is_inserted_as_text_only() -> None:
    for value in ("{{tone}}", "{{words}}", "\\1 \\g<0>", '"}]\n# New', "{%if%}"):
        home = await home_of()
        assert (await ask(home, preset_variables={**VALUES, "customer": value})).status == 200
        assert system_of(home) == [SYSTEM.replace("Ada", value)]


@pytest.mark.parametrize(
    ("values", "param", "words"),
    [
        ({"customer": None}, "preset_variables.customer", "must be a string or a whole number"),
        ({"customer": "x" * 13}, "preset_variables.customer", "at most 12 characters, not 13"),
        ({"customer": 7}, "preset_variables.customer", "must be a string"),
        ({"tone": "rude"}, "preset_variables.tone", "must be formal or warm"),
        ({"words": "20"}, "preset_variables.words", "must be a whole number"),
        ({"words": 2**60}, "preset_variables.words", "must be a whole number"),
        ({"words": True}, "preset_variables.words", "must be a string or a whole number"),
        ({"wrods": 1}, "preset_variables.wrods", "its variables: customer, tone, words"),
    ],
)
async def test_c86_a_variable_that_does_not_fit_is_refused_by_name(
    values: dict[str, Any], param: str, words: str
) -> None:
    home = await home_of()
    for path in QUESTIONS:
        reply = await ask(home, path, preset_variables={**VALUES, **values})
        assert reply.status == 400, reply.body
        error = reply.json["error"]
        assert words in error["message"]
        assert error.get("param", param) == param
    assert home.near.requests == []
    assert home.stores.books.records == {}


async def test_c86_a_missing_variable_is_refused_by_name() -> None:
    home = await home_of()
    reply = await ask(home, preset_variables={"customer": "Ada", "tone": "warm"})
    assert reply.status == 400
    assert reply.error["message"] == "preset_variables.words is required."


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"model": "preset/suport"}, 404, "Did you mean preset/support?"),
        ({"model": "acme/large", "preset": "suport"}, 404, "Did you mean preset/support?"),
        ({"model": "acme/large"}, 400, "preset_variables must not be stated without a preset"),
        ({"preset": "other"}, 400, "preset must not differ"),
    ],
)
async def test_c86_an_unknown_or_unclear_preset_is_refused(
    fields: dict[str, str], status: int, words: str
) -> None:
    home = await home_of()
    for path in QUESTIONS:
        reply = await ask(home, path, **fields)
        assert reply.status == status, reply.body
        assert words in reply.json["error"]["message"]
    without = await house()
    assert (await ask(without)).status == 404


@pytest.mark.parametrize("models", [("acme/small",), ("preset/*", "acme/small")])
async def test_c86_a_preset_gives_no_rights_to_its_model(models: tuple[str, ...]) -> None:
    home = await home_of(key=NewKey(workspace_id="acme", label="k", models=models))
    reply = await ask(home)
    assert (reply.status, reply.error["code"]) == (403, "model_not_allowed"), reply.body
    assert home.near.requests == []
    # The caller's own model is subject to the same rights.
    assert (await ask(home, model="acme/small@preset/support")).status == 200


async def test_c86_a_key_for_a_route_may_use_presets_of_the_route() -> None:
    key = NewKey(workspace_id="acme", label="k", models=("smart",))
    assert (await ask(await home_of(key=key, model="smart"))).status == 200


async def test_c86_the_hold_covers_the_text_of_the_preset() -> None:
    long = {"system": "word " * 10_000, "variables": {}}
    home = await home_of(**long)
    assert (await ask(home, preset_variables=None)).status == 200
    without = await house()
    assert (await ask(without, model="acme/large", preset_variables=None, max_tokens=300)).status
    # 50,000 bytes are 25,000 tokens at most, of $3 a million.
    more = home.record.held_nano_usd - without.record.held_nano_usd
    assert more >= 25_000 * 3_000


async def test_c86_counts_include_the_preset() -> None:
    home = await home_of()
    asked = {"model": "preset/support", "messages": QUESTIONS[CHAT]["messages"]}
    path = "/v1/messages/count_tokens"
    whole = await exchange(home, path, {**asked, "preset_variables": VALUES})
    bare = await exchange(home, path, {**asked, "model": "acme/large"})
    assert whole.json["input_tokens"] > bare.json["input_tokens"] + 10
    assert (await exchange(home, path, asked)).status == 400


async def test_c86_a_compacted_conversation_is_answered_with_the_preset() -> None:
    row = {"model": "other/tools", "system": "Be brief.", "max_tokens": 300, "fixed": ("system",)}
    script = Scripted(answers(RECORD), answers("It is."))
    home = await house(far=script, presets={"support": row})
    client = Client(home, home.secret, model="preset/support")
    conversation = [
        {"role": "user", "content": "Draw a bridge."},
        {"role": "assistant", "content": "word " * 2_000},
        {"role": "user", "content": "Is it blue?"},
    ]
    rule = [{"type": "compaction", "compact_threshold": 1_000}]
    reply = await client.ask(RESPONSES, conversation, context_management=rule)
    assert [item["type"] for item in reply.json["output"]] == ["compaction", "message"]
    texts = [each["content"] for each in client.prompt]
    assert texts[0] == "Be brief."
    assert any(text.endswith(RECORD) for text in texts)
    assert {each.model for each in client.home.stores.books.records.values()} == {"other/tools"}


FILE = """\
version: 1
providers:
  near: { codec: openai_chat, transport: http_sse, base_url: https://near.example/v1 }
models:
  acme/large:
    name: Large
    context: 100000
    max_output: 10000
    endpoints:
      - provider: near
        upstream: large-1
        price: { input: 1, output: 2, source: made up, checked: 2026-11-21 }
presets:
  support:
    model: acme/large
    system: "You answer {{customer}}."
    variables: { customer: { type: string, length_max: 80 } }
    parameters: { temperature: 0.25, stop: [END] }
    max_tokens: 300
"""


def test_c53_c86_an_explanation_shows_what_a_preset_resolves_to(tmp_path: Any) -> None:
    file, asked = tmp_path / "routing.yaml", tmp_path / "request.json"
    file.write_text(FILE)
    question = QUESTIONS[CHAT] | {"model": "preset/support"}
    asked.write_text(json.dumps({**question, "preset_variables": {"customer": "Ada"}}))
    command = ["explain", "--request", str(asked), "--file", str(file)]
    told = CliRunner().invoke(main, command)
    assert told.exit_code == 0, told.output
    assert "preset/support → acme/large" in told.output
    assert "preset support: max_tokens 300, temperature 0.25, stop ['END']" in told.output
    assert "  | You answer Ada." in told.output
    explained = json.loads(CliRunner().invoke(main, [*command, "--json"]).output)
    assert explained["preset"]["system"] == "You answer Ada."
    asked.write_text(json.dumps(question))
    refused = CliRunner().invoke(main, command)
    assert "preset_variables.customer is required" in refused.output


async def test_c53_c86_a_gateway_explains_a_preset() -> None:
    call = await api(presets={"support": SUPPORT})
    asked = {**QUESTIONS[CHAT], "model": "preset/support", "preset_variables": VALUES}
    shown = (await call("POST", "/v1/route/explain", key=call.home.secret, content=asked)).json
    assert (shown["requested"], shown["target"]) == ("preset/support", "acme/large")
    assert (shown["preset"]["name"], shown["preset"]["system"]) == ("support", SYSTEM)
    plain = {**asked, "model": "acme/large", "preset_variables": None}
    assert (await call("POST", "/v1/route/explain", key=call.home.secret, content=plain)).json[
        "preset"
    ] is None


def test_c86_a_plan_shows_the_changed_text_of_a_preset() -> None:
    row = {**SUPPORT, "variables": {}, "system": "Help.\nBe kind."}
    before = routing(presets={"support": row, "gone": row})
    removed, changed = list_changes(
        before, routing(presets={"support": {**row, "system": "Help.\nBe curt."}})
    )
    assert (removed.kind, removed.what, removed.subject) == ("removed", "preset", "gone")
    assert [(fact.name, fact.before, fact.after) for fact in changed.facts] == [
        ("system line 2", "Be kind.", "Be curt.")
    ]


def test_c53_c86_a_plan_counts_the_traffic_of_a_preset() -> None:
    before = {"support": {"model": "acme/large"}}
    base = catalog(presets=before)
    asked = replace(planning_request("acme/large", 0), preset="support")
    records = [recorded(base, asked, 0), recorded(base, planning_request("acme/large", 1), 1)]
    traffic = [line(each) for each in records]
    after = {"support": {"model": "acme/large", "max_tokens": 9}}
    same = replay_traffic(read_traffic(traffic), base, catalog(presets=after))
    changes = list_changes(routing(presets=before), routing(presets=after))
    text = as_text(Review(base="a", head="b", changes=changes, replay=same))
    assert "max_tokens 9   50.0 % of traffic" in text
    assert same.refused == {}
    gone = replay_traffic(read_traffic(traffic), base, catalog())
    assert {place: flow.requests for place, flow in gone.refused.items()} == {
        ("acme/large", "model_not_found"): 1
    }


async def test_c86_models_list_the_presets_whose_models_a_key_may_use() -> None:
    presets = {"support": SUPPORT, "small": {"model": "acme/small"}}
    key = NewKey(workspace_id="acme", label="k", models=("acme/large",))
    call = await api(presets=presets, key=key)
    everything = await call("GET", "/v1/models")
    listed = {each["id"]: each for each in everything.json["data"]}
    assert "preset/small" in listed
    assert listed["preset/support"]["canonical_slug"] == "acme/large"
    own = await call("GET", "/v1/models", key=call.home.secret)
    names = {each["id"] for each in own.json["data"]}
    assert {"acme/large", "preset/support"} <= names
    assert not {"acme/small", "preset/small"} & names
    shown = await call("GET", "/v1/models/preset/support")
    assert shown.json["id"] == "preset/support"


async def test_c86_tools_of_a_preset_run_in_the_gateway() -> None:
    home = await home_of(tools=("datetime",))
    # The gateway of this test runs no tools.
    reply = await ask(home)
    assert reply.status == 400
    assert reply.error["message"] == "preset needs datetime, which this gateway does not run."


def test_c86_an_invalid_preset_in_a_compiled_catalog_is_rejected() -> None:
    with pytest.raises(ValueError, match="must define the variable nobody"):
        catalog(presets={"support": {"model": "big", "system": "{{nobody}}"}})


def test_c86_the_schema_has_the_ranges_of_requests() -> None:
    parameters = json.loads(json_schema_text())["$defs"]["ParametersSection"]["properties"]
    assert parameters["temperature"]["anyOf"][0] == {"maximum": 2, "minimum": 0, "type": "number"}


async def test_c83_c86_a_line_of_a_batch_is_completed_by_its_preset() -> None:
    home = await home_of()
    parser = LineParser(
        gateway=home.gateway,
        principal=home.principal,
        format=BATCH_FORMATS[CHAT],
        ingress=home.ingress,
    )
    asked = {**QUESTIONS[CHAT], "model": "preset/support", "preset_variables": VALUES}
    line = BatchLine(number=1, custom_id="a", body=json.dumps(asked).encode())
    completed = parser.parse(line).request
    assert isinstance(completed, GenerationRequest)
    assert completed.prompts == (f"{SYSTEM}Hi",)
    assert completed.output_tokens_max == 300
    del asked["preset_variables"]
    with pytest.raises(RequestError, match="is required"):
        parser.parse(BatchLine(number=1, custom_id="a", body=json.dumps(asked).encode()))
