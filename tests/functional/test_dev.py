"""`tollgate dev`: starts, serves, keeps its state, and leaves nothing behind.

Keeps C7, C33, C41, C44, C50, C66, C80, C81.
"""

import json
import socket
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Timer
from time import monotonic, sleep
from urllib.request import Request, urlopen

import httpx2
import openai
import pytest

from tests.local_server import ROOT, TOLLGATE, LocalServer, environment, local_server
from tollgate.stores.records.activity import CLOSES_AFTER_S

HELLO = [{"role": "user", "content": "Hello from Tollgate"}]
PATIENCE_S = 20.0
ONE_MODEL = """\
version: 1
providers:
  simulator: {{ codec: {codec}, transport: simulator }}
models:
  acme/{name}:
    name: Only
    context: 1000
    max_output: 100
    endpoints:
      - provider: simulator
        upstream: echo
        price: {{ input: 1.00, output: 2.00, source: made up, checked: 2026-11-21 }}
"""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dev")


@pytest.fixture(scope="module")
def server(state: Path) -> Iterator[LocalServer]:
    with local_server(state) as started:
        yield started


@pytest.fixture
def client(server: LocalServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.base_url, api_key=server.key, max_retries=0) as started:
        yield started


def get(url: str, key: str) -> dict[str, object]:
    with urlopen(Request(url, headers={"authorization": f"Bearer {key}"})) as reply:
        content: dict[str, object] = json.load(reply, parse_float=Decimal)
        return content


def test_c80_a_websocket_is_refused_so_that_codex_goes_over_to_http(server: LocalServer) -> None:
    headers = {
        "connection": "upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        "authorization": f"Bearer {server.key}",
        "openai-beta": "responses_websockets=2026-02-06",
    }
    reply = httpx2.get(f"{server.base_url}/responses", headers=headers)
    assert (reply.status_code, reply.json()["error"]["code"]) == (426, "websocket_not_served")


def test_c7_c81_the_sdk_completes_prompts_streamed_and_whole(
    server: LocalServer, client: openai.OpenAI
) -> None:
    asked = {"prompt": ["One two", "Three"], "suffix": "the end", "echo": True}
    whole = client.completions.create(model="test/complete", **asked)  # type: ignore[call-overload]
    texts = ["One twoOne two", "ThreeThree"]
    assert [choice.text for choice in whole.choices] == texts
    streamed = ["", ""]
    chunks = client.completions.create(model="test/complete", stream=True, **asked)  # type: ignore[call-overload]
    for chunk in chunks:
        for choice in chunk.choices:
            streamed[choice.index] += choice.text
    assert streamed == texts
    record = get(f"{server.base_url}/generation?id={whole.id}", server.key)["data"]
    assert isinstance(record, dict)
    assert record["ingress_format"] == "completions"
    with pytest.raises(openai.BadRequestError, match="suffix"):
        client.completions.create(model="test/echo", prompt="One", suffix="the end")


# First of all: an endpoint that has failed three times, as others here let it, rests.
def test_c50_a_route_goes_on_to_the_next_model(client: openai.OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(model="test/fallback", messages=HELLO)
    assert raw.parse().model == "test/echo"
    assert raw.headers["x-fallback-from"] == "test/echo:529"
    assert raw.headers["x-fallback-depth"] == "1"


def test_c7_the_openai_sdk_streams_with_base_url_and_key_changed(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(model="test/echo", messages=HELLO, stream=True)
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "Hello from Tollgate"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None


def test_c25_a_reply_has_the_name_of_its_provider_streamed_and_whole(
    client: openai.OpenAI,
) -> None:
    whole = client.chat.completions.create(model="test/echo", messages=HELLO)
    chunks = list(client.chat.completions.create(model="test/echo", messages=HELLO, stream=True))
    assert {getattr(told, "provider", None) for told in (whole, *chunks)} == {"Simulator"}


def test_c3_every_name_that_is_listed_is_shown_and_dated(client: openai.OpenAI) -> None:
    listed = {model.id: model for model in client.models.list()}
    for name in ("smart", "default", "test/echo", "test/fallback"):
        assert client.models.retrieve(name) == listed[name]
        assert listed[name].created > 1_600_000_000


def test_c66_the_record_says_what_the_usage_frame_said(
    server: LocalServer, client: openai.OpenAI
) -> None:
    reply = client.chat.completions.with_raw_response.create(model="test/echo", messages=HELLO)
    told = json.loads(reply.text, parse_float=Decimal)
    record = get(f"{server.base_url}/generation?id={told['id']}", server.key)["data"]
    assert isinstance(record, dict)
    assert record["total_cost"] == told["usage"]["cost"] > 0
    assert record["status"] == "ok"


def test_c11_c70_a_file_is_sent_to_its_address_and_named_in_a_request(
    client: openai.OpenAI,
) -> None:
    content = b"%PDF-1.7\n" + bytes(3_000_000)
    announced = client.post(
        "/files/presigned",
        cast_to=httpx2.Response,
        body={"filename": "Q3.pdf", "purpose": "user_data", "bytes": len(content)},
    ).json()
    page = {"origin": "https://page.example", "access-control-request-method": "PUT"}
    allowed = httpx2.options(announced["url"], headers=page)
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, "*")
    sent = httpx2.put(announced["url"], headers=announced["headers"], content=content)
    assert sent.status_code == 200, sent.text
    forged = f"{announced['url'][:-1]}x"
    assert httpx2.put(forged, headers=announced["headers"], content=content).status_code == 403
    answer = client.chat.completions.create(
        model="test/read",
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Read"},
                    {"type": "file", "file": {"file_id": announced["id"]}},
                ],
            }
        ],
    )
    assert answer.choices[0].message.content == "Read [Q3.pdf]"
    assert client.files.content(announced["id"]).content == content


def test_a_tool_call_of_the_simulator_reaches_the_sdk(client: openai.OpenAI) -> None:
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    reply = client.chat.completions.create(model="test/tools", messages=HELLO, tools=[tool])
    calls = reply.choices[0].message.tool_calls
    assert reply.choices[0].finish_reason == "tool_calls"
    assert calls is not None
    assert [call.function.name for call in calls if call.type == "function"] == ["weather"]


@pytest.mark.parametrize(
    ("model", "status", "code"),
    [
        ("test/echo:429", 429, "provider_rate_limit"),
        ("test/echo:529", 529, "provider_overloaded"),
    ],
)
def test_c41_a_fault_asked_for_in_the_name_has_its_status(
    client: openai.OpenAI, model: str, status: int, code: str
) -> None:
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    with pytest.raises(openai.APIStatusError) as refused:
        client.chat.completions.create(model=model, messages=HELLO, tools=[tool])
    assert (refused.value.status_code, refused.value.code) == (status, code)
    assert int(refused.value.response.headers["retry-after"]) >= 1


def test_c33_a_provider_that_drops_after_five_chunks_is_an_error_in_the_stream(
    client: openai.OpenAI,
) -> None:
    content = " ".join(f"word{number}" for number in range(20))
    stream = client.chat.completions.create(
        model="test/echo:drop-after-5", messages=[{"role": "user", "content": content}], stream=True
    )
    with pytest.raises(openai.APIError) as broken:
        list(stream)
    assert broken.value.code == "provider_unavailable"


def test_c44_a_real_model_without_its_key_names_the_variable_to_set(
    client: openai.OpenAI,
) -> None:
    models = [model.id for model in client.models.list() if model.id.startswith("openai/")]
    with pytest.raises(openai.APIStatusError) as refused:
        client.chat.completions.create(model=models[0], messages=HELLO)
    assert (refused.value.status_code, refused.value.code) == (502, "provider_auth")
    assert "set environment variable OPENAI_API_KEY." in refused.value.message


def test_c44_a_route_without_any_key_names_all_that_would_do(client: openai.OpenAI) -> None:
    with pytest.raises(openai.APIStatusError) as refused:
        client.chat.completions.create(model="smart", messages=HELLO)
    assert (refused.value.status_code, refused.value.code) == (502, "provider_auth")
    assert "endpoints of smart has a usable key here: set one of " in refused.value.message
    assert "ANTHROPIC_API_KEY" in refused.value.message


@pytest.mark.nightly
def test_a_second_start_keeps_keys_and_money(tmp_path: Path) -> None:
    with local_server(tmp_path) as first:
        with openai.OpenAI(base_url=first.base_url, api_key=first.key) as client:
            client.chat.completions.create(model="test/echo", messages=HELLO)
        before = get(f"{first.base_url}/credits", first.management_key)
        first.interrupt()
    with local_server(tmp_path) as second:
        assert (second.key, second.management_key) == (first.key, first.management_key)
        assert get(f"{second.base_url}/credits", second.management_key) == before


@pytest.mark.nightly
def test_it_does_what_a_stack_does_on_a_schedule(tmp_path: Path) -> None:
    """Credit with a date ends, and days that are over are closed."""
    # A day is closed an hour after its end.
    closed = f"{datetime.now(UTC) - timedelta(days=1, seconds=CLOSES_AFTER_S):%Y-%m-%d}"
    with local_server(tmp_path) as first:
        ends = datetime.now(UTC) + timedelta(seconds=3)
        grant = {"id": "plan", "amount": 5, "expires_at": f"{ends:%Y-%m-%dT%H:%M:%SZ}"}
        headers = {"authorization": f"Bearer {first.management_key}"}
        httpx2.post(
            f"{first.base_url}/credits/grants", json=grant, headers=headers
        ).raise_for_status()
        first.interrupt()
    sleep(max(0.0, (ends - datetime.now(UTC)).total_seconds()))
    with local_server(tmp_path) as second:
        for path, expected in (
            ("/credits/ledger", "expiry:plan"),
            (f"/activity?since={closed}T00:00:00Z", f"'closed_days': ['{closed}'"),
        ):
            give_up_s = monotonic() + PATIENCE_S
            while expected not in str(get(second.base_url + path, second.management_key)):
                assert monotonic() < give_up_s, path


def test_ctrl_c_in_mid_stream_settles_what_was_delivered(tmp_path: Path) -> None:
    with (
        local_server(tmp_path) as first,
        openai.OpenAI(base_url=first.base_url, api_key=first.key) as client,
    ):
        stream = client.chat.completions.create(
            model="test/slow",
            messages=[{"role": "user", "content": "word " * 500}],
            stream=True,
        )
        next(chunk for chunk in stream if chunk.choices and chunk.choices[0].delta.content)
        output = first.interrupt()
        stream.close()
    assert "Traceback" not in output
    with local_server(tmp_path) as second:
        money = get(f"{second.base_url}/credits", second.management_key)["data"]
    assert isinstance(money, dict)
    assert money["held"] == 0
    assert money["total_usage"] > 0


def test_what_is_saved_is_served_and_a_broken_file_is_told_while_the_last_good_one_serves(
    tmp_path: Path,
) -> None:
    routing = tmp_path / "routing.yaml"
    routing.write_text(ONE_MODEL.format(name="first", codec="openai_chat"))
    with (
        local_server(tmp_path, routing=routing) as started,
        openai.OpenAI(base_url=started.base_url, api_key=started.key, max_retries=0) as client,
    ):
        assert '"model": "acme/first"' in printed_until(started, "Ctrl-C stops it.")

        routing.write_text(ONE_MODEL.format(name="second", codec="openia_chat"))
        told = printed_until(started, "stays in use.")
        assert 'routing.yaml:3:23: error[R004] codec must be "openai_chat"' in told
        client.chat.completions.create(model="acme/first", messages=HELLO)

        routing.write_text(ONE_MODEL.format(name="second", codec="openai_chat"))
        printed_until(started, "was reloaded: ")
        client.chat.completions.create(model="acme/second", messages=HELLO)
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="acme/first", messages=HELLO)


def printed_until(server: LocalServer, words: str) -> str:
    """What the server prints up to the line with these words."""
    watchdog = Timer(PATIENCE_S, server.process.kill)
    watchdog.start()
    try:
        lines: list[str] = []
        for line in server.process.stdout or ():
            lines.append(line)
            if words in line:
                return "".join(lines)
        raise AssertionError(f"it never said {words!r}:\n{''.join(lines)}")
    finally:
        watchdog.cancel()


def test_a_taken_port_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = subprocess.run(
            [TOLLGATE, "dev", "--port", str(port), "--state", str(tmp_path)],
            cwd=ROOT,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"Error: Port {port} is taken")
    assert f"make run DEV='--port {port + 1}'" in ended.stderr


@pytest.mark.usefixtures("server")
def test_a_second_server_on_one_state_is_refused_and_the_first_keeps_its_keys(state: Path) -> None:
    kept = (state / "keys.json").read_text()
    ended = subprocess.run(
        [TOLLGATE, "dev", "--port", "0", "--state", str(state)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ended.returncode == 1
    assert "--state DIRECTORY" in ended.stderr
    assert (state / "keys.json").read_text() == kept


def test_a_broken_routing_file_is_refused_with_its_place(tmp_path: Path) -> None:
    broken = tmp_path / "routing.yaml"
    broken.write_text("version: 1\nprovders: {}\n")
    ended = subprocess.run(
        [TOLLGATE, "dev", "--port", "0", "--state", str(tmp_path), "--routing", str(broken)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "routing.yaml:2:1: error[R003]" in ended.stderr
    assert "providers" in ended.stderr
