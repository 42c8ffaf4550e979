"""A module lies with its user, or in a shared folder if it has several."""

from pathlib import PurePosixPath

from tests.tidy.shared_rooms import shared_modules_have_two_users
from tests.tidy.source import Source, sources_of


def source(path: str, text: str = "") -> Source:
    return Source(PurePosixPath("functions", path), text)


def test_every_shared_module_has_two_users() -> None:
    assert [*map(str, shared_modules_have_two_users(sources_of("functions")))] == []


def test_a_module_with_one_user_is_found() -> None:
    shared = source("tollgate/stores/aws/keys.py", "from tollgate.stores.aws import keys")
    user = source("tollgate/stores/keys/a.py", "from tollgate.stores.aws.keys import X, Y")
    other = source("tollgate/stores/keys/b.py", "from tollgate.stores.aws.keys_of import X")
    [found] = shared_modules_have_two_users([shared, user, other])
    assert str(found).startswith("functions/tollgate/stores/aws/keys.py:1: users: tollgate.stores.")
    second = source("tollgate/stores/keys/c.py", "from tollgate.stores.aws import keys")
    assert [*shared_modules_have_two_users([shared, user, other, second])] == []


def test_other_folders_may_have_one_user() -> None:
    sources = [source("tollgate/stores/keys/a.py"), source("tollgate/stores/aws/__init__.py")]
    assert [*shared_modules_have_two_users(sources)] == []
