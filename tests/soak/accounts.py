"""The accounts of a soak: a rich workspace with keys of every kind of limit, and a poor one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.stores import TESTER
from tollgate.routing.file.compile import compile_catalog
from tollgate.settings import Settings
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings
from tollgate.wiring.administration import Administration

RICH: Final = "rich"
POOR: Final = "poor"
WORKSPACES: Final = (RICH, POOR)
INPUT_NANO_USD: Final = 1_000
OUTPUT_NANO_USD: Final = 2_000
# Of the poor workspace, each time: some ten answers.
POOR_GRANT_NANO_USD: Final = 400_000
_RICH_GRANT_NANO_USD: Final = 10**14
_LIMIT_NANO_USD: Final = 10**12
_TEAM: Final = "search"
_MEMBER: Final = "ana"
MODELS: Final = ("soak/events", "soak/frames", "either")
_ROUTING: Final = """
version: 1
defaults:
  timeouts: { connect_s: 2, first_token_s: 10, idle_s: 10 }
providers:
  events:
    codec: openai_chat
    transport: http_sse
    base_url: PROVIDER/v1
  frames:
    codec: bedrock
    transport: bedrock_runtime
    region: us-east-1
    base_url: PROVIDER
models:
  soak/events:
    name: By server-sent events
    context: 131072
    max_output: 16384
    endpoints:
      - provider: events
        upstream: events
        price: { input: 1.00, output: 2.00, source: made up, checked: 2026-11-23 }
  soak/frames:
    name: By an event stream
    context: 131072
    max_output: 16384
    endpoints:
      - provider: frames
        upstream: us.frames.one-v1:0
        price: { input: 1.00, output: 2.00, source: made up, checked: 2026-11-23 }
routes:
  either:
    description: The one, and the other where it fails
    try: [soak/events, soak/frames]
"""


@dataclass(frozen=True, kw_only=True)
class SoakKey:
    """A key of a soak and its share of the requests."""

    name: str
    workspace_id: str
    secret: str
    share: int


def write_catalog(catalog_file: Path, provider_url: str) -> None:
    """Compile the routing file whose providers are all at one URL."""
    routing = catalog_file.with_name("routing.yaml")
    routing.write_text(_ROUTING.replace("PROVIDER", provider_url))
    catalog_file.write_bytes(compile_catalog(routing, dev=True).content)


async def open_accounts(administration: Administration) -> list[SoakKey]:
    """Make the workspaces, the team, the member and the keys."""
    await administration.credits.grant(RICH, "first", _RICH_GRANT_NANO_USD, "soak", by=TESTER)
    await administration.credits.grant(POOR, "first", POOR_GRANT_NANO_USD, "soak", by=TESTER)
    limits = {"day": _LIMIT_NANO_USD, "month": _LIMIT_NANO_USD}
    await administration.teams.create(
        RICH, _TEAM, LevelSettings(limits_nano_usd=limits, tokens_per_minute=10**9), by=TESTER
    )
    await administration.members.create(
        RICH, _MEMBER, MemberSettings(limits_nano_usd=limits), by=TESTER
    )
    fast = {"requests_per_minute": 60_000, "burst": 10_000}
    limited = {**fast, "limits_nano_usd": limits}
    wanted = [
        (40, NewKey(workspace_id=RICH, label="plain", **fast)),
        (20, NewKey(workspace_id=RICH, label="team", team_id=_TEAM, **limited)),
        (20, NewKey(workspace_id=RICH, label="member", team_id=_TEAM, member_id=_MEMBER, **fast)),
        (10, NewKey(workspace_id=RICH, label="narrow", requests_per_minute=30, burst=5)),
        (10, NewKey(workspace_id=POOR, label="poor", **fast)),
    ]
    keys: list[SoakKey] = []
    for share, new in wanted:
        created = await administration.keys.create(new, by=TESTER)
        keys.append(
            SoakKey(
                name=new.label, workspace_id=new.workspace_id, secret=created.secret, share=share
            )
        )
    return keys


def server_environment(settings: Settings, *, store_url: str, folder: Path) -> dict[str, str]:
    """Return the variables of a server whose store is at `store_url`."""
    return {
        "TOLLGATE_CORE_TABLE": settings.core_table,
        "TOLLGATE_LEDGER_TABLE": settings.ledger_table,
        "TOLLGATE_GENERATIONS_TABLE": settings.generations_table,
        "TOLLGATE_CATALOG_FILE": str(settings.catalog_file),
        "TOLLGATE_DYNAMODB_ENDPOINT_URL": store_url,
        # Answers are kept for Idempotency-Key.
        "TOLLGATE_OBJECTS_FOLDER": str(folder),
        "TOLLGATE_METRICS_LOOPBACK": "true",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "NO_COLOR": "1",
    }
