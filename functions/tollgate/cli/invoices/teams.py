"""Comparison of AWS's bill with the records by team; role sessions' names contain the team."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.aws.role_sessions import session_name
from tollgate.cli.invoices.comparison import exceeds
from tollgate.cli.invoices.lines import InvoiceLine

# Labels for rows without a team's id. They contain a space, which ids cannot.
NO_TEAM: Final = "no team"
OTHER_PRINCIPALS: Final = "other principals"
_NOTHING: Final = Decimal(0)
_SESSION: Final = re.compile(
    r"arn:[a-z-]+:sts::[0-9]+:assumed-role/(?P<role>[^/]+)/(?P<session>[^/]+)"
)


class TeamCompared(Struct, frozen=True, kw_only=True):
    """A team with the amounts that AWS billed and the gateway recorded."""

    team: str
    """The team's id, or the session's name if the gateway recorded nothing for the session."""
    workspace: str = ""
    is_known: bool = True
    invoiced_usd: Decimal = _NOTHING
    recorded_usd: Decimal = _NOTHING
    failed: int = 0
    """Number of failed requests, which are free for callers but may be billed by AWS."""

    @property
    def is_rest(self) -> bool:
        """True for the sum of all principals that are not sessions of the gateway."""
        return self.team == OTHER_PRINCIPALS

    def differs(self, percent: Decimal, usd: Decimal) -> bool:
        """Return whether the amounts of a team differ by more than both bounds."""
        return not self.is_rest and exceeds(self.invoiced_usd, self.recorded_usd, percent, usd)


def compare_teams(
    invoice: Sequence[InvoiceLine], recorded: Iterable[tuple[str, Mapping[str, object]]]
) -> list[TeamCompared]:
    """Return a comparison for each team, with other principals last.

    `recorded` are pairs of a workspace and a row of activity by team. The gateway's role is known
    by its sessions, which are named after recorded teams.
    """
    found: dict[str, TeamCompared] = {}
    for workspace, row in recorded:
        team = _team_of(row)
        name = session_name(workspace, team)
        known = found.get(name) or TeamCompared(team=team or NO_TEAM, workspace=workspace)
        found[name] = replace(
            known,
            recorded_usd=known.recorded_usd + Decimal(str(row["usage"])),
            failed=known.failed + int(str(row["failed"])),
        )
    sessions = {line.principal: _SESSION.fullmatch(line.principal) for line in invoice}
    roles = {each["role"] for each in sessions.values() if each and each["session"] in found}
    rest = TeamCompared(team=OTHER_PRINCIPALS)
    for line in invoice:
        usd, session = line.usd or _NOTHING, sessions[line.principal]
        if session is None or session["role"] not in roles:
            rest = replace(rest, invoiced_usd=rest.invoiced_usd + usd)
            continue
        name = session["session"]
        known = found.get(name) or TeamCompared(team=name, is_known=False)
        found[name] = replace(known, invoiced_usd=known.invoiced_usd + usd)
    return [*_sorted(found.values()), *((rest,) if rest.invoiced_usd else ())]


def _team_of(row: Mapping[str, object]) -> str | None:
    labels = row["labels"]
    team = labels.get("team") if isinstance(labels, dict) else None
    return None if team is None else str(team)


def _sorted(compared: Iterable[TeamCompared]) -> Iterator[TeamCompared]:
    yield from sorted(compared, key=lambda each: (not each.is_known, each.workspace, each.team))
