"""Parses the server tools that a chat completion request enables."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from tollgate.core.content import ServerToolId
from tollgate.core.documents.reading import DocumentOptions
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.server_tools import SERVER_TOOLS, ServerTool
from tollgate.ingress.chat_completions.wire import plugins as wire
from tollgate.ingress.chat_completions.wire.request import ChatFields
from tollgate.ingress.shared.fields import extra_fields
from tollgate.ingress.shared.media import field_refusal
from tollgate.ingress.shared.server_tool_options import (
    parse_domains,
    parse_location,
    require_each_once,
    require_one_reading,
    results_of,
)
from tollgate.ingress.shared.wire.server_tool_fields import PdfEngine
from tollgate.ingress.validation import validate_object

_IDS: Final[Mapping[str, tuple[ServerToolId, ...]]] = {
    **{tool: (tool,) for tool in SERVER_TOOLS},
    # OpenRouter's older name for a plugin that searches and fetches.
    "web": ("web_search", "web_fetch"),
}


_PDF: Final = "pdf"


def read_plugins(chat: ChatFields) -> wire.PluginFields:
    """Return the fields that enable tools; raise RequestError if they are invalid."""
    fields = {"plugins": chat.plugins, "web_search_options": chat.web_search_options}
    return validate_object(wire.PluginFields, fields)


def parse_reading(fields: wire.PluginFields) -> DocumentOptions | None:
    """Return the options for reading documents; raise RequestError with the field at fault."""
    return require_one_reading(
        [
            DocumentOptions(
                engine=_engine(plugin.engine, f"{path}.engine"),
                pages_max=plugin.pages_max,
                field=f"{path}.engine" if plugin.engine else f"{path}.id",
            )
            for path, plugin in _enabled(fields)
            if plugin.id == _PDF
        ]
    )


def _enabled(fields: wire.PluginFields) -> Iterator[tuple[str, wire.Plugin]]:
    for number, plugin in enumerate(fields.plugins or ()):
        if plugin.enabled is not False:
            yield f"plugins[{number}]", plugin


def _engine(engine: str | None, path: str) -> PdfEngine | None:
    match engine:
        case None | "text" | "images" | "native" | "ocr":
            return engine
        case _:
            raise field_refusal(path, "must be 'text', 'images', 'native' or 'ocr'")


def parse_plugins(fields: wire.PluginFields, *, all_events: bool) -> tuple[ServerTool, ...]:
    """Return the enabled tools; raise RequestError with the field at fault."""
    search = fields.web_search_options
    tools = [
        tool
        for path, plugin in _enabled(fields)
        if plugin.id != _PDF
        for tool in _tools(plugin, f"{path}.id", all_events=all_events)
    ]
    if search is not None:
        location = search.user_location.approximate if search.user_location else None
        tools.append(
            ServerTool(
                id="web_search",
                results_max=results_of(search.search_context_size),
                location=parse_location(location),
                events=all_events,
                field="web_search_options",
            )
        )
    return require_each_once(tools)


def _tools(plugin: wire.Plugin, path: str, *, all_events: bool) -> Iterator[ServerTool]:
    ids = _IDS.get(plugin.id)
    if ids is None:
        plugin_ids = (*_IDS, _PDF)
        nearest = get_close_matches(plugin.id.lower(), plugin_ids, n=1)
        hint = f" Did you mean '{nearest[0]}'?" if nearest else ""
        id_list = ", ".join(plugin_ids)
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"{path} must be one of {id_list}.{hint}", param=path
        )
    for id_ in ids:
        yield ServerTool(
            id=id_,
            uses_max=plugin.max_uses,
            results_max=plugin.max_results,
            allowed_domains=parse_domains(plugin.allowed_domains, plugin.include_domains),
            blocked_domains=parse_domains(plugin.blocked_domains, plugin.exclude_domains),
            location=parse_location(plugin.user_location),
            events=all_events or bool(plugin.events),
            field=path,
        )


def unknown_plugin_fields(fields: wire.PluginFields) -> Iterator[str]:
    """Yield the names of options that have no effect."""
    for plugin in fields.plugins or ():
        yield from extra_fields(plugin, "plugins[].")
        if plugin.engine is not None and plugin.id != _PDF:
            # OpenRouter uses this field for the search engine, which is set in routing.yaml here.
            yield "plugins[].engine"
        yield from extra_fields(plugin.user_location, "plugins[].user_location.")
    yield from extra_fields(fields.web_search_options, "web_search_options.")
