"""A key is found by its name or id.

Keeps C60.
"""

import pytest

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.stores.rules.key_names import KeyName, choose_free_name, find_key_id

NAMES = [
    KeyName("id1", "ci", deleted=True),
    KeyName("id2", "ci"),
    KeyName("id3", "team-search"),
    KeyName("id4", "twin"),
    KeyName("id5", "twin"),
    KeyName("id6", "gone", deleted=True),
    KeyName("id7", "id3"),
]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("ci", "id2"), ("id1", "id1"), ("gone", "id6"), ("id5", "id5"), ("id3", "id3")],
)
def test_c60_an_id_goes_before_a_name_and_a_key_before_a_deleted_one(
    wanted: str, found: str
) -> None:
    assert find_key_id(NAMES, wanted, param="key") == found


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("team-serach", "no key with the name or id team-serach. Did you mean team-search?"),
        ("xyz", "There is no key with the name or id xyz."),
        ("twin", "2 keys are named twin: give the id of one of them, id4, id5."),
    ],
)
def test_c60_a_key_that_is_not_found_is_named_with_the_nearest(wanted: str, message: str) -> None:
    with pytest.raises(RequestError) as refused:
        find_key_id(NAMES, wanted, param="key")
    assert refused.value.message.endswith(message)
    assert (refused.value.code, refused.value.param) == (ErrorCode.NOT_FOUND, "key")


def test_c60_a_taken_name_gets_a_number() -> None:
    names = [KeyName("id1", "local"), KeyName("id2", "local 2"), KeyName("id3", "x", deleted=True)]
    assert [choose_free_name(names, label) for label in ("local", "x")] == ["local 3", "x"]
