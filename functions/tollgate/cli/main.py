"""The command `tollgate`. A subcommand's module is imported only when the subcommand runs."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem
from msgspec import Struct
from typing_extensions import override

from tollgate.core.dotted_names import DottedName, import_object

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Imported only when settings are invalid, because many commands have no settings.
_EXPLAIN_INVALID_SETTINGS: Final = DottedName[Callable[[ValueError], str | None]](
    "tollgate.cli.invalid_settings:explain_invalid_settings"
)


class _Entry(Struct, frozen=True):
    """A subcommand, with the place from which it is imported."""

    module: str
    """Path below tollgate.cli; its first part names the section of `--help`."""
    attribute: str
    summary: str

    @property
    def section(self) -> str:
        return self.module.partition(".")[0]


# Section headings, in the order in which a newcomer needs the sections.
_SECTIONS: Final = {
    "routing": "Routing file",
    "catalog": "Models and prices",
    "stack": "Deployed stack",
    "server": "Server",
    "gateway": "Running gateway",
}
_ENTRIES: Final = {
    "audit": _Entry("gateway.audit", "audit", "List who changed what, and when."),
    "canary": _Entry("stack.publish", "canary", "Try a catalog on a share of the keys."),
    "catalog": _Entry(
        "catalog.refresh", "catalog_commands", "Keep a routing file in step with published prices."
    ),
    "catalogs": _Entry("stack.catalogs", "catalogs", "List published catalogs, show their prices."),
    "check": _Entry("routing.check", "check", "Report the errors of a routing file."),
    "compile": _Entry("routing.compile", "compile_file", "Write the catalog that functions read."),
    "credits": _Entry("gateway.credits", "credit", "Show, add, pay, refund and adjust money."),
    "dev": _Entry("server.dev", "dev", "Serve the gateway on this machine."),
    "doctor": _Entry("stack.doctor", "doctor", "Report whether a deployed stack works."),
    "explain": _Entry("routing.explain", "explain", "Show where a request would go, and why."),
    "first-key": _Entry("stack.first_key", "first_key", "Make the first management key."),
    "generations": _Entry(
        "gateway.generations", "generations", "List generations, explain what one cost."
    ),
    "import": _Entry(
        "catalog.import_config", "import_commands", "Convert the config of another gateway."
    ),
    "keys": _Entry("gateway.keys", "keys", "Make, list, rotate and stop keys."),
    "login": _Entry("gateway.login", "login", "Sign in with your identity provider."),
    "logout": _Entry("gateway.login", "logout", "End your session."),
    "token": _Entry("gateway.login", "token", "Print your session's access token, for agents."),
    "plan": _Entry("routing.plan", "plan", "Show what a change of routing does, in dollars."),
    "serve": _Entry("server.serve", "serve", "Serve the tables of a stack on any host."),
    "sessions": _Entry("gateway.sessions", "sessions", "List and end the sessions of a member."),
    "spend": _Entry("gateway.spend", "spend", "Show what a month cost, by team, model or other."),
    "reconcile": _Entry("gateway.reconcile", "reconcile", "Compare a provider's invoice."),
    "statement": _Entry("gateway.statement", "statement", "Show the money of a month."),
    "models": _Entry("routing.models", "models", "Add a model to a routing file."),
    "webhooks": _Entry("gateway.webhooks", "webhooks", "Send a workspace's events to addresses."),
    "workspaces": _Entry(
        "gateway.workspaces", "workspaces", "Make, list, budget and lock workspaces."
    ),
    "export": _Entry("server.export", "export", "Write the tables of a day again, for BI."),
    "upkeep": _Entry("server.upkeep", "upkeep", "Run the scheduled functions' work once."),
    "members": _Entry("gateway.levels", "members", "Add, list, limit and remove members."),
    "teams": _Entry("gateway.levels", "teams", "Make, list, limit and delete teams."),
    "permissions": _Entry(
        "routing.permissions", "permissions", "Grant the functions what a file needs, no more."
    ),
    "publish": _Entry("stack.publish", "publish", "Let a stack serve a routing file."),
    "rollback": _Entry("stack.publish", "rollback", "Return to the catalog that was live before."),
}


class _LazyGroup(click.Group):
    """A click group that lists, completes and suggests commands without importing their modules."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_ENTRIES)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = _ENTRIES.get(cmd_name)
        if entry is None:
            return None
        command = import_object(f"tollgate.cli.{entry.module}:{entry.attribute}")
        if not isinstance(command, click.Command):
            raise TypeError(f"{entry.module}.{entry.attribute} is not a command")
        return command

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as unknown:
            # click suggests similar names only among loaded commands, and none are loaded here.
            raise click.NoSuchCommand(
                unknown.command_name, possibilities=_ENTRIES, ctx=ctx
            ) from None

    @override
    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except ValueError as failure:
            explained = _EXPLAIN_INVALID_SETTINGS()(failure)
            if explained is None:
                raise
            raise click.ClickException(explained) from failure

    @override
    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=_ENTRIES[name].summary) for name in names]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _ENTRIES))
        for section, heading in _SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (name.ljust(width), entry.summary)
                        for name, entry in sorted(_ENTRIES.items())
                        if entry.section == section
                    ]
                )


@click.group(
    cls=_LazyGroup,
    # Subcommands inherit this setting from the context of their parent.
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog='Completion: `eval "$(_TOLLGATE_COMPLETE=bash_source tollgate)"` in ~/.bashrc; '
    "zsh_source instead of bash_source in ~/.zshrc; for fish "
    "`_TOLLGATE_COMPLETE=fish_source tollgate | source` in its config.fish.",
)
@click.version_option(package_name="tollgate", message="%(prog)s %(version)s")
def main() -> None:
    """Run an OpenAI-compatible LLM gateway whose routing is a reviewed file."""
