"""Every response that a route returns has what the Open Responses schema requires.

Keeps C74.
"""

import pytest

from tests.cells import cells
from tests.open_responses import check_response, check_stream
from tests.unit.engine.client_formats import RESPONSE
from tests.unit.engine.same_conversations import SAME
from tests.unit.engine.test_every_format import framed, home_of
from tests.unit.engine.test_matrix import HEARD
from tests.unit.providers.shared_cases import ANSWERS
from tests.upstream.wires import WIRES, Wire


@cells(("wire", "case"), HEARD, ids=[f"{wire.name}-{case}" for wire, case in HEARD])
async def test_c74_responses_have_every_required_field_with_every_codec(
    wire: Wire, case: str
) -> None:
    home = await home_of(wire, framed(wire, wire.write(ANSWERS[case])))
    question = SAME["text"][RESPONSE.name] if wire.text_only else RESPONSE.question
    check_response((await RESPONSE.ask(home, question, stream=False)).json)
    check_stream((await RESPONSE.ask(home, question, stream=True)).body)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_c74_a_response_states_the_numbers_that_its_provider_got(wire: Wire) -> None:
    sent = {"temperature": 0.5, "frequency_penalty": 0.5, "presence_penalty": -0.5}
    default = {"temperature": 1.0, "frequency_penalty": 0.0, "presence_penalty": 0.0}
    home = await home_of(wire, framed(wire, wire.write(ANSWERS["text"])))
    reply = await RESPONSE.ask(home, {**SAME["text"][RESPONSE.name], **sent}, stream=False)
    adapted = home.record.adapted
    for name, value in sent.items():
        assert reply.json[name] == (default[name] if name in adapted else value)
