"""Conversion of LiteLLM's settings to defaults and tiers, with notes on omitted settings."""

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from math import inf
from typing import Any, Final

from tollgate.cli.catalog.litellm_config import (
    FALLBACK_KINDS,
    ImportNote,
    LitellmConfig,
    as_mapping,
    name_list,
)

_RETRIES_MAX: Final = 2
_SECONDS_MAX: Final = 900
# LiteLLM's sections of budgets for keys, with the name of the tier that each section becomes.
_TIERS: Final = {
    "default_key_generate_params": "default",
    "upperbound_key_generate_params": "upper-bound",
    "default_internal_user_params": "internal-user",
}
# LiteLLM's retries by error, as far as the gateway retries such errors.
_RETRIES: Final = {
    "InternalServerErrorRetries": "provider_unavailable",
    "RateLimitErrorRetries": "provider_rate_limit",
}
_PERIODS: Final = {"24h": "day", "1d": "day", "7d": "week", "30d": "month", "1mo": "month"}
# Settings that need no note, because the import reads them or the gateway always behaves that way.
_KEPT: Final = frozenset(
    {
        "litellm_settings.drop_params",
        "litellm_settings.include_cost_in_streaming_usage",
        "litellm_settings.modify_params",
        "litellm_settings.num_retries",
        "litellm_settings.request_timeout",
        "litellm_settings.telemetry",
        "router_settings.allowed_fails",
        "router_settings.cooldown_time",
        "router_settings.enable_pre_call_checks",
        "router_settings.model_group_alias",
        "router_settings.num_retries",
        "router_settings.retry_policy",
        "router_settings.timeout",
        *(
            f"{part}.{kind}"
            for part in ("litellm_settings", "router_settings")
            for kind in FALLBACK_KINDS
        ),
        *(f"{part}.default_fallbacks" for part in ("litellm_settings", "router_settings")),
        *(f"litellm_settings.{name}" for name in _TIERS),
    }
)
_CALLBACKS: Final = "spans go to a collector by OTLP, and metrics are log lines"
_DATABASE: Final = "keys and money are in DynamoDB; no other database is needed"
_SHARED: Final = "cooldowns and limits are shared through DynamoDB"
_GUARDRAILS: Final = "write them as `guardrails` in routing.yaml: docs/guardrails.md"
_NO_CODE: Final = "the gateway does not run code for models: requests with such tools are refused"
_SEARCH: Final = "write `server_tools.web_search` in routing.yaml: docs/routing.md#server-tools"
_ADVICE: Final[Mapping[str, str]] = {
    "environment_variables": "set them where the gateway runs; keys are named in `providers`",
    "general_settings.alerting": "`tollgate webhooks` sends events; alarms are in the template",
    "general_settings.coordination_redis": _SHARED,
    "general_settings.custom_auth": "keys and sign-in by OpenID Connect authenticate callers",
    "general_settings.database_connection_pool_limit": _DATABASE,
    "general_settings.database_url": _DATABASE,
    "general_settings.master_key": "use `tollgate first-key` and `tollgate keys create`",
    "general_settings.pass_through_endpoints": "other paths of a provider are not forwarded",
    "general_settings.store_model_in_db": "models in LiteLLM's database are not in the config: "
    "`GET /model/info` lists them; add them to `model_list` and import again",
    "general_settings.use_redis_transaction_buffer": _SHARED,
    "finetune_settings": "the gateway does not forward fine-tuning jobs",
    "files_settings": "the gateway stores files itself: docs/formats/files.md",
    "guardrails": _GUARDRAILS,
    "include": "import each included file",
    "litellm_settings.cache": "write `cache` in a route: docs/routing.md#cache",
    "litellm_settings.callbacks": _CALLBACKS,
    "litellm_settings.code_interpreter_interception_params": _NO_CODE,
    "litellm_settings.failure_callback": _CALLBACKS,
    "litellm_settings.max_budget": "`tollgate workspaces update` sets the budget of a workspace",
    "litellm_settings.success_callback": _CALLBACKS,
    "litellm_settings.websearch_interception_params": _SEARCH,
    "mcp_servers": "the gateway does not call MCP servers: add them to the client",
    "policies": _GUARDRAILS,
    "policy_attachments": _GUARDRAILS,
    "router_settings.enable_tag_filtering": "tags choose no deployment; a route's rules can read "
    "`metadata`",
    "router_settings.model_group_retry_policy": "`retry` of a route",
    "router_settings.redis_host": _SHARED,
    "router_settings.redis_password": _SHARED,
    "router_settings.redis_port": _SHARED,
    "router_settings.routing_strategy": "endpoints are drawn by weight, or tried in order; "
    "a request may sort them by `provider.sort`",
    "sandbox_tools": _NO_CODE,
    "search_tools": _SEARCH,
}
# Settings whose loss sends requests elsewhere, or takes a right or a limit from callers.
_LOSSES: Final = frozenset(
    {
        "finetune_settings",
        "general_settings.pass_through_endpoints",
        "general_settings.store_model_in_db",
        "guardrails",
        "include",
        "litellm_settings.code_interpreter_interception_params",
        "litellm_settings.websearch_interception_params",
        "mcp_servers",
        "policies",
        "policy_attachments",
        "router_settings.enable_tag_filtering",
        "sandbox_tools",
        "search_tools",
    }
)


def convert_defaults(config: LitellmConfig, notes: list[ImportNote]) -> Iterator[tuple[str, Any]]:
    """Yield the sections of `defaults`: retries, timeouts and cooldowns."""
    retries = config.setting("num_retries")
    policy = as_mapping(config.setting("retry_policy"))
    by_error = {
        error: number
        for name, error in _RETRIES.items()
        if isinstance(number := policy.get(name), int)
    }
    stated = {"num_retries": retries} if isinstance(retries, int) else {}
    for name, number in {**stated, **by_error}.items():
        if number > _RETRIES_MAX:
            note = f"{_RETRIES_MAX} is the maximum; then the next endpoint is tried"
            notes.append(ImportNote(where=name, text=note))
    notes += [
        ImportNote(where=f"retry_policy.{name}", text="such errors are not retried")
        for name in policy
        if name not in _RETRIES
    ]
    retry: dict[str, Any] = {}
    if stated:
        retry["retries_max"] = _allowed(stated["num_retries"])
    if by_error:
        retry["retries_max_by_error"] = {name: _allowed(each) for name, each in by_error.items()}
    if retry:
        yield "retry", retry
    total = config.setting("request_timeout", "timeout")
    if isinstance(total, int | float) and 0 < total < inf:
        yield "timeouts", {"non_streamed_total_s": min(total, _SECONDS_MAX)}
    cooldown = {
        name: value
        for name, value in (
            ("after_failures", config.setting("allowed_fails")),
            ("rest_s", config.setting("cooldown_time")),
        )
        if isinstance(value, int) and value > 0
    }
    if cooldown:
        yield "cooldown", cooldown


def convert_period(duration: object, where: str, notes: list[ImportNote]) -> str:
    """Return the period of a budget that LiteLLM resets after a duration; `total` without one."""
    lasts = str(duration or "")
    if lasts and lasts not in _PERIODS:
        text = f"a budget of {lasts} became a monthly budget"
        notes.append(ImportNote(where=where, text=text, is_loss=True))
    return _PERIODS.get(lasts, "month" if lasts else "total")


def _allowed(retries: int) -> int:
    return max(0, min(retries, _RETRIES_MAX))


def convert_tiers(
    config: LitellmConfig, known: Collection[str], notes: list[ImportNote]
) -> Iterator[tuple[str, Any]]:
    """Yield the key tiers; `known` are the imported names of models."""
    for section, tier in _TIERS.items():
        parameters = as_mapping(config.setting(section))
        limits: dict[str, Any] = {}
        models = [name for name in name_list(parameters.get("models")) if name in known]
        if models:
            limits["models"] = models
        rpm = parameters.get("rpm_limit")
        if isinstance(rpm, int) and rpm > 0:
            limits["rpm"] = rpm
        budget = parameters.get("max_budget")
        if isinstance(budget, int | float) and 0 <= budget < inf:
            where = f"litellm_settings.{section}"
            period = convert_period(parameters.get("budget_duration"), where, notes)
            limits["budget"] = {"usd": Decimal(str(budget)), "per": period}
        if limits:
            yield tier, limits


def list_unused(config: LitellmConfig) -> Iterator[ImportNote]:
    """Yield a note for each setting that was not converted."""
    for section, content in config.sections.items():
        if section == "model_list":
            continue
        inside = as_mapping(content)
        stated = {section: content}
        if section.endswith("settings") and inside:
            stated = {f"{section}.{name}": value for name, value in inside.items()}
        for name, value in stated.items():
            is_off = value is False and name in _ADVICE
            if name not in _KEPT and not is_off:
                text = _ADVICE.get(name, "it has no counterpart")
                yield ImportNote(where=name, text=text, is_loss=name in _LOSSES)
