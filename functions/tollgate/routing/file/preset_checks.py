"""Finds presets that name unknown models or routes, models that are not for chat, or unconfigured
tools.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from tollgate.routing.file.document import Where, YamlDocument
from tollgate.routing.file.known_names import LoadedFile
from tollgate.routing.file.problems import Problem
from tollgate.routing.routing_file import RoutingFile


def check_presets(
    document: YamlDocument, main: RoutingFile, parts: Sequence[LoadedFile]
) -> Iterator[Problem]:
    """Yield the problems in `presets`; `parts` are the files of production."""
    models = {slug: model for part in parts for slug, model in part.content.models.items()}
    aliases = {name: alias.to for part in parts for name, alias in part.content.aliases.items()}
    names = {*models, *aliases, *(name for part in parts for name in part.content.routes)}
    tools = {name for name, section in main.server_tools if section is not None}
    for slug, preset in main.presets.items():
        where: Where = ("presets", slug)
        if preset.model not in names:
            nearest = get_close_matches(preset.model, names, n=1)
            hint = f': did you mean "{nearest[0]}"?' if nearest else ""
            message = f'"{preset.model}" is not a model, alias or route{hint}'
            yield document.at_value((*where, "model"), "R021", message)
        target = models.get(_follow(aliases, preset.model))
        if target is not None and target.kind != "chat":
            message = f"{preset.model} is of kind {target.kind}, but presets are for chat"
            yield document.at_value((*where, "model"), "R058", message)
        for number, tool in enumerate(preset.tools):
            if tool not in tools:
                message = f'"{tool}" is not in server_tools'
                yield document.at_value((*where, "tools", number), "R021", message)


def _follow(aliases: Mapping[str, str], name: str) -> str:
    """Return the model or route of a name; another check reports cycles of aliases."""
    for _ in aliases:
        name = aliases.get(name, name)
    return name
