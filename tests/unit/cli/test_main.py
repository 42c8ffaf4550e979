"""The command `tollgate` itself: help, version, suggestions, completion."""

import sys
from collections.abc import Iterator
from importlib.metadata import version

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from tollgate import DISTRIBUTION
from tollgate.cli.main import main


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="tollgate")


def command_paths(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[list[str]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        yield [*path, name]
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from command_paths(command, (*path, name))


def completions(*words: str) -> list[str]:
    *before, incomplete = words
    completion = ShellComplete(main, {}, "tollgate", "_TOLLGATE_COMPLETE")
    return [item.value for item in completion.get_completions(before, incomplete)]


def test_the_version_is_the_packages() -> None:
    result = run("--version")
    assert (result.exit_code, result.output) == (0, f"tollgate {version(DISTRIBUTION)}\n")


def test_every_command_has_help_under_both_names() -> None:
    for path in ([], *command_paths()):
        long, short = run(*path, "--help"), run(*path, "-h")
        assert (long.exit_code, long.output) == (0, short.output), path
        assert "-h, --help" in long.output


def test_commands_are_listed_once_under_the_heading_of_their_use() -> None:
    sections = {part.partition(":\n")[0]: part for part in run("--help").output.split("\n\n")}
    headings = {
        "Routing file",
        "Models and prices",
        "Repository of a gateway",
        "Deployed stack",
        "Server",
        "Running gateway",
    }
    listed = {
        heading: [line.split()[0] for line in part.splitlines()[1:]]
        for heading, part in sections.items()
        if heading in headings
    }
    assert listed["Server"] == ["dev", "export", "serve", "upkeep"]
    names = sorted(name for names in listed.values() for name in names)
    assert names == main.list_commands(click.Context(main))


@pytest.mark.parametrize(
    ("mistyped", "suggestion"),
    [
        (("pubish",), "No such command 'pubish'. Did you mean 'publish'?"),
        (("generation",), "No such command 'generation'. Did you mean 'generations'?"),
        (("keys", "lst"), "No such command 'lst'. Did you mean 'ls'?"),
        (("serve", "--prt"), "No such option '--prt'. Did you mean '--port'?"),
    ],
)
def test_a_mistyped_name_is_answered_with_the_likely_one(
    mistyped: tuple[str, ...], suggestion: str
) -> None:
    result = run(*mistyped)
    assert result.exit_code == 2
    assert suggestion in result.output


def test_a_name_like_no_other_gets_no_suggestion() -> None:
    assert run("xyzzy").output.endswith("Error: No such command 'xyzzy'.\n")


def test_names_of_commands_are_completed_without_importing_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # None in the place of a module makes its import an error.
    monkeypatch.setitem(sys.modules, "tollgate.cli.stack.publish", None)
    assert completions("pu") == ["publish"]
    assert isinstance(run("publish", "-h").exception, ImportError)


def test_subcommands_and_options_are_completed() -> None:
    assert completions("generations", "c") == ["content"]
    assert completions("serve", "--po") == ["--port"]
