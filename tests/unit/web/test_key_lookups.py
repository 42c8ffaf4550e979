"""A query names a key of the caller's workspace, and of no other.

Keeps C66, C67.
"""

import pytest

from tests.unit.web.test_permissions import OPERATORS, tenants


@pytest.mark.parametrize("path", ["/v1/generations", "/v1/activity"])
@pytest.mark.parametrize(
    ("caller", "workspace"), [("other management", "other"), ("acme management", "acme")]
)
async def test_c67_a_key_is_looked_for_by_its_name_in_the_callers_workspace_alone(
    caller: str, workspace: str, path: str
) -> None:
    world = await tenants()
    strangers = {"acme", "other", OPERATORS} - {workspace}
    own = await world.ask(caller, "GET", f"{path}?key={workspace}%20inference", None)
    assert own.status == 200
    for stranger in strangers:
        reply = await world.ask(caller, "GET", f"{path}?key={stranger}%20inference", None)
        assert (reply.status, reply.error["param"]) == (404, "key")
        # A suggestion may only name a key of the caller's own workspace.
        suggested = reply.error["message"].partition("Did you mean")[2]
        assert not any(name in suggested for name in strangers)
