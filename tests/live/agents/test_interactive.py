"""Interactive sessions of the real agents: two prompts that a developer types, and their answers.

Keeps C80.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.live.agents.programs import find_agent
from tests.live.agents.scripts import DONE, VLLM
from tests.live.agents.terminal import Terminal, start
from tests.live.agents.test_claude_code import ROWS, Desk, desk, greeting
from tests.live.agents.test_codex import config, serving
from tests.local_server import environment
from tests.upstream.answers import Answer, in_chat
from tests.upstream.server import Script

__all__ = ["desk"]
AGAIN = "Nothing is left to do."


def converse(session: Terminal, first: str, answer_again: Callable[[], None]) -> None:
    """Wait for the first answer, ask once more, and see the second one."""
    try:
        session.wait_for(first)
        answer_again()
        session.type("And now?")
        session.wait_for("And now?")
        session.type("\r")
        session.wait_for(AGAIN)
    finally:
        session.close()


@pytest.mark.client("npm:@anthropic-ai/claude-code", "messages")
async def test_c80_claude_code_is_interactive(desk: Desk) -> None:
    writes = Answer(calls=(greeting(desk.folder),), finish="tool_calls")
    answers = (writes, Answer(words=("It is ", "written.")), Answer(words=(AGAIN,)))
    *first, second = (Script(chunks=ROWS["claude"].write(answer)) for answer in answers)
    desk.upstream.enqueue(*first)
    desk.home.mkdir()
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    state = {"hasCompletedOnboarding": True, "projects": {str(desk.folder): trusted}}
    (desk.home / ".claude.json").write_text(json.dumps(state))
    variables = environment() | {
        "HOME": str(desk.home),
        "ANTHROPIC_AUTH_TOKEN": desk.server.key,
        "ANTHROPIC_BASE_URL": desk.server.base_url.removesuffix("/v1"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    options = ["--model", "acme/claude", "--allowedTools", "Write", "--", "Write a greeting."]
    session = start([desk.program, *options], desk.folder, variables)
    await asyncio.to_thread(
        converse, session, "It is written.", lambda: desk.upstream.enqueue(second)
    )
    assert (desk.folder / "greeting.txt").read_text() == "Hello"
    assert len(desk.upstream.received) == len(answers)


@pytest.mark.client("npm:@openai/codex", "responses")
async def test_c80_codex_is_interactive(tmp_path: Path) -> None:
    program = find_agent("codex")
    folder, home = tmp_path / "work", tmp_path / "home"
    folder.mkdir()
    async with serving(VLLM, tmp_path) as (upstream, server):

        def say(words: str) -> None:
            # Codex asks for a title of the session meanwhile, so requests come in any order.
            upstream.reset()
            upstream.enqueue(*[Script(chunks=in_chat(Answer(words=(words,))))] * 5)

        say(DONE)
        config(home, server.base_url, server.key)
        with (home / "config.toml").open("a") as file:
            file.write(f'\n[projects."{folder}"]\ntrust_level = "trusted"\n')
        variables = environment() | {"HOME": str(home), "CODEX_HOME": str(home)}
        session = start([program, "Write one.txt and two.txt."], folder, variables)
        await asyncio.to_thread(converse, session, DONE, lambda: say(AGAIN))
        bodies = [received.body.decode() for received in upstream.received]
    assert any(DONE in body and "And now?" in body for body in bodies)
