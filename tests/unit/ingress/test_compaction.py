"""Items that stay as they are when a conversation is compacted, and seals.

Keeps C75.
"""

import json
from typing import Any

from tollgate.core.compaction import Compacted
from tollgate.core.content import Text
from tollgate.ingress.responses.compaction import KEPT_BYTES_MAX, begin_compaction, open_input
from tollgate.ingress.responses.parse import parse_response_object
from tollgate.ingress.responses.sealing import WorkspaceSeal
from tollgate.ingress.responses.stored import TakenItems, check_items

SEAL = WorkspaceSeal(workspace_id="acme", key=bytes(32))
TRIGGER = {"type": "compaction_trigger"}


def kept(*raws: dict[str, Any]) -> list[Any]:
    items = [("input", each) for each in check_items([*raws, TRIGGER], "input")]
    taken = TakenItems(items=items, stored_form=(*raws, TRIGGER), left_out=(), added_bytes=0)
    compacting = begin_compaction(open_input(taken, SEAL), SEAL)
    assert compacting is not None
    return [*compacting.kept]


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def test_c75_users_newest_messages_are_kept_up_to_a_limit() -> None:
    half = "x" * (KEPT_BYTES_MAX // 2)
    system = {"role": "system", "content": half * 3}
    oldest, old, new = user("1"), user("2" + half), user("3" + half)
    assert kept(system, oldest, old, new) == [system, new]


def test_c75_a_file_that_does_not_fit_becomes_a_note_and_a_named_file_stays() -> None:
    text = {"type": "input_text", "text": "Look."}
    named = {"type": "input_file", "file_id": "file-1"}
    data = "data:image/png;base64," + "A" * KEPT_BYTES_MAX
    [message] = kept(user([text, named, {"type": "input_image", "image_url": data}]))
    note = {"type": "input_text", "text": "[a file that is described in the record was here]"}
    assert message["content"] == [text, named, note]


def test_c75_a_seal_is_the_same_each_time_and_opens_for_its_workspace_alone() -> None:
    closed = SEAL.close(b"record", "gen-1")
    assert closed == SEAL.close(b"record", "gen-1") != SEAL.close(b"record", "gen-2")
    assert SEAL.open(closed) == b"record"
    assert WorkspaceSeal(workspace_id="other", key=bytes(32)).open(closed) is None
    assert WorkspaceSeal(workspace_id="acme", key=b"1" * 32).open(closed) is None


def test_c75_the_size_of_a_request_counts_what_its_item_adds() -> None:
    asked = {"model": "m", "input": [user("old" * 99), user("new"), TRIGGER]}
    compacts = parse_response_object(asked, {}, size_bytes=1, seal=SEAL).compacts
    assert compacts is not None
    packed = compacts.pack(Compacted(record="record"), "gen-1").data or ""
    items = [{"type": "compaction", "encrypted_content": packed}] * 9
    body = {"model": "m", "input": items}
    request = parse_response_object(body, {}, size_bytes=len(json.dumps(body)), seal=SEAL).request
    texts = [
        part.text for each in request.messages for part in each.content if isinstance(part, Text)
    ]
    assert len(texts) == 2 + 9
    assert request.size_bytes > len("".join(texts))
