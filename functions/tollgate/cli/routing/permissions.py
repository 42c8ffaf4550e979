"""`tollgate permissions`: grant the chat function only the permissions that a routing file needs.

The statements are in the template between two marks, so that a pull request that adds a model or a
provider shows the new permissions. Two other marks enclose the pairs of secrets and hosts. These
pairs are metadata of the function's role, because a stack update cannot change only the metadata
of the template itself ("CloudFormation template Metadata syntax", 2026-11).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from tollgate.cli.options import routing_file
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.file.permissions import (
    MantleGrant,
    NotPermissible,
    Permissions,
    compile_permissions,
)
from tollgate.routing.file.problems import InvalidRouting
from tollgate.settings import Settings

BEGIN: Final = "# routing.yaml begins; `tollgate permissions` writes what follows"
END: Final = "# routing.yaml ends"
BEDROCK_BEGIN: Final = (
    "# Bedrock in routing.yaml begins; `tollgate permissions` writes what follows"
)
BEDROCK_END: Final = "# Bedrock in routing.yaml ends"
HOSTS_BEGIN: Final = "# hosts of routing.yaml begin; `tollgate permissions` writes what follows"
HOSTS_END: Final = "# hosts of routing.yaml end"

_PINS: Final = "KeyHosts"
_ANCHOR: Final = "bedrock_"
_BEDROCK_ACTION: Final = "  Action: bedrock"


@click.command()
@routing_file
@click.option(
    "--template",
    default=Path("infra/template.yaml"),
    show_default=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Template whose marked lines are rewritten.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if lines would change.")
def permissions(file: Path, template: Path, check: bool) -> None:
    """Write the permissions that FILE needs, and the hosts for each secret, to the template."""
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


def read_pins(template: Path) -> frozenset[str] | None:
    """Return the pairs of secrets and hosts in a template; None without a template or marks."""
    if not template.is_file():
        return None
    marked = re.search(
        rf"{re.escape(HOSTS_BEGIN)}\n(.*?){re.escape(HOSTS_END)}", template.read_text(), re.S
    )
    return frozenset(re.findall(r"^ *- (\S+)$", marked[1], re.M)) if marked else None


def list_missing(template: str, needed: Permissions) -> list[str]:
    """Return the needed ARNs and pairs that a deployed template, in YAML or JSON, lacks."""
    return [name for name in needed.all_names if not _names(template, name)]


def _names(template: str, name: str) -> bool:
    return re.search(rf"(?<![\w.:/>-]){re.escape(name)}(?![\w.:/?-])", template) is not None


def write_permissions(template: str, needed: Permissions) -> str:
    """Return the template with these permissions; raise ClickException if it has no marks."""
    hosts = [f"{_PINS}:", *(f"  - {pin}" for pin in needed.key_hosts)]
    if not needed.key_hosts:
        hosts = [f"{_PINS}: []"]
    template = _replace_marked(template, HOSTS_BEGIN, HOSTS_END, hosts)
    statements = _statements(needed)
    # Release 1.0.0's template has no separate role for Bedrock.
    if BEDROCK_BEGIN in template:
        statements = _anchored(statements)
        lines = list(_policies_of_bedrock(needed))
        template = _replace_marked(template, BEDROCK_BEGIN, BEDROCK_END, lines)
    return _replace_marked(template, BEGIN, END, list(statements))


def _replace_marked(template: str, begin: str, end: str, lines: Sequence[str]) -> str:
    marked = rf"(?P<indent>^ *){re.escape(begin)}\n.*?^ *{re.escape(end)}$"
    found = re.search(marked, template, re.M | re.S)
    if found is None:
        raise click.ClickException(f"the template has no lines {begin!r} and {end!r}")
    written = "\n".join(f"{found['indent']}{line}" for line in (begin, *lines, end))
    return template[: found.start()] + written + template[found.end() :]


def _statements(needed: Permissions) -> Iterator[str]:
    yield from _statement("secretsmanager:GetSecretValue", needed.secrets)
    yield from _statement("bedrock:ApplyGuardrail", needed.guardrails)
    yield from _statement("bedrock:CountTokens", needed.counted_models)
    yield from _statement("bedrock:InvokeModelWithResponseStream", needed.models)
    whole = (*needed.whole_models, *needed.bedrock_projects)
    yield from _statement("bedrock:InvokeModel", sorted(whole))
    yield from _mantle_statements("bedrock-mantle:CreateInference", needed.mantle)
    yield from _mantle_statements("bedrock-mantle:CountTokens", needed.mantle_counted)
    # SageMaker's streaming call needs this action too (API reference, 2026-11-21).
    yield from _statement("sagemaker:InvokeEndpoint", needed.sagemaker_endpoints)
    for action in needed.actions:
        yield from ("- Effect: Allow", f"  Action: {action}", '  Resource: "*"')


def _anchored(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines, with a YAML anchor at each statement about Bedrock."""
    written, number = list(lines), 0
    for place, line in enumerate(written):
        if "".join(written[place + 1 : place + 2]).startswith(_BEDROCK_ACTION):
            number += 1
            yield f"- &{_ANCHOR}{number}"
            yield f"  {line.removeprefix('- ')}"
        else:
            yield line


def _policies_of_bedrock(needed: Permissions) -> Iterator[str]:
    """Yield the policies of the role for Bedrock, which refer to the anchored statements."""
    number = sum(line.startswith(_BEDROCK_ACTION) for line in _statements(needed))
    if not number:
        yield "Policies: []"
        return
    yield "Policies:"
    yield "  - PolicyName: bedrock"
    yield "    PolicyDocument:"
    yield '      Version: "2012-10-17"'
    names = ", ".join(f"*{_ANCHOR}{place}" for place in range(1, number + 1))
    yield f"      Statement: [{names}]"


def _statement(action: str, arns: Sequence[str]) -> Iterator[str]:
    if arns:
        yield "- Effect: Allow"
        yield f"  Action: {action}"
        yield "  Resource:"
        yield from (f"    - !Sub {arn}" for arn in arns)


def _mantle_statements(action: str, grants: Sequence[MantleGrant]) -> Iterator[str]:
    for grant in grants:
        yield from _statement(action, (grant.resource,))
        yield "  Condition:"
        yield "    StringEquals:"
        yield "      bedrock-mantle:Model:"
        yield from (f"        - {model}" for model in grant.models)
