"""The table of docs/people.md: what each role may do, from the table of access.

`python -m tests.roles_table` writes it.
"""

from pathlib import Path
from typing import Final, get_args

from tollgate.core.principal import KeyRole, MemberRole, Role
from tollgate.web.access import ACCESS, Access

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "people.md"
BEGIN: Final = "<!-- made by python -m tests.roles_table -->"
END: Final = "<!-- end -->"
_ROLES: Final[tuple[Role, ...]] = (*get_args(MemberRole), *get_args(KeyRole))


def page(written: str) -> str:
    """Return the page with its table made anew."""
    before, rest = written.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{_table()}\n\n{END}{after}"


def _table() -> str:
    """Return a line for each set of roles, with the routes that serve them."""
    served: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for (method, path), access in ACCESS.items():
        if access.roles:
            routes = served.setdefault(_cells(access), {})
            routes.setdefault(path.removeprefix("/v1"), []).append(method)
    lines = [
        f"| route | {' | '.join(_ROLES)} |",
        f"|---|{'---|' * len(_ROLES)}",
    ]
    for cells, routes in served.items():
        listed = ", ".join(
            f"{' '.join(methods)} `{path}`" for path, methods in sorted(routes.items())
        )
        lines.append(f"| {listed} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cells(access: Access) -> tuple[str, ...]:
    return tuple(_cell(access, role) for role in _ROLES)


def _cell(access: Access, role: Role) -> str:
    """Return what a role reaches on a route: all of the workspace, its own things, or nothing."""
    if role not in access.roles:
        return ""
    if access.operator:
        return "operator"
    if role in access.own:
        return "own" if role in get_args(MemberRole) else "own*"
    return "yes"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
