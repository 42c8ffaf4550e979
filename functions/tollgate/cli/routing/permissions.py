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
BATCHES_BEGIN: Final = "# batches of routing.yaml begin; `tollgate permissions` writes what follows"
BATCHES_END: Final = "# batches of routing.yaml end"
ROLE_BEGIN: Final = "# role of routing.yaml begins; `tollgate permissions` writes what follows"
ROLE_END: Final = "# role of routing.yaml ends"
VARIABLES_BEGIN: Final = (
    "# variables of routing.yaml begin; `tollgate permissions` writes what follows"
)
VARIABLES_END: Final = "# variables of routing.yaml end"
OUTPUT_BEGIN: Final = "# output of routing.yaml begins; `tollgate permissions` writes what follows"
OUTPUT_END: Final = "# output of routing.yaml ends"

_PINS: Final = "KeyHosts"
_ROLE: Final = "!GetAtt BedrockBatchRole.Arn"
# Matches the files of all jobs, whose folders `batch_folder` names (stores/rules/object_names.py).
_JOBS: Final = "batches/*/jobs/*"
_ANCHOR: Final = "bedrock_"
_BEDROCK_ACTION: Final = "  Action: bedrock"


@click.command(epilog="Example: tollgate permissions --check")
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
    template = _replace_marked(template, BEGIN, END, list(statements))
    batches = bool(needed.batch_models)
    for begin, end, lines in (
        (BATCHES_BEGIN, BATCHES_END, [*_batch_statements(needed)] if batches else []),
        (ROLE_BEGIN, ROLE_END, [*_batch_role(needed)] if batches else []),
        (
            VARIABLES_BEGIN,
            VARIABLES_END,
            [f"TOLLGATE_BEDROCK_BATCH_ROLE: {_ROLE}"] if batches else [],
        ),
        (
            OUTPUT_BEGIN,
            OUTPUT_END,
            ["BedrockBatchRoleArn:", f"  Value: {_ROLE}"] if batches else [],
        ),
    ):
        # Templates of earlier versions lack these marks.
        if lines or begin in template:
            template = _replace_marked(template, begin, end, lines)
    return template


def _replace_marked(template: str, begin: str, end: str, lines: Sequence[str]) -> str:
    marked = rf"(?P<indent>^ *){re.escape(begin)}\n.*?^ *{re.escape(end)}$"
    if re.search(marked, template, re.M | re.S) is None:
        raise click.ClickException(f"the template has no lines {begin!r} and {end!r}")

    def written(found: re.Match[str]) -> str:
        return "\n".join(f"{found['indent']}{line}" for line in (begin, *lines, end))

    return re.sub(marked, written, template, flags=re.M | re.S)


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
        yield from _allow(action, '"*"')


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


def _batch_statements(needed: Permissions) -> Iterator[str]:
    """Yield the statements for the function that submits lines to Bedrock's batches."""
    create = (*needed.batch_models, *needed.batch_jobs)
    yield from _statement("bedrock:CreateModelInvocationJob", create)
    actions = "[bedrock:GetModelInvocationJob, bedrock:StopModelInvocationJob]"
    yield from _statement(actions, needed.batch_jobs)
    # IAM cannot limit the list of jobs to certain resources.
    yield from _allow("bedrock:ListModelInvocationJobs", '"*"')
    yield from _allow("iam:PassRole", _ROLE)
    yield '  Condition: {StringEquals: {"iam:PassedToService": bedrock.amazonaws.com}}'


def _batch_role(needed: Permissions) -> Iterator[str]:
    """Yield the role by which Bedrock reads and writes the files of batches."""
    yield from (
        "BedrockBatchRole:",
        "  Type: AWS::IAM::Role",
        "  Properties:",
        "    Description: Lets Bedrock read and write the files of batches",
        "    AssumeRolePolicyDocument:",
        '      Version: "2012-10-17"',
        "      Statement:",
        "        - Effect: Allow",
        "          Principal: {Service: bedrock.amazonaws.com}",
        "          Action: sts:AssumeRole",
        "          Condition:",
        '            StringEquals: {"aws:SourceAccount": !Ref AWS::AccountId}',
        "            ArnLike:",
        '              "aws:SourceArn":',
        *(f"                - !Sub {jobs}" for jobs in needed.batch_jobs),
        "    Policies:",
        "      - PolicyName: batches",
        "        PolicyDocument:",
        '          Version: "2012-10-17"',
        "          Statement:",
    )
    statements = (
        "- Effect: Allow",
        "  Action: [s3:GetObject, s3:PutObject]",
        f"  Resource: !Sub ${{ObjectsBucket.Arn}}/{_JOBS}",
        # Bedrock lists the whole bucket: "Create a custom service role for batch inference" in the
        # Bedrock user guide (2026-11-28).
        *_allow("s3:ListBucket", "!GetAtt ObjectsBucket.Arn"),
        "- *use_key_in_bucket",
        *_statement("bedrock:InvokeModel", needed.batch_profiles),
    )
    yield from (f"            {line}" for line in statements)


def _allow(action: str, resource: str) -> Iterator[str]:
    yield from ("- Effect: Allow", f"  Action: {action}", f"  Resource: {resource}")
