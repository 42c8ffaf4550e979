"""Pages that are made from the code: the command line, the API, the settings, and the errors."""

import ast
import inspect
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import click

from infra.artefact.openapi import write_openapi_document
from tollgate import settings
from tollgate.cli.main import main
from tollgate.ingress.errors import STATUS
from tollgate.routing.file.compile import compile_catalog

_COLUMNS: Final = 100
_METHODS: Final = ("get", "post", "put", "patch", "delete")


def write_references(routing_file: Path) -> Mapping[str, str]:
    """Return the text of each page by its name."""
    return {
        "command-line": "\n".join(_describe_commands()),
        "api": "\n".join(_describe_routes(routing_file)),
        "settings": "\n".join(_describe_settings()),
        "errors": "\n".join(_describe_errors()),
    }


def _describe_commands() -> Iterator[str]:
    yield "# Command line\n"
    for path, command in _walk(main, "tollgate"):
        context = click.Context(command, info_name=path, max_content_width=_COLUMNS)
        yield f"## {path}\n\n```text\n{command.get_help(context)}\n```\n"


def _walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path)
        for name in sorted(command.list_commands(context)):
            if (known := command.get_command(context, name)) is not None and not known.hidden:
                yield from _walk(known, f"{path} {name}")


def _describe_routes(routing_file: Path) -> Iterator[str]:
    """Yield a table of the routes for each tag of the OpenAPI document."""
    document = json.loads(write_openapi_document(compile_catalog(routing_file).content))
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method in _METHODS:
            if method in operations:
                operation = operations[method]
                first = (operation.get("description") or operation["summary"]).split("\n\n")[0]
                row = f"| `{method.upper()} {path}` | {_cell(first)} |"
                by_tag.setdefault(operation["tags"][0], []).append(row)
    yield "# API\n"
    yield (
        "The routes of the API function; a gateway serves this document as `/v1/openapi.json`. The "
        "routes that call models are described by [format](../docs/formats.md).\n"
    )
    for tag in sorted(by_tag):
        yield f"## {tag}\n\n| route | does |\n|---|---|"
        yield from by_tag[tag]
        yield ""


def _describe_settings() -> Iterator[str]:
    """Yield a table of the environment variables, with the texts below the fields in the code."""
    yield "# Settings\n"
    yield "Environment variables, which the template sets on AWS and an operator elsewhere.\n"
    yield "| variable | default | meaning |\n|---|---|---|"
    texts = _field_texts()
    prefix = settings.Settings.model_config["env_prefix"]
    for name, field in settings.Settings.model_fields.items():
        variable = field.alias or f"{prefix}{name.upper()}"
        default = "" if field.is_required() or field.default is None else f"`{field.default}`"
        yield f"| `{variable}` | {_cell(default)} | {_cell(texts.get(name, ''))} |"


def _field_texts() -> Mapping[str, str]:
    (definition,) = ast.parse(inspect.getsource(settings.Settings)).body
    texts: dict[str, str] = {}
    field = ""
    for statement in getattr(definition, "body", ()):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)):
                field = name
            case ast.Expr(value=ast.Constant(value=str(text))) if field:
                texts[field] = text
    return texts


def _describe_errors() -> Iterator[str]:
    yield "# Errors\n"
    yield "`error.code` of each error, with its HTTP status.\n"
    yield "| code | status |\n|---|---|"
    for code, status in STATUS.items():
        yield f"| `{code}` | {status} |"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
