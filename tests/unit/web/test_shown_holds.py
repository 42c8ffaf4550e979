"""`GET /v1/key` says for which generations credit is held, and until when.

Keeps C92.
"""

from tests.unit.web.test_api_app import api
from tollgate.stores.ports.people import LevelSpending, Team
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S
from tollgate.web.people.level_shapes import LevelObject
from tollgate.web.shapes import moment

OLDER, NEWER = "57KCytW0sEWbns0", "57KCzzW0sEWbns0"


async def test_c92_a_key_shows_what_is_held_for_it_and_since_when() -> None:
    call = await api()
    home = call.home
    first = await home.gateway.ledger.hold(home.principal, 5_000)
    await home.gateway.ledger.hold(home.principal, 7_000)

    shown = (await call("GET", "/v1/key", key=home.secret)).json["data"]

    holds = shown["holds"]
    assert (shown["held"], holds["generations"]) == (0.000012, 2)
    assert holds["oldest"] in {f"gen-{id_}" for id_ in home.stores.books.keys[first.key_id].holds}
    assert holds["oldest_since"] < holds["expires_at"]


async def test_c92_nothing_is_held_for_an_idle_key() -> None:
    call = await api()
    shown = (await call("GET", "/v1/key", key=call.home.secret)).json["data"]
    assert shown["holds"] == {
        "generations": 0,
        "oldest": None,
        "oldest_since": None,
        "expires_at": None,
    }


def test_c92_a_level_shows_the_oldest_of_its_holds() -> None:
    spending = LevelSpending(held_nano_usd=5, hold_ids=(OLDER, NEWER))
    team = Team(id="search", workspace_id="acme", created_s=0, spending=spending)
    holds = LevelObject.of(team).holds
    assert (holds.generations, holds.oldest) == (2, f"gen-{OLDER}")
    assert holds.oldest_since is not None
    assert holds.expires_at == moment(int(holds.oldest_since.timestamp()) + HOLD_LIFETIME_S)
