"""A setting of a key is named once, in KeySettings; api, command line and rows follow."""

import ast
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click import Command
from msgspec.structs import asdict, fields, replace

import tollgate
from tests.cells import cells
from tollgate.aws.attributes import number, string
from tollgate.cli.gateway.keys import keys
from tollgate.core.errors import RequestError
from tollgate.routing.schema import KeyTierSection
from tollgate.stores.aws.items import KeyPointerItem
from tollgate.stores.keys.rows import encode_settings, settings_of, summary_of
from tollgate.stores.keys.state_items import new_key_state
from tollgate.stores.ports.administration import KeySummary, NewKey
from tollgate.stores.rules.key_settings import PLAIN_SETTINGS, KeySettings
from tollgate.web.keys.key_shapes import KeyChangeBody, KeyObject, NewKeyBody

_TOLLGATE = Path(tollgate.__file__).parent
# KeySettings itself, the stored forms of the settings that authentication reads and of those that a
# hold checks, and the settings of levels, which may all be absent.
_LISTS = {
    "stores/rules/key_settings.py",
    "stores/rules/level_settings.py",
    "stores/keys/rows.py",
    "stores/keys/state_items.py",
}
# More names than these in one list, class or call are a second list of the settings.
_NAMES_MAX = 5
# Ids of what a key belongs to are fields of much else.
_IDS = {"team_id", "member_id"}
# Every setting with a value that is not its default.
CHOSEN = KeySettings(
    label="search",
    tier="gold",
    models=("anthropic/*",),
    limits_nano_usd={"day": 5, "week": 6, "month": 7, "total": 8},
    requests_per_minute=6,
    burst=9,
    tokens_per_minute=11,
    concurrency=13,
    expires_s=4_000_000_000,
    labels={"team": "search"},
    disabled=True,
    content_days=7,
    response_days=30,
    team_id="search",
    member_id="ana@example.com",
    allowed_ips="192.0.2.0/24,2001:db8::1",
    prompt_policy="eu,CH,no_training",
    keep_address="last",
    usage_on="finish",
    answer_cache="workspace",
    max_cost=Decimal("0.25"),
    session_budget=Decimal("2.5"),
    session_requests=40,
    warn_at=80,
    guardrails="secrets,harm",
    quotas="requests/hour=500,usd/day=5@anthropic/*",
)
NAMES = [field.name for field in fields(KeySettings)]


def _stored(settings: KeySettings) -> KeySummary:
    """Return a key as its rows and its state show it."""
    key_id = "5g0DOBgUqHItj5y"
    pointer = {
        **encode_settings(settings),
        KeyPointerItem.KEY: string(key_id),
        KeyPointerItem.WORKSPACE: string("default"),
        KeyPointerItem.ROLE: string("inference"),
        KeyPointerItem.CREATED: number(0),
        KeyPointerItem.PREFIX: string("sk-tg-"),
        KeyPointerItem.LAST: string("abcd"),
    }
    return summary_of(pointer, new_key_state(key_id, "default", settings), 1_800_000_000.0)


@pytest.mark.parametrize("name", NAMES)
def test_a_setting_differs_from_its_default_in_these_tests(name: str) -> None:
    assert getattr(CHOSEN, name) != getattr(KeySettings(label="other"), name)


@pytest.mark.parametrize("name", NAMES)
def test_a_setting_that_is_stored_is_read_again(name: str) -> None:
    assert getattr(settings_of(_stored(CHOSEN)), name) == getattr(CHOSEN, name)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "label"])
def test_a_setting_that_is_unset_is_read_again(name: str) -> None:
    unset = KeySettings(label="search")
    assert getattr(settings_of(_stored(unset)), name) == getattr(unset, name)


@pytest.mark.parametrize("name", PLAIN_SETTINGS)
def test_a_plain_setting_is_taken_and_shown_by_the_api(name: str) -> None:
    value = getattr(CHOSEN, name)
    body = NewKeyBody.model_validate({"name": "search", name: value})
    tiers = {"gold": KeyTierSection()}
    assert getattr(body.new_key("default", tiers), name) == value
    change = KeyChangeBody.model_validate({name: value})
    assert getattr(change.edit(KeySettings(label="search")), name) == value
    assert getattr(KeyObject.of(_stored(CHOSEN)), name) == value


@pytest.mark.parametrize("name", PLAIN_SETTINGS)
def test_null_takes_away_an_optional_setting_and_no_other(name: str) -> None:
    setting = PLAIN_SETTINGS[name]
    if setting.is_optional:
        edited = KeyChangeBody.model_validate({name: None}).edit(CHOSEN)
        assert edited == replace(CHOSEN, **{name: None})
    else:
        with pytest.raises(ValueError, match=f"{name} cannot be null"):
            KeyChangeBody.model_validate({name: None})


@cells("name", PLAIN_SETTINGS)
@cells("command", ["create", "update"])
def test_a_plain_setting_is_an_option_of_the_command_line(command: str, name: str) -> None:
    found: Command = keys.commands[command]
    assert name in {parameter.name for parameter in found.params}


@pytest.mark.parametrize(
    "name", [name for name, setting in PLAIN_SETTINGS.items() if setting.offer.lowest is not None]
)
def test_a_number_of_a_key_is_more_than_zero(name: str) -> None:
    with pytest.raises(RequestError, match=f"{name} must be more than 0"):
        replace(CHOSEN, **{name: 0})


def test_a_new_key_and_a_summary_have_all_settings() -> None:
    new = NewKey(**asdict(CHOSEN), workspace_id="default")
    assert settings_of(new) == CHOSEN


def _lists(tree: ast.AST) -> Iterator[tuple[int, set[str]]]:
    """Yield the names that each class, collection and call of a file lists, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(body=body):
                names = {
                    it.target.id
                    for it in body
                    if isinstance(it, ast.AnnAssign) and isinstance(it.target, ast.Name)
                }
            case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
                names = {_text(it) for it in elements}
            case ast.Dict(keys=dict_keys, values=values):
                names = {_text(it) for it in (*dict_keys, *values)}
            case ast.Call(keywords=keywords):
                names = {it.arg or "" for it in keywords}
            case _:
                continue
        yield node.lineno, names & (set(PLAIN_SETTINGS) - _IDS)


def _text(node: Any) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


@cells(
    "path",
    [
        path
        for path in sorted(_TOLLGATE.rglob("*.py"))
        if str(path.relative_to(_TOLLGATE)) not in _LISTS
    ],
    ids=lambda path: str(path.relative_to(_TOLLGATE)),
)
def test_no_second_list_of_plain_settings(path: Path) -> None:
    text = path.read_text()
    # Parsing all files of the product takes seconds, and most have few of the names.
    if sum(name in text for name in PLAIN_SETTINGS) <= _NAMES_MAX:
        return
    found = [
        f"{path.relative_to(_TOLLGATE)}:{line}: {sorted(names)}: take them from PLAIN_SETTINGS"
        for line, names in _lists(ast.parse(text))
        if len(names) > _NAMES_MAX
    ]
    assert not found, "\n".join(found)
