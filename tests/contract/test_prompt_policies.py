"""Prompt policies of a key, its member and its team reach every request with the key.

Keeps C58.
"""

import pytest
from msgspec.structs import replace

from tests.stores import TESTER, DynamoStores, MemoryStores
from tollgate.core.errors import RequestError
from tollgate.core.prompt_policy import PromptPolicy
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings

AnyStores = MemoryStores | DynamoStores


async def test_c58_authentication_reads_the_policies_of_key_member_and_team(
    stores: AnyStores,
) -> None:
    team = LevelSettings(prompt_policy="eu,no_training")
    await stores.teams.create("acme", "search", team, by=TESTER)
    member = MemberSettings(prompt_policy="no_retention", team_id="search")
    await stores.members.create("acme", "ana", member, by=TESTER)
    new = NewKey(workspace_id="acme", label="k", member_id="ana", prompt_policy="DE,FR")
    made = await stores.keys.create(new, by=TESTER)
    principal = await stores.keys.authenticate(made.secret)
    of_member = PromptPolicy(owner="member", no_retention=True)
    of_team = PromptPolicy(owner="team", regions=("eu",), no_training=True)
    of_key = PromptPolicy(owner="key", regions=("DE", "FR"))
    assert principal.prompt_policies == (of_member, of_team, of_key)

    id_, unset = made.summary.id, {"prompt_policy": None}
    await stores.keys.change("acme", id_, lambda it: replace(it, **unset), by=TESTER)
    await stores.teams.change("acme", "search", lambda it: replace(it, **unset), by=TESTER)
    stores.clock.now += 6
    principal = await stores.keys.authenticate(made.secret)
    assert principal.prompt_policies == (of_member,)


def test_c58_a_policy_with_an_unknown_word_is_never_stored() -> None:
    with pytest.raises(RequestError):
        NewKey(workspace_id="acme", label="k", prompt_policy="europe")
    with pytest.raises(RequestError):
        LevelSettings(prompt_policy="europe")
