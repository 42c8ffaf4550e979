"""Prompt policies cover the OCR engine.

Keeps C58, C72.
"""

from tests.functional.test_recognition import STATED, ask, recognized, scanning
from tests.stores import TESTER
from tests.upstream import FakeUpstream
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.stores.ports.administration import NewKey


async def test_c58_c72_no_page_goes_to_an_engine_that_a_prompt_policy_leaves_out(
    upstream: FakeUpstream, pool: HttpPool
) -> None:
    unstated = await scanning(upstream, pool)
    stated = await scanning(upstream, pool, prompt_use=STATED)
    upstream.enqueue(recognized("# Invoice", "Total: 5 EUR"))
    new = NewKey(workspace_id="acme", label="careful", prompt_policy="no_training")
    for home in (unstated, stated):
        home.secret = (await home.stores.keys.create(new, by=TESTER)).secret
    for fields in ({}, {"plugins": [{"id": "pdf", "engine": "ocr"}]}):
        reply = await ask(unstated, "acme/careful", **fields)
        assert reply.status == 403, reply.body
        assert "the OCR engine mistral is not known to leave" in reply.json["error"]["message"]
    assert upstream.received == []
    reply = await ask(stated, "acme/careful")
    assert (reply.status, len(upstream.received)) == (200, 1)
