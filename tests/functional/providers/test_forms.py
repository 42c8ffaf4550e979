"""A form is sent as its parts."""

from tests.functional.providers.one_provider import CHAT, OneProvider
from tests.upstream import FakeUpstream, Script
from tollgate.ingress.form_body import FileLabel, Form, parse_form
from tollgate.providers.ports.base import FormPart, Timeouts, WireRequest

# Larger than what is written at once.
RECORDING = bytes(range(256)) * 6_000
WIRE = WireRequest(
    path="/audio/transcriptions",
    body={},
    form=(
        FormPart(name="model", content="whisper-größe".encode()),
        FormPart(name="timestamp_granularities[]", content=b"word"),
        FormPart(name="timestamp_granularities[]", content=b"segment"),
        FormPart(name="file", content=RECORDING, file_name="a.wav", media_type="audio/wav"),
    ),
    reply_bytes_max=1_000,
)
SENT = Form(
    texts={"model": ("whisper-größe",), "timestamp_granularities[]": ("word", "segment")},
    files={"file": (RECORDING,)},
    labels={"file": (FileLabel(filename="a.wav", media_type="audio/wav"),)},
)


async def sent(upstream: FakeUpstream, provider: OneProvider) -> Form:
    """The form that reaches the provider with one request."""
    async with provider.provider(CHAT).transport.open(WIRE, Timeouts(connect_s=5)) as frames:
        assert [frame.data async for several in frames for frame in several] == [b'{"text": ""}']
    received = upstream.received[-1]
    assert received.headers["authorization"] == "Bearer sk-secret"
    assert int(received.headers["content-length"]) == len(received.body)
    assert b'filename="a.wav"\r\n' in received.body
    return parse_form(received.body, received.headers["content-type"])


async def test_a_form_reaches_the_provider_part_by_part(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(Script.json(200, {"text": ""}))
    assert await sent(upstream, provider) == SENT
