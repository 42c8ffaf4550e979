"""The datetime tool: the date and the time in a time zone."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from tollgate.core.clock import Clock
from tollgate.core.content import Text
from tollgate.core.server_tools import RunResult
from tollgate.tools.ports.base import RunFailure

# UTC works without the time zone database, which a system may lack.
_UTC: Final = "UTC"


def tell_time(clock: Clock, arguments: Mapping[str, object], timezone: str) -> RunResult:
    """Return the current time in the zone that the model requested, or else in `timezone`."""
    name = arguments.get("timezone") or timezone
    if not isinstance(name, str):
        raise RunFailure("invalid_input", "`timezone` must be a text")
    now = datetime.fromtimestamp(int(clock.now_s()), UTC)
    try:
        local = now if name == _UTC else now.astimezone(ZoneInfo(name))
    except (KeyError, OSError, ValueError) as unknown:
        words = "`timezone` is not a time zone of the IANA database, such as Europe/Berlin"
        raise RunFailure("invalid_input", words) from unknown
    moment = {
        "datetime": local.isoformat(),
        "weekday": local.strftime("%A"),
        "timezone": name,
        "utc": now.isoformat(),
    }
    return RunResult(content=(Text(text=msgspec.json.encode(moment).decode()),))
