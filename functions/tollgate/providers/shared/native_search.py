"""The user's location in the web search tools of OpenAI and Anthropic.

platform.openai.com/docs/guides/tools-web-search and platform.claude.com/docs, "Web search tool"
(2026-11-22).
"""

from tollgate.core.json_value import JsonValue
from tollgate.core.server_tools import ServerTool


def user_location(tool: ServerTool) -> dict[str, JsonValue]:
    """Return the field with the user's location; no field if the location is unknown."""
    place = tool.location
    if place is None:
        return {}
    fields: dict[str, JsonValue] = {
        "city": place.city,
        "region": place.region,
        "country": place.country.upper() if place.country else None,
        "timezone": place.timezone,
    }
    known_fields = {name: value for name, value in fields.items() if value}
    return {"user_location": {"type": "approximate", **known_fields}} if known_fields else {}
