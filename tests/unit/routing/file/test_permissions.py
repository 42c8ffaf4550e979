"""The catalog's permissions: exact ids and secrets, and nothing that would widen a policy.

Keeps C55.
"""

from decimal import Decimal

import pytest

from tests.unit.routing.catalogs import endpoint, model, provider, routing
from tollgate.cli.routing.permissions import (
    BEGIN,
    END,
    HOSTS_BEGIN,
    HOSTS_END,
    write_permissions,
)
from tollgate.routing.file.permissions import (
    NotPermissible,
    Permissions,
    compile_permissions,
    routed_secret_names,
)

BEDROCK = {"codec": "bedrock", "transport": "bedrock_runtime", "region": "eu-west-1"}
PROFILES = "arn:${AWS::Partition}:bedrock:eu-west-1:${AWS::AccountId}:inference-profile/"
SECRETS = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:"


def needed_for(upstream: str) -> Permissions:
    return compile_permissions(
        routing(
            providers={"aws": BEDROCK},
            models={"a/b": model(endpoint("aws", upstream))},
            aliases={},
            routes={},
        )
    )


def test_a_model_is_allowed_where_its_provider_is() -> None:
    assert needed_for("deepseek.v3.2").models == (
        "arn:${AWS::Partition}:bedrock:eu-west-1::foundation-model/deepseek.v3.2",
    )


@pytest.mark.parametrize("geography", ["eu", "global", "us-gov"])
def test_a_profile_is_allowed_with_its_model_in_every_region(geography: str) -> None:
    assert needed_for(f"{geography}.amazon.nova-2-lite-v1:0").models == (
        "arn:${AWS::Partition}:bedrock:*::foundation-model/amazon.nova-2-lite-v1:0",
        f"{PROFILES}{geography}.amazon.nova-2-lite-v1:0",
    )


def test_an_arn_is_allowed_as_it_stands() -> None:
    arn = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc"
    assert needed_for(arn).models == (arn,)


@pytest.mark.parametrize(
    ("upstream", "counted"),
    [
        ("eu.anthropic.claude-x", ("anthropic.claude-x",)),
        ("anthropic.claude-x", ("anthropic.claude-x",)),
        ("arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc", ()),
    ],
)
@pytest.mark.parametrize("counts", [True, False])
def test_c80_counting_is_allowed_where_the_file_states_it_by_a_models_own_id(
    upstream: str, counted: tuple[str, ...], counts: bool
) -> None:
    dialect = {"counts_tokens": counts}
    found = compile_permissions(
        routing(
            providers={"aws": BEDROCK, "other": provider(dialect={"counts_tokens": True})},
            models={
                "a/b": model(
                    endpoint("aws", upstream) | {"dialect": dialect}, endpoint("other", "m")
                )
            },
            aliases={},
            routes={},
        )
    )
    ours = "arn:${AWS::Partition}:bedrock:eu-west-1::foundation-model/"
    assert found.counted_models == tuple(f"{ours}{name}" for name in counted if counts)
    assert set(found.counted_models) <= set(found.all_names)


@pytest.mark.parametrize(
    "upstream", ["*", "amazon.*", "a\n- Effect: Allow", "${AWS::Region}", "a b"]
)
def test_an_id_that_would_widen_the_policy_is_refused(upstream: str) -> None:
    with pytest.raises(NotPermissible):
        needed_for(upstream)


def test_each_secret_is_allowed_once_by_its_whole_name() -> None:
    key = {"secret": "team/openai", "env": "OPENAI_API_KEY"}
    found = compile_permissions(
        routing(
            providers={
                "one": provider(key=key),
                "two": provider(key=key),
                "three": provider(key={"env": "ONLY"}),
            },
            models={"a/b": model(endpoint("one", "m"))},
            aliases={},
            routes={},
        )
    )
    assert found == Permissions(
        models=(),
        secrets=(f"{SECRETS}team/openai-??????",),
        key_hosts=(
            "secret:team/openai>https://provider.example",
            "variable:ONLY>https://provider.example",
            "variable:OPENAI_API_KEY>https://provider.example",
        ),
    )


def test_c55_a_guardrail_is_allowed_where_its_endpoints_are() -> None:
    arn = "arn:aws:bedrock:eu-west-1:123456789012:guardrail/other"
    needed = compile_permissions(
        routing(
            providers={"aws": BEDROCK},
            models={
                "a/b": model(endpoint("aws", "b") | {"guardrail": {"id": arn, "version": "1"}}),
                "a/c": model(endpoint("aws", "c")),
            },
            aliases={},
            routes={
                "safe": {
                    "description": "Guarded",
                    "try": ("a/b", "a/c"),
                    "guardrail": {"id": "gr1", "version": "DRAFT"},
                }
            },
        )
    )
    ours = "arn:${AWS::Partition}:bedrock:eu-west-1:${AWS::AccountId}:guardrail/gr1"
    assert needed.guardrails == (ours, arn)


def test_c55_c81_a_guardrail_that_judges_is_allowed_once_and_no_model_with_it() -> None:
    guarded = {"guardrail": {"id": "gr1", "version": "1"}}
    counting = {"dialect": {"counts_tokens": True}}
    judge = model(endpoint("aws", "amazon.nova-lite-v1:0") | guarded, kind="moderation")
    needed = compile_permissions(
        routing(
            providers={"aws": BEDROCK | counting},
            models={"a/judge": judge, "a/chat": model(endpoint("aws", "c") | guarded)},
            aliases={},
            routes={"all": {"description": "Judges", "try": ("a/judge",)}},
        )
    )
    ours = "arn:${AWS::Partition}:bedrock:eu-west-1:${AWS::AccountId}:guardrail/gr1"
    assert needed.guardrails == (ours,)
    assert needed.whole_models == ()
    assert [arn.rpartition("/")[2] for arn in (*needed.models, *needed.counted_models)] == [
        "c",
        "c",
    ]


SAGEMAKER = {"codec": "openai_chat", "transport": "sagemaker_runtime", "region": "eu-west-1"}


def on_sagemaker(name: str) -> Permissions:
    return compile_permissions(
        routing(
            providers={"aws": SAGEMAKER},
            models={"a/b": model(endpoint("aws", name))},
            aliases={},
            routes={},
        )
    )


def test_a_model_that_is_invoked_in_its_own_format_is_allowed_too() -> None:
    invoke = {"codec": "anthropic", "transport": "bedrock_invoke", "region": "eu-west-1"}
    found = compile_permissions(
        routing(
            providers={"aws": invoke},
            models={"a/b": model(endpoint("aws", "anthropic.claude"))},
            aliases={},
            routes={},
        )
    )
    assert found.models == (
        "arn:${AWS::Partition}:bedrock:eu-west-1::foundation-model/anthropic.claude",
    )


def test_a_sagemaker_endpoint_is_allowed_by_its_name() -> None:
    found = on_sagemaker("Llama-3")
    assert found.models == ()
    ours = "arn:${AWS::Partition}:sagemaker:eu-west-1:${AWS::AccountId}:endpoint/"
    assert found.sagemaker_endpoints == (f"{ours}Llama-3", f"{ours}llama-3")


@pytest.mark.parametrize("name", ["*", "a*", "a/b", "${AWS::Region}", "a\n- x"])
def test_a_name_that_would_widen_the_policy_is_refused(name: str) -> None:
    with pytest.raises(NotPermissible):
        on_sagemaker(name)


@pytest.mark.parametrize(
    ("row", "pins"),
    [
        ({"base_url": "https://A.Example:443/v1", "key": None}, ()),
        (
            {"base_url": "https://a.example:8443", "key": {"secret": "s"}},
            ("secret:s>https://a.example:8443",),
        ),
        (
            {"base_url": "http://[fd00::1]/v1", "key": {"secret": "s"}},
            ("secret:s>http://[fd00::1]",),
        ),
        (
            {
                "auth": "google",
                "project": "p",
                "location": "l",
                "base_url": "https://g.example",
                "key": None,
            },
            ("google>https://g.example",),
        ),
        ({**BEDROCK, "base_url": None}, ()),
        ({**BEDROCK, "base_url": "https://vpce.example"}, ("aws>https://vpce.example",)),
    ],
)
def test_c93_a_credential_is_pinned_to_its_origin(
    row: dict[str, object], pins: tuple[str, ...]
) -> None:
    found = routing(providers={"row": provider(**row)}, models={}, aliases={}, routes={})
    assert compile_permissions(found).key_hosts == pins


def test_a_model_whose_answers_are_whole_is_allowed_another_action() -> None:
    vectors = {
        "name": "Vectors",
        "kind": "embedding",
        "context": 100,
        "vectors": {"dimensions": 8},
        "endpoints": (endpoint("aws", "amazon.titan-embed-text-v2:0"),),
    }
    found = compile_permissions(
        routing(providers={"aws": BEDROCK}, models={"amazon/titan": vectors}, aliases={}, routes={})
    )
    arn = "arn:${AWS::Partition}:bedrock:eu-west-1::foundation-model/amazon.titan-embed-text-v2:0"
    assert (found.models, found.whole_models) == ((), (arn,))
    assert arn in found.all_names
    assert "bedrock:InvokeModel\n" in write_permissions(_MARKED, found)


_MARKED = "\n".join(f"  {mark}" for mark in (HOSTS_BEGIN, HOSTS_END, BEGIN, END)) + "\n"


@pytest.mark.parametrize(
    ("search", "secrets", "pins"),
    [
        (
            {"engine": "tavily", "key": {"secret": "team/search", "env": "SEARCH_API_KEY"}},
            ("team/search",),
            (
                "secret:team/search>https://api.tavily.com",
                "variable:SEARCH_API_KEY>https://api.tavily.com",
            ),
        ),
        (
            {"engine": "brave", "key": {"secret": "b"}, "base_url": "https://Proxy.Example:8443/x"},
            ("b",),
            ("secret:b>https://proxy.example:8443",),
        ),
        ({"engine": "searxng", "base_url": "http://search.internal", "private": True}, (), ()),
        ({"native": True}, (), ()),
    ],
)
def test_c55_c93_the_key_of_a_search_engine_is_allowed_and_pinned_to_its_host(
    search: dict[str, object], secrets: tuple[str, ...], pins: tuple[str, ...]
) -> None:
    price = {"call": Decimal(0), "source": "made up", "checked": "2026-11-21"}
    found = compile_permissions(
        routing(
            providers={},
            models={},
            aliases={},
            routes={},
            server_tools={"web_search": {**search, "price": price}},
        )
    )
    assert found == Permissions(
        models=(),
        secrets=tuple(f"{SECRETS}{name}-??????" for name in secrets),
        key_hosts=pins,
    )


def test_c55_c93_the_key_of_a_recognition_is_allowed_and_pinned_to_its_host() -> None:
    ocr = {
        "engine": "mistral",
        "model": "ocr-1",
        "key": {"secret": "team/ocr", "env": "OCR_API_KEY"},
        "price": {"page": Decimal(0), "source": "made up", "checked": "2026-11-21"},
    }
    found = compile_permissions(
        routing(
            providers={},
            models={},
            aliases={},
            routes={},
            plugins={"pdf": {"price": {}, "ocr": ocr}},
        )
    )
    assert found == Permissions(
        models=(),
        secrets=(f"{SECRETS}team/ocr-??????",),
        key_hosts=(
            "secret:team/ocr>https://api.mistral.ai",
            "variable:OCR_API_KEY>https://api.mistral.ai",
        ),
    )


def test_textract_is_an_action_on_no_resource() -> None:
    ocr = {
        "engine": "textract",
        "price": {"page": Decimal("0.0015"), "source": "made up", "checked": "2026-11-21"},
    }
    plugins = {"pdf": {"price": {}, "ocr": ocr}}
    found = compile_permissions(
        routing(providers={}, models={}, aliases={}, routes={}, plugins=plugins)
    )
    assert found == Permissions(models=(), secrets=(), actions=("textract:DetectDocumentText",))
    assert found.all_names == ("textract:DetectDocumentText",)
    written = write_permissions(_MARKED, found)
    assert 'Action: textract:DetectDocumentText\n    Resource: "*"\n' in written


def test_c102_a_key_that_only_a_shadow_needs_is_asked_for() -> None:
    shadow = {"model": "acme/small", "share": 1, "workspace": "ops", "key_id": "k"}
    route = {"description": "Far", "try": ("other/tools",)}
    assert not routed_secret_names(routing(aliases={}, routes={"far": route}))
    shadowed = routing(aliases={}, routes={"far": route | {"shadow": shadow}})
    assert routed_secret_names(shadowed) == {"tollgate/near"}
