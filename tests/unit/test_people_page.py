"""docs/people.md states the roles that the table of access has.

Keeps C91.
"""

from typing import get_args

from tests.roles_table import PAGE, page
from tollgate.core.principal import MemberRole


def test_c91_the_list_of_roles_is_made_from_the_table_of_access() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert page(written) == written, "python -m tests.roles_table writes it"


def test_c91_every_role_of_a_member_is_described() -> None:
    written = PAGE.read_text(encoding="utf-8")
    for role in get_args(MemberRole):
        assert f"| `{role}` |" in written
