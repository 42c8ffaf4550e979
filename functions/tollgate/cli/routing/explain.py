"""`tollgate explain`: the route of a request and the reasons, from a file or a running gateway."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final

import click
from click.core import ParameterSource
from msgspec.structs import replace
from pydantic import JsonValue
from pydantic_core import from_json

from tollgate.cli.gateway.command import open_gateway
from tollgate.cli.options import routing_option
from tollgate.cli.routing.chat_body import Described
from tollgate.cli.routing.check import compile_valid
from tollgate.cli.routing.explanation import render_explanation
from tollgate.cli.tables import as_json
from tollgate.core.clock import SystemClock
from tollgate.core.errors import ErrorCode, GatewayError
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.core.prompt_policy import parse_policy
from tollgate.engine.rounds.server_tools import plan_rounds
from tollgate.engine.routing.simulation import Fault
from tollgate.ingress.formats import CHAT_COMPLETIONS, FORMATS, Ingresses
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.planner import Planner
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.web.models.endpoint_status import EndpointStatus
from tollgate.web.routing.explained_parts import ExplainedCache, ExplainedShadow, explain_guardrails
from tollgate.web.routing.explanation_shapes import answer_time_s, explain_plan
from tollgate.wiring.services import wire_explained_tools

_PERCENT: Final = re.compile(r"100|[0-9]{1,2}", re.ASCII)
_KEEP_DEV: Final = "\nFiles included for development are left out; --dev keeps them."


@click.command(epilog="Example: tollgate explain smart --has tools --simulate 429@bedrock")
@click.argument("model", required=False)
@click.option(
    "--request", "given", type=click.File("rb"), help="A request in JSON; - reads standard input."
)
@click.option(
    "--format",
    "format_name",
    default=CHAT_COMPLETIONS.name,
    show_default=True,
    type=click.Choice([each.name for each in FORMATS]),
    help="The client format of the request.",
)
@click.option(
    "--prompt-tokens", type=click.IntRange(0, 10_000_000), help="Size of the prompt in tokens."
)
@click.option("--output-tokens", type=click.IntRange(1), help="The request's max_tokens.")
@click.option(
    "--has",
    multiple=True,
    type=click.Choice(["audio", "image", "pdf", "structured_output", "tools"]),
    help="A content part or a feature that the request has.",
)
@click.option("--metadata", multiple=True, metavar="NAME=VALUE", help="Metadata of the request.")
@click.option("--session", help="The request's session_id, which decides weighted draws.")
@click.option(
    "--budget-left",
    callback=lambda _ctx, _option, text: None if text is None else _percent(text),
    metavar="PERCENT",
    help="Share of the key's limits in USD that is left: 15%.",
)
@click.option("--simulate", multiple=True, metavar="KIND@WHERE", help="A failure: 429@openai.")
@routing_option("--file", "Routing file to explain from, unless a gateway is named.")
@click.option(
    "--production/--dev",
    default=True,
    help="Leave out or keep the files that FILE includes for development.",
)
@click.option("--tier", help="With a file: the tier of the key.")
@click.option(
    "--key-models", multiple=True, metavar="GLOB", help="With a file: the models of the key."
)
@click.option(
    "--prompt-policy",
    callback=lambda _ctx, _option, text: _policy(text),
    help="With a file: the prompt policy of the key, such as eu,no_training.",
)
@click.option("--at", type=click.DateTime(), help="With a file: the UTC time; now by default.")
@click.option(
    "--url",
    envvar="TOLLGATE_URL",
    show_envvar=True,
    help="Base URL of a gateway to ask instead of reading a file.",
)
@click.option("--secret", envvar="TOLLGATE_KEY", hidden=True)
@click.option("--json", "as_data", is_flag=True, help="Print JSON.")
@click.pass_context
def explain(ctx: click.Context, /, **options: Any) -> None:
    """Explain where a request for MODEL would go; nothing is sent to a provider.

    The exit status is 1 if the request would be refused or the simulation finds no endpoint.
    """
    described = Described(
        model=options["model"],
        prompt_tokens=options["prompt_tokens"],
        output_tokens_max=options["output_tokens"],
        has=options["has"],
        metadata=dict(_pair(text) for text in options["metadata"]),
        session=options["session"],
    )
    format_name: str = options["format_name"]
    body = _body(ctx, described, options["given"], format_name)
    if _asks_gateway(ctx, options["url"]):
        if ctx.get_parameter_source("url") is ParameterSource.ENVIRONMENT:
            click.echo(f"As {options['url']} routes it; --file reads a file instead.", err=True)
        api = open_gateway(options["url"], options["secret"])
        left: int | None = options["budget_left"]
        query = {
            "format": (format_name,),
            "simulate": options["simulate"],
            "budget_left": () if left is None else (str(left),),
        }
        answer = api.post("/route/explain", from_json(body), query)
    else:
        answer = _by_file(options, format_name, body)
    click.echo(as_json(answer) if options["as_data"] else "\n".join(render_explanation(answer)))
    if answer["error"] or (answer["simulation"] and answer["simulation"]["error"]):
        raise SystemExit(1)


def _asks_gateway(ctx: click.Context, url: str | None) -> bool:
    """Return whether to ask a gateway; if options for a file are given, a URL in the environment is
    ignored.
    """
    named_options = {
        name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    local = sorted(
        named_options & {"file", "production", "tier", "key_models", "prompt_policy", "at"}
    )
    if "url" in named_options and local:
        raise click.UsageError(
            f"--{local[0].replace('_', '-')} applies to a file, not to a gateway."
        )
    return url is not None and not local


def _body(
    ctx: click.Context, described: Described, file: BinaryIO | None, format_name: str
) -> bytes:
    """Return the request body; raise UsageError for options that the format does not allow."""
    request = _given(file, described.model)
    if format_name == CHAT_COMPLETIONS.name:
        return described.body(request)
    if file is None:
        raise click.UsageError(f"--format {format_name} needs a --request of that format.")
    for name in ("prompt_tokens", "output_tokens", "has", "metadata"):
        if ctx.params[name]:
            option = name.replace("_", "-")
            raise click.UsageError(f"--{option} describes a chat request, not {format_name}.")
    return described.named(request)


def _given(file: BinaryIO | None, model: str | None) -> dict[str, JsonValue]:
    if file is None:
        if model is None:
            raise click.UsageError("Give a model, or a request with --request.")
        return {}
    try:
        request = from_json(file.read())
    except ValueError as broken:
        raise click.UsageError(f"--request: {broken}") from broken
    if not isinstance(request, dict):
        raise click.UsageError("--request: the body must be a JSON object.")
    return request


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise click.UsageError(f"--metadata {text}: write NAME=VALUE.")
    return name, value


def _percent(text: str) -> int:
    digits = text.removesuffix("%")
    if not _PERCENT.fullmatch(digits):
        raise click.UsageError(f"--budget-left {text}: write a whole percent, such as 15%.")
    return int(digits)


def _policy(text: str | None) -> str | None:
    try:
        parse_policy(text, "key")
    except ValueError as unknown:
        raise click.UsageError(f"--prompt-policy {text}: {unknown}.") from unknown
    return text


def _by_file(options: Mapping[str, Any], format_name: str, body: bytes) -> Any:
    """Return the explanation that a gateway would give, computed from the file, without cooldowns
    and measured speeds.
    """
    compiled = compile_valid(options["file"], dev=not options["production"])
    catalog = Catalog.from_json(compiled.content)
    clock = SystemClock()
    ids = IdSource(clock)
    principal = Principal(
        key_id="local",
        workspace_id="local",
        role="inference",
        label="local",
        tier=options["tier"],
        models=options["key_models"] or None,
        key_policy=options["prompt_policy"],
    )
    try:
        parsed = Ingresses(ids)[format_name].parse(body)
        planner = Planner(catalog)
        make_tools = wire_explained_tools(clock)
        work, tools = plan_rounds(make_tools, planner, parsed.request, principal)
        wanted = PlanningRequest.of(
            work,
            principal=principal,
            request_id=ids.new_id(),
            rounds=tools.bound if tools else None,
            budget_left_percent=options["budget_left"],
        )
        at: datetime | None = options["at"]
        now_s = clock.now_s() if at is None else at.replace(tzinfo=UTC).timestamp()
        survey = planner.survey(wanted, now_s=now_s)
        parsed = replace(parsed, request=work)
        answer = explain_plan(
            survey,
            wanted,
            catalog.sha,
            faults=[Fault.parse(fault) for fault in options["simulate"]],
            time_s=answer_time_s(parsed, catalog.defaults.timeouts),
            status=EndpointStatus(),
            tools=tools,
            guardrails=explain_guardrails(planner, work, principal, survey, now_s=now_s),
            # A file does not say which key stores content or shares answers.
            cache=ExplainedCache.of(survey, catalog, None, parsed),
            shadow=ExplainedShadow.of(survey, catalog, None, parsed),
            work=work,
        )
    except GatewayError as refusal:
        hint = (
            _KEEP_DEV if options["production"] and refusal.code is ErrorCode.MODEL_NOT_FOUND else ""
        )
        raise click.ClickException(f"{refusal.message} ({refusal.code}){hint}") from refusal
    return answer.model_dump(mode="json")
