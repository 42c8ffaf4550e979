"""An analyzer of Presidio over a real socket.

Keeps C56.
"""

import pytest

from tests.functional.providers.conftest import google_file, provider, upstream
from tests.functional.providers.one_provider import CHAT, OneProvider
from tests.scripted import answers
from tests.unit.engine.guardrails.analyzers import NAMES, analyzed, found
from tests.unit.engine.guardrails.homes import ask, sent_messages, text_of
from tests.upstream import FakeUpstream, Script

__all__ = ["google_file", "provider", "upstream"]

QUESTION = f"🎈 {NAMES[1]} called"


async def test_c56_an_analyzer_is_asked_with_the_key_of_its_row(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(Script.json(200, found(QUESTION)))
    home = await analyzed(
        answers("Dear [person_1]"),
        at=provider.provider(CHAT, codec="presidio"),
        action="mask",
        restores=True,
        stages=("input",),
    )
    assert text_of(await ask(home, QUESTION)) == f"Dear {NAMES[1]}"
    assert sent_messages(home.near)[0]["content"] == "🎈 [person_1] called"
    (received,) = upstream.received
    assert (received.method, received.path) == ("POST", "/analyze")
    assert received.headers["authorization"] == "Bearer sk-secret"
    assert received.json == {"text": QUESTION, "language": "en"}


# An answer of presidio-analyzer/app.py to an entity type without a recognizer, and a broken reply.
FAILURES = [
    Script.json(500, {"error": "No matching recognizers were found to serve the request."}),
    Script(chunks=[b'[{"entity_type"'], end="close"),
]


@pytest.mark.parametrize("failure", FAILURES, ids=["no_recognizer", "broken"])
async def test_c56_a_failing_analyzer_refuses(
    failure: Script, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(*[failure] * 9)
    analyzer = provider.provider(CHAT, codec="presidio")
    home = await analyzed(at=analyzer, action="flag", stages=("input",))
    reply = await ask(home, QUESTION)
    assert (reply.status, reply.error["code"]) == (502, "provider_unavailable")
    assert home.near.requests == []
