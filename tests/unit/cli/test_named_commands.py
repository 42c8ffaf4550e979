"""Commands that messages, pages and examples name are commands of the command line."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.cells import cells
from tests.local_server import ROOT
from tollgate.cli.gateway.keys import keys
from tollgate.cli.main import main

_QUOTED = re.compile(r"`tollgate ([^`]+)`")
_TYPED = re.compile(r"^(?:\$ )?tollgate (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def named(path: Path) -> Iterator[str]:
    """Yield each command that a page, or a text of a module, names."""
    text = path.read_text()
    if path.suffix == ".md":
        yield from _QUOTED.findall(text)
        for block in _BLOCK.findall(text):
            yield from _TYPED.findall(block.replace("\\\n", " "))
        return
    # Most modules name no command, and parsing them takes seconds of each test process.
    if not _QUOTED.search(text):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _QUOTED.findall(node.value)


def context_of(
    command: click.Command, name: str, parent: click.Context | None = None
) -> click.Context:
    """Return the context in which the command line runs a command."""
    return click.Context(command, parent, info_name=name, **command.context_settings)


def problem(command: str) -> str | None:
    """Return what the command line does not know of a command, None if it knows all."""
    context = context_of(main, "tollgate")
    words = re.split(r"[#|]", command)[0].split()
    while isinstance(context.command, click.Group) and words and not words[0].startswith("-"):
        found = context.command.get_command(context, words[0])
        if found is None:
            return f"no command {words[0]}"
        context, words = context_of(found, words[0], context), words[1:]
    names = {
        name
        for option in context.command.get_params(context)
        for name in (*option.opts, *option.secondary_opts)
    }
    used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    unknown = sorted(used - names - {"--help", "-h", "--version"})
    return f"no option {', '.join(unknown)}" if unknown else None


_PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "formats").glob("*.md")),
    *sorted((ROOT / "infra").rglob("*.md")),
    *sorted((ROOT / "functions" / "tollgate").rglob("*.py")),
]


@cells(
    "path", [path for path in _PAGES if any(named(path))], ids=lambda it: str(it.relative_to(ROOT))
)
def test_every_command_that_is_named_exists(path: Path) -> None:
    found = {command: problem(command) for command in named(path)}
    assert {command: wrong for command, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("credits grant", "no command grant"),
        ("nothing", "no command nothing"),
        ("keys ls --nothing", "no option --nothing"),
        ("keys ls --json", None),
        ("credits add 25 --id x   # a comment --nothing", None),
    ],
)
def test_what_counts_as_existing(command: str, wrong: str | None) -> None:
    assert problem(command) == wrong


def commands_run(context: click.Context) -> Iterator[click.Context]:
    """Yield the context of each command that does something without a subcommand."""
    command = context.command
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands_run(context_of(found, name, context))


def misuse(context: click.Context, example: str) -> str | None:
    """Return why click refuses an example of a command, None if click accepts it.

    Values are converted as well, except those of files, which an example cannot rely on.
    """
    path = f"{context.command_path} "
    if not f"{example} ".startswith(path):
        return "another command"
    command = context.command
    words = shlex.split(re.split(r" [|>] ", example[len(path) - 1 :])[0])
    try:
        values, left, _ = command.make_parser(context).parse_args(words)
        for option in command.get_params(context):
            value = values.get(option.name or "")
            if option.required and option.value_is_missing(value):
                return f"no {option.name}"
            if isinstance(value, str | list | tuple) and not isinstance(
                option.type, click.Path | click.File
            ):
                option.type_cast_value(context, value)
    except click.UsageError as refused:
        return refused.format_message()
    return f"left over: {left}" if left else None


def test_the_help_of_every_command_ends_with_an_example_that_click_accepts() -> None:
    wrong = {}
    for context in commands_run(context_of(main, "tollgate")):
        # The example is one line, so that it can be copied.
        last = context.command.get_help(context).splitlines()[-1]
        shown, _, example = last.strip().partition(": ")
        problem_found = misuse(context, example) if shown == "Example" else f"no example: {last}"
        if problem_found:
            wrong[context.command_path] = problem_found
    assert wrong == {}


@pytest.mark.parametrize(
    ("example", "wrong"),
    [
        ("tollgate keys rotate", "no name"),
        ("tollgate keys rotated ci", "another command"),
        ("tollgate keys rotate ci cd", "left over: ['cd']"),
        (
            "tollgate keys rotate ci --gracious 7d",
            "No such option '--gracious'. Did you mean '--grace'?",
        ),
        ("tollgate keys rotate ci --grace 7d > secret.txt", None),
    ],
)
def test_an_example_that_cannot_be_run_is_found(example: str, wrong: str | None) -> None:
    context = context_of(keys, "keys", context_of(main, "tollgate"))
    assert misuse(context_of(keys.commands["rotate"], "rotate", context), example) == wrong
