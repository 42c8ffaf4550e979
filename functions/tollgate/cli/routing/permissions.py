"""`tollgate permissions`: give the chat function the permissions for a routing file, and no more.

The statements stand in the template itself, between two marks, so that a pull request that adds a
model or a provider shows the new permissions of the chat function.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from tollgate.cli.options import routing_file
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.file.permissions import NotPermissible, Permissions, compile_permissions
from tollgate.routing.file.problems import InvalidRouting
from tollgate.settings import Settings

BEGIN: Final = "# routing.yaml begins; `tollgate permissions` writes what follows"
END: Final = "# routing.yaml ends"

_MARKED: Final = re.compile(
    rf"(?P<indent>^ *){re.escape(BEGIN)}\n(?P<between>.*?)^ *{re.escape(END)}$", re.M | re.S
)


@click.command()
@routing_file
@click.option(
    "--template",
    default=Path("infra/template.yaml"),
    show_default=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The template whose marked lines are rewritten.",
)
@click.option("--check", is_flag=True, help="Change nothing; exit status 1 if lines would change.")
def permissions(file: Path, template: Path, check: bool) -> None:
    """Write into the template which models FILE may invoke and which secrets it may read."""
    try:
        needed = compile_permissions(compile_catalog(file, variables=Settings().variables).routing)
    except (InvalidRouting, NotPermissible) as invalid:
        raise click.ClickException(f"{file.as_posix()} must not be used.\n{invalid}") from invalid
    before = template.read_text()
    after = write_permissions(before, needed)
    if before == after:
        click.echo(f"{template.as_posix()} allows exactly what {file.as_posix()} names")
        return
    if check:
        raise click.ClickException(
            f"{template.as_posix()} does not allow exactly what {file.as_posix()} names; "
            "`tollgate permissions` rewrites it, to be reviewed and committed"
        )
    template.write_text(after)
    click.echo(f"{template.as_posix()}: permissions rewritten; review and commit them")


def list_missing(template: str, needed: Permissions) -> list[str]:
    """List the ARNs that a deployed template does not name, in YAML or in JSON."""
    arns = (
        *needed.models,
        *needed.secrets,
        *needed.guardrails,
        *needed.sagemaker_endpoints,
    )
    return [arn for arn in arns if not re.search(rf"{re.escape(arn)}(?![\w.:/?-])", template)]


def write_permissions(template: str, needed: Permissions) -> str:
    """Return the template with these permissions between its marks; ClickException without."""
    found = _MARKED.search(template)
    if found is None:
        raise click.ClickException(f"the template has no lines {BEGIN!r} and {END!r}")
    indent = found["indent"]
    lines = [BEGIN, *_statements(needed), END]
    written = "\n".join(f"{indent}{line}" for line in lines)
    return template[: found.start()] + written + template[found.end() :]


def _statements(needed: Permissions) -> Iterator[str]:
    yield from _statement("secretsmanager:GetSecretValue", needed.secrets)
    yield from _statement("bedrock:ApplyGuardrail", needed.guardrails)
    yield from _statement("bedrock:InvokeModelWithResponseStream", needed.models)
    yield from _statement("bedrock:ApplyGuardrail", needed.guardrails)
    # By its API reference (2026-11-21) the streaming call needs this action too.
    yield from _statement("sagemaker:InvokeEndpoint", needed.sagemaker_endpoints)


def _statement(action: str, arns: Sequence[str]) -> Iterator[str]:
    if arns:
        yield "- Effect: Allow"
        yield f"  Action: {action}"
        yield "  Resource:"
        yield from (f"    - !Sub {arn}" for arn in arns)
