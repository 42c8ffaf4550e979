"""The list of docs/people.md: what each role may do, from the table of access.

`python -m tests.roles_table` writes it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

from tollgate.core.principal import PLAYGROUND, KeyRole, MemberRole, Role
from tollgate.web.access import ACCESS, Access

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "people.md"
BEGIN: Final = "<!-- made by python -m tests.roles_table -->"
END: Final = "<!-- end -->"
_ROLES: Final[tuple[Role, ...]] = (*get_args(MemberRole), *get_args(KeyRole), PLAYGROUND)


def page(written: str) -> str:
    """Return the page with its list made anew."""
    before, rest = written.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{_list()}\n\n{END}{after}"


def _list() -> str:
    """Return a line for each set of roles, with the routes that serve them by their methods."""
    served: dict[str, dict[str, list[str]]] = {}
    for (method, path), access in ACCESS.items():
        if access.roles:
            routes = served.setdefault(_roles(access), {})
            routes.setdefault(path.removeprefix("/v1"), []).append(method)
    return "\n".join(f"- **{roles}**: {_by_methods(routes)}" for roles, routes in served.items())


def _by_methods(routes: Mapping[str, Sequence[str]]) -> str:
    paths: dict[str, list[str]] = {}
    for path, methods in sorted(routes.items()):
        paths.setdefault(" ".join(methods), []).append(f"`{path}`")
    return "; ".join(f"{methods} {', '.join(named)}" for methods, named in paths.items())


def _roles(access: Access) -> str:
    """Return the roles that a route serves, those that reach their own things marked."""
    shown = ", ".join(
        f"{role} (own)" if role in access.own else role for role in _ROLES if role in access.roles
    )
    return f"operator: {shown}" if access.operator else shown


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
