"""`tollgate dev`, started and stopped: what it printed, and what it leaves behind."""

import re
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.functional.local_inference import inference, replies_of_ollama
from tests.local_server import LocalServer, local_server
from tollgate.cli.server.local_servers import SERVERS

OLLAMA = next(server for server in SERVERS if server.slug == "ollama")


def children_of(pid: int) -> set[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return {int(child) for child in listed.split()}


@dataclass(frozen=True)
class Stopped:
    """A server that was started, looked at and interrupted; `output` is all that it printed."""

    server: LocalServer
    output: str
    local_models: bool
    ready_file: Path
    ready_mode: int
    family: frozenset[int]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    state = tmp_path_factory.mktemp("stopped")
    ready_file = state / "ready.json"
    with ExitStack() as stack:
        try:
            stack.enter_context(inference(replies_of_ollama(), OLLAMA.port))
            local_models = True
        except OSError:  # Another program has Ollama's port.
            local_models = False
        started = stack.enter_context(local_server(state, extra={"GROQ_API_KEY": "gsk-any"}))
        mode = ready_file.stat().st_mode & 0o777
        family = frozenset({started.pid} | children_of(started.pid))
        output = started.interrupt()
    return Stopped(
        server=started,
        output=output,
        local_models=local_models,
        ready_file=ready_file,
        ready_mode=mode,
        family=family,
    )


@pytest.mark.nightly
def test_nobody_else_on_the_machine_reads_the_keys_of_the_ready_file(stopped: Stopped) -> None:
    assert stopped.ready_mode == 0o600


def test_ctrl_c_leaves_no_process_behind(stopped: Stopped) -> None:
    assert len(stopped.family) == 2
    assert stopped.server.process.returncode == 0
    assert not [pid for pid in stopped.family if Path(f"/proc/{pid}").exists()]
    assert not stopped.ready_file.exists()
    assert stopped.output.rstrip().endswith("Stopped.")


def test_it_prints_what_a_newcomer_pastes(stopped: Stopped) -> None:
    assert stopped.output.startswith("Tollgate serves ")
    host = stopped.server.base_url.removesuffix("/api/v1")
    for line in (
        f"  console         {host}/console",
        f"  OpenAI's SDKs   {host}/api/v1",
        f"  Anthropic's     {host}/api",
        f"  inference key   {stopped.server.key}",
        f"  export TOLLGATE_URL={host}/api/v1",
        f"  export TOLLGATE_KEY={stopped.server.management_key}",
    ):
        assert line in stopped.output.splitlines()
    assert re.search(r"^  curl -N ", stopped.output, re.MULTILINE)


def test_a_screen_of_24_lines_shows_the_first_base_url_and_what_follows(stopped: Stopped) -> None:
    before_requests = stopped.output[: stopped.output.index("Ctrl-C stops it.")]
    assert "console  " in "\n".join(before_requests.splitlines()[-22:])


def test_it_says_which_providers_are_usable_and_what_the_others_need(stopped: Stopped) -> None:
    assert re.search(
        r"^  usable here     simulator, groq, (local-\w+, )*simulator-completions",
        stopped.output,
        re.MULTILINE,
    )
    exports = dict(re.findall(r"^    export (\w+)=\.\.\. +# (.+)$", stopped.output, re.MULTILINE))
    assert exports["OPENAI_API_KEY"] == "openai, openai-responses"
    assert exports["AWS_SECRET_ACCESS_KEY"].startswith("bedrock, bedrock-mantle, ")
    assert "GROQ_API_KEY" not in exports


def test_it_lists_the_models_of_servers_on_this_machine(stopped: Stopped) -> None:
    if not stopped.local_models:
        pytest.skip("another program uses Ollama's port")
    listed = "local/gemma3, local/gpt-oss:20b, local/llama-3.2-3b-instruct-gguf:q4_k_m"
    assert f"  Ollama          {listed}" in stopped.output.splitlines()
