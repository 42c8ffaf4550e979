"""Models of servers on this machine, as `tollgate dev` finds them over sockets."""

from collections.abc import Mapping
from contextlib import ExitStack
from datetime import date
from decimal import Decimal
from pathlib import Path

import openai
import pytest
import yaml
from msgspec.structs import replace

from tests.functional.local_inference import (
    ANSWER,
    LLAMA_CPP,
    LM_STUDIO,
    VLLM,
    inference,
    replies_of_ollama,
)
from tests.local_server import ROOT, local_server
from tollgate.cli.server.local_models import LocalModels
from tollgate.cli.server.local_servers import SERVERS, LocalServer
from tollgate.providers.ports.dialect import Dialect
from tollgate.routing.file.compile import compile_routing
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.routing_file import Routing

TODAY = date(2026, 11, 27)
BY_SLUG = {server.slug: server for server in SERVERS}
EMPTY = Routing(version=1)
Facts = tuple[int, tuple[str, ...], tuple[str, ...]]


def found(
    slug: str, port: int, routing: Routing = EMPTY, own_port: int = 0
) -> Mapping[str, object]:
    """The routing's models by slug, with one server of a kind on a port."""
    servers = [replace(BY_SLUG[slug], port=port)]
    return LocalModels(own_port, TODAY, servers).added_to(routing).models


@pytest.mark.parametrize(
    ("slug", "replies", "expected"),
    [
        (
            "ollama",
            replies_of_ollama(),
            {
                "local/gpt-oss:20b": (
                    131072,
                    ("structured_output", "tools", "reasoning"),
                    ("text",),
                ),
                "local/llama-3.2-3b-instruct-gguf:q4_k_m": (
                    4096,
                    ("structured_output",),
                    ("text",),
                ),
                "local/gemma3": (8192, ("structured_output",), ("text", "image")),
            },
        ),
        (
            "lmstudio",
            {"/api/v0/models": {"object": "list", "data": LM_STUDIO}},
            {
                "local/qwen3-4b": (32768, ("structured_output", "tools"), ("text",)),
                "local/qwen2-vl-7b-instruct": (
                    16384,
                    ("structured_output", "tools"),
                    ("text", "image"),
                ),
            },
        ),
        (
            "llamacpp",
            {"/v1/models": {"object": "list", "data": LLAMA_CPP}},
            {
                "local/meta-llama-3.1-8b-instruct-q4_k_m": (
                    8192,
                    ("structured_output", "tools"),
                    ("text", "image"),
                )
            },
        ),
        (
            "vllm",
            {"/v1/models": {"object": "list", "data": VLLM}},
            {"local/qwen3-8b": (40960, ("structured_output", "tools"), ("text", "image"))},
        ),
    ],
)
def test_the_models_of_each_server_are_served_as_it_describes_them(
    slug: str, replies: Mapping[str, object], expected: Mapping[str, Facts]
) -> None:
    with inference(replies) as server:
        servers = [replace(BY_SLUG[slug], port=server.server_port)]
        routing = LocalModels(0, TODAY, servers).added_to(EMPTY)
    catalog = Catalog.from_json(compile_routing(routing).content)
    assert {
        slug: (model.context, model.supports, model.input) for slug, model in routing.models.items()
    } == expected
    assert {*catalog.models} == {*expected}
    (row,) = catalog.providers.values()
    assert row.base_url == f"http://127.0.0.1:{server.server_port}/v1"
    prices = [model.endpoints[0].price for model in routing.models.values()]
    assert {(price.input, price.output) for price in prices} == {(Decimal(0), Decimal(0))}


# The list of a second gateway, of an older API, of a page, of nothing.
@pytest.mark.parametrize(
    "replies",
    [
        {"/v1/models": {"object": "list", "data": [{"id": "openai/gpt-5", "owned_by": "openai"}]}},
        {"/api/tags": {"data": []}, "/api/v0/models": [], "/v1/models": {"data": [{"id": 1}]}},
        {},
    ],
)
@pytest.mark.parametrize("slug", BY_SLUG)
def test_another_program_on_a_servers_port_is_not_taken_for_it(
    slug: str, replies: Mapping[str, object]
) -> None:
    with inference(replies) as server:
        assert found(slug, server.server_port) == {}
        assert server.asked


def test_a_server_that_does_not_run_or_is_not_asked_adds_nothing() -> None:
    with inference({"/v1/models": {"data": VLLM}}) as server:
        port = server.server_port
        stated = routing_with_row(f"http://localhost:{port}/v1")
        assert found("vllm", port, own_port=port) == {}
        assert found("vllm", port, stated) == {}
        assert found("vllm", port, routing_with_row("https://a.example/v1", "local-vllm")) == {}
        assert server.asked == []
        assert {*found("vllm", port, routing_with_row("http://10.0.0.1:8000/v1"))}
    assert found("vllm", port) == {}


def routing_with_row(base_url: str, slug: str = "ours") -> Routing:
    row = {"codec": "openai_chat", "transport": "http_sse", "base_url": base_url}
    return Routing.model_validate({"version": 1, "providers": {slug: row}})


def test_two_servers_with_one_model_have_two_names() -> None:
    listed = {"data": [{"id": "qwen3-8b", "owned_by": "vllm"}]}
    studio = {"data": [{"id": "qwen/qwen3-8b", "type": "llm"}]}
    with (
        inference({"/api/v0/models": studio}) as one,
        inference({"/v1/models": listed}) as other,
    ):
        servers: list[LocalServer] = [
            replace(BY_SLUG["lmstudio"], port=one.server_port),
            replace(BY_SLUG["vllm"], port=other.server_port),
        ]
        models = LocalModels(0, TODAY, servers).added_to(EMPTY).models
    assert [*models] == ["local/qwen3-8b", "local/qwen3-8b-vllm"]
    assert [model.endpoints[0].provider for model in models.values()] == [
        "local-lmstudio",
        "local-vllm",
    ]


def test_an_id_that_no_file_could_state_is_left_out() -> None:
    ids = ["x" * 300, "...", "ok"]
    listed = {"data": [{"id": id_, "owned_by": "vllm"} for id_ in ids]}
    with inference({"/v1/models": listed}) as server:
        assert {*found("vllm", server.server_port)} == {"local/ok"}


def test_the_dialects_are_those_of_the_example_for_ones_own_servers() -> None:
    example = yaml.safe_load((ROOT / "docs/examples/self-hosted.yaml").read_text())["providers"]
    for slug, server in BY_SLUG.items():
        assert server.dialect == Dialect.model_validate(example[slug].get("dialect", {})), slug


@pytest.mark.nightly
def test_a_model_of_this_machine_answers_and_costs_nothing(tmp_path: Path) -> None:
    with ExitStack() as stack:
        try:
            stack.enter_context(inference(replies_of_ollama(), BY_SLUG["ollama"].port))
        except OSError:
            pytest.skip("another program uses Ollama's port")
        started = stack.enter_context(local_server(tmp_path))
        client = openai.OpenAI(base_url=started.base_url, api_key=started.key, max_retries=0)
        for name in ("local/gpt-oss:20b", "gemma3"):
            reply = client.chat.completions.create(
                model=name, messages=[{"role": "user", "content": "Hello"}]
            )
            assert reply.choices[0].message.content == ANSWER
            assert reply.usage is not None
            assert reply.usage.model_dump()["cost"] == 0
