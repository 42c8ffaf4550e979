"""Endpoints whose provider's key is absent or rejected do not look ready.

Keeps C3.
"""

from dataclasses import replace

from tests.unit.web.test_models import LARGE, dated
from tollgate.core.routing.endpoint_status import CooldownPolicy
from tollgate.core.secret import CredentialPlace
from tollgate.providers.ports.base import ProviderRow


async def test_c3_an_endpoint_whose_key_has_a_fault_says_so_until_it_answers() -> None:
    call = await dated()
    cooldowns = call.home.stores.cooldowns
    await cooldowns.count_failure("far/f", CooldownPolicy(), "rejected")
    near, far = (await call("GET", f"{LARGE}/endpoints")).json["data"]["endpoints"]
    assert (near["status"], far["status"], far["key"]) == (0, -1, "rejected")
    assert far["key_seen_at"].startswith("20")
    assert "key" not in near
    await cooldowns.note_recovery("far/f", CooldownPolicy())
    listed = (await call("GET", f"{LARGE}/endpoints")).json["data"]["endpoints"]
    assert [(it["status"], it.get("key")) for it in listed] == [(0, None), (0, None)]


async def test_c3_a_process_that_calls_providers_knows_which_keys_are_missing() -> None:
    async def find_missing_key(row: ProviderRow) -> CredentialPlace | None:
        return CredentialPlace(variables=("FAR_KEY",)) if row.slug == "far" else None

    call = replace(await dated(), changes={"find_missing_key": find_missing_key})
    # The key of `near` was set after a request without it.
    await call.home.stores.cooldowns.count_failure("near/n", CooldownPolicy(), "absent")
    listed = (await call("GET", f"{LARGE}/endpoints")).json["data"]["endpoints"]
    assert [(it["status"], it.get("key")) for it in listed] == [(0, None), (-1, "absent")]
