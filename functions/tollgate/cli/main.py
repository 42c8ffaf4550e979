"""The command `tollgate`, which imports a subcommand's module only to run the subcommand."""

from typing import Any, Final

import click
from click.shell_completion import CompletionItem
from msgspec import Struct
from typing_extensions import override

from tollgate import DISTRIBUTION
from tollgate.core.dotted_names import DottedName, import_object


class _Entry(Struct, frozen=True):
    """A subcommand, with its module and attribute."""

    module: str
    """Module below tollgate.cli; the first part names the section in `--help`."""
    attribute: str
    summary: str

    @property
    def section(self) -> str:
        return self.module.partition(".")[0]


# Imported only if settings are invalid, because the import of pydantic is slow.
_SETTINGS: Final = DottedName[Any]("tollgate.settings:Settings")
# Headings in `--help`, in the order in which new users need their commands.
_SECTIONS: Final = {
    "repository": "Repository of a gateway",
    "routing": "Routing file",
    "catalog": "Models and prices",
    "stack": "Deployed stack",
    "server": "Server",
    "gateway": "Running gateway",
}
_ENTRIES: Final = {
    "access": _Entry("gateway.access", "access", "Plan and apply a file of people and keys."),
    "audit": _Entry("gateway.audit", "audit", "List who did what, and when."),
    "build": _Entry("stack.build", "build", "Build the functions for Lambda."),
    "canary": _Entry("stack.publish", "canary", "Try a catalog with a share of the keys."),
    "catalog": _Entry("catalog.refresh", "catalog_commands", "Update prices in a routing file."),
    "catalogs": _Entry("stack.catalogs", "catalogs", "List published catalogs and their prices."),
    "check": _Entry("routing.check", "check", "Report the errors in a routing file."),
    "compile": _Entry("routing.check", "compile_file", "Write the catalog that functions read."),
    "credits": _Entry("gateway.credits", "credit", "Show, add, pay, refund and adjust money."),
    "deploy": _Entry("stack.deploy", "deploy", "Build and deploy a stack, and publish to it."),
    "dev": _Entry("server.dev", "dev", "Serve the gateway on this machine."),
    "doctor": _Entry("stack.doctor", "doctor", "Report whether a deployed stack works."),
    "explain": _Entry("routing.explain", "explain", "Show where a request would go, and why."),
    "first-key": _Entry("stack.first_key", "first_key", "Create the first management key."),
    "generations": _Entry("gateway.generations", "generations", "List generations, explain costs."),
    "import": _Entry(
        "catalog.import_config", "import_commands", "Convert another gateway's config."
    ),
    "keys": _Entry("gateway.keys", "keys", "Create, list, rotate and disable keys."),
    "init": _Entry("repository.init", "init", "Create the repository of a gateway."),
    "login": _Entry("gateway.login", "login", "Sign in with your identity provider."),
    "logout": _Entry("gateway.login", "logout", "End your session."),
    "subprocessors": _Entry(
        "routing.subprocessors", "subprocessors", "List the recipients of data, and their regions."
    ),
    "token": _Entry("gateway.login", "token", "Print an access token for agents."),
    "plan": _Entry("routing.plan", "plan", "Show the effects of a routing change, in dollars."),
    "serve": _Entry("server.serve", "serve", "Serve the gateway on any host."),
    "sessions": _Entry("gateway.sessions", "sessions", "List and end the sessions of a member."),
    "shadow": _Entry("gateway.shadow", "shadow", "Compare shadow models with the originals."),
    "spend": _Entry("gateway.spend", "spend", "Show a month's costs by model, key, day or label."),
    "reconcile": _Entry("gateway.reconcile", "reconcile", "Compare an invoice with the records."),
    "statement": _Entry("gateway.statement", "statement", "Show a month's balances and usage."),
    "models": _Entry("routing.models", "models", "Add a model to a routing file."),
    "batches": _Entry("gateway.batches", "batches", "Run files of requests, and get results."),
    "webhooks": _Entry("gateway.webhooks", "webhooks", "Send a workspace's events to addresses."),
    "workspaces": _Entry("gateway.workspaces", "workspaces", "Create, list and lock workspaces."),
    "subjects": _Entry("gateway.subjects", "subjects", "Erase, export and hold personal data."),
    "export": _Entry("server.upkeep", "export", "Write the tables for a day again, for BI."),
    "upgrade": _Entry("repository.upgrade", "upgrade", "Change the version, and show the effects."),
    "upkeep": _Entry("server.upkeep", "upkeep", "Run the scheduled functions' work once."),
    "members": _Entry("gateway.levels", "members", "Add, list, limit and remove members."),
    "teams": _Entry("gateway.levels", "teams", "Create, list, limit and delete teams."),
    "permissions": _Entry("routing.permissions", "permissions", "Grant the needed permissions."),
    "publish": _Entry("stack.publish", "publish", "Make a stack serve a routing file."),
    "rollback": _Entry("stack.publish", "rollback", "Return to the previous catalog."),
}


class _LazyGroup(click.Group):
    """A click group that lists, completes and suggests commands without importing them."""

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
            # click suggests only loaded commands, but commands are not loaded before they run.
            raise click.NoSuchCommand(
                unknown.command_name, possibilities=_ENTRIES, ctx=ctx
            ) from None

    @override
    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as missing:
            if missing.name is None or missing.name.partition(".")[0] == "tollgate":
                raise
            raise click.ClickException(
                f"This command needs a library of the server, {missing.name}: install "
                f"tollgate-llm, not {DISTRIBUTION} alone."
            ) from missing
        except ValueError as failure:
            explained = _explain_invalid_settings(failure)
            if explained is None:
                raise
            raise click.ClickException(explained) from failure

    @override
    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
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
    # Subcommands inherit these settings.
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog='Completion: `eval "$(_TOLLGATE_COMPLETE=bash_source tollgate)"` in ~/.bashrc; '
    "zsh_source instead of bash_source in ~/.zshrc; for fish "
    "`_TOLLGATE_COMPLETE=fish_source tollgate | source` in its config.fish.",
)
@click.version_option(package_name=DISTRIBUTION, message="%(prog)s %(version)s")
def main() -> None:
    """Run an OpenAI-compatible LLM gateway whose routing is a reviewed file."""


def _explain_invalid_settings(failure: ValueError) -> str | None:
    """Return which settings in the environment are invalid and why; None if the failure has another
    cause.

    The message leaves out values, since some are secrets.
    """
    # Many commands have no settings, and importing pydantic is slow.
    from pydantic import ValidationError

    settings = _SETTINGS()
    if not isinstance(failure, ValidationError) or failure.title != settings.__name__:
        return None
    reasons = []
    for error in failure.errors(include_url=False, include_context=False, include_input=False):
        # An error names a field by its name or by its alias, which is a variable.
        field = str(error["loc"][0])
        variable = f"TOLLGATE_{field.upper()}" if field in settings.model_fields else field
        reasons.append(f"{variable}: {error['msg']}.")
    return "The environment has settings that cannot be read. " + " ".join(reasons)
