"""The command `tollgate`. A subcommand's module is imported when it runs, not before."""

from importlib import import_module
from typing import Final

import click
from msgspec import Struct
from typing_extensions import override


class _Entry(Struct, frozen=True):
    module: str
    attribute: str
    summary: str


_ENTRIES: Final = {
    "canary": _Entry("stack.publish", "canary", "Try a catalog on a share of the keys."),
    "catalogs": _Entry("stack.publish", "catalogs", "List what was published."),
    "check": _Entry("routing.check", "check", "Say what is wrong with a routing file."),
    "compile": _Entry("routing.compile", "compile_file", "Write what the functions read."),
    "credits": _Entry("gateway.credits", "credit", "Show and add a workspace's money."),
    "dev": _Entry("server.dev", "dev", "Serve the gateway on this machine."),
    "doctor": _Entry("stack.doctor", "doctor", "Say whether a deployed stack works."),
    "explain": _Entry("routing.explain", "explain", "Say where a request would go, and why."),
    "first-key": _Entry("stack.first_key", "first_key", "Make the first management key."),
    "generations": _Entry(
        "gateway.generations",
        "generations",
        "List generations, explain what one cost.",
    ),
    "keys": _Entry("gateway.keys", "keys", "Make, list, rotate and stop keys."),
    "plan": _Entry("routing.plan", "plan", "Say what a change of routing does, in dollars."),
    "serve": _Entry("server.serve", "serve", "Serve a stack's tables on any host."),
    "spend": _Entry("gateway.spend", "spend", "Show what a month cost, by team or model."),
    "models": _Entry("routing.models", "models", "Add a model to a routing file."),
    "upkeep": _Entry("server.upkeep", "upkeep", "Do what the scheduled functions do, once."),
    "permissions": _Entry(
        "routing.permissions",
        "permissions",
        "Allow the functions what a file names, no more.",
    ),
    "prices": _Entry("routing.prices", "prices", "Compare prices with published ones."),
    "publish": _Entry("stack.publish", "publish", "Let a stack serve a routing file."),
    "rollback": _Entry("stack.publish", "rollback", "Return to what was live before."),
}


class _LazyGroup(click.Group):
    """Lists commands by their summaries, so that `--help` imports none of them."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_ENTRIES)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = _ENTRIES.get(cmd_name)
        if entry is None:
            return None
        command = getattr(import_module(f"tollgate.cli.{entry.module}"), entry.attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{entry.module}.{entry.attribute} is not a command")
        return command

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _ENTRIES[name].summary) for name in sorted(_ENTRIES)])


@click.group(cls=_LazyGroup)
def main() -> None:
    """An OpenAI-compatible LLM gateway whose routing is a reviewed file."""
