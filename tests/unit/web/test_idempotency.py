"""The claim that an Idempotency-Key makes: by one API key, for one body, on one path.

Keeps C68.
"""

import pytest
from msgspec.structs import replace

from tests.gateways import house
from tollgate.core.errors import RequestError
from tollgate.web.generation.idempotency import claim_of

PATH = "/v1/chat/completions"
HEADERS = {"idempotency-key": "order-7"}


async def test_c68_a_claim_is_of_one_workspace_one_api_key_one_path_and_one_body() -> None:
    call = (await house()).call("acme/small")
    theirs = replace(call, principal=replace(call.principal, key_id="Na1b2c3d4e5f6g7"))
    claim = claim_of(HEADERS, call, path=PATH, body=b"{}")
    assert claim is not None
    assert claim == claim_of(HEADERS, call, path=PATH, body=b"{}")
    assert claim.workspace_id == call.principal.workspace_id
    assert claim.request_id == call.request_id

    other = claim_of(HEADERS, theirs, path=PATH, body=b"{}")
    renamed = claim_of({"idempotency-key": "order-8"}, call, path=PATH, body=b"{}")
    assert other is not None
    assert renamed is not None
    assert len({it.key_hash for it in (claim, other, renamed)}) == 3

    changed = claim_of(HEADERS, call, path=PATH, body=b"{ }")
    moved = claim_of(HEADERS, call, path="/v1/responses", body=b"{}")
    assert changed is not None
    assert moved is not None
    assert {it.key_hash for it in (changed, moved)} == {claim.key_hash}
    assert len({it.body_hash for it in (claim, changed, moved)}) == 3


@pytest.mark.parametrize("key", ["", "a" * 256, "é", "a\tb"])
async def test_c68_a_key_that_is_empty_long_or_unprintable_is_refused(key: str) -> None:
    call = (await house()).call("acme/small")
    with pytest.raises(RequestError):
        claim_of({"idempotency-key": key}, call, path=PATH, body=b"{}")
    assert claim_of({}, call, path=PATH, body=b"{}") is None
