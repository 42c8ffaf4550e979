"""The public error of a request that nothing can serve is chosen by values, not by names or words.

Keeps C11, C19.
"""

import pytest
from msgspec.structs import replace

from tests.unit.routing.catalogs import NOW_S, catalog, endpoint, model, principal, request
from tollgate.core.content import Image, InlineMedia
from tollgate.core.errors import ErrorCode, GatewayError
from tollgate.core.principal import LimitLevel
from tollgate.core.request import GenerationRequest, PriceCeiling, UserMessage
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.exclusions import list_usable_models
from tollgate.routing.planning.planner import Planner
from tollgate.routing.planning.planning_request import PlanningRequest

PICTURE = Image(source=InlineMedia(media_type="image/png", base64="AAAA"))


def wanted_by(asked: GenerationRequest, tier: str | None = None) -> PlanningRequest:
    return PlanningRequest.of(asked, principal=principal(tier=tier), request_id="r-1")


def refused(of: Catalog, wanted: PlanningRequest) -> GatewayError:
    refusal = Planner(of).survey(wanted, now_s=NOW_S).refusal
    assert refusal is not None
    return refusal


def test_c11_a_modality_without_a_code_of_its_own_is_an_invalid_request() -> None:
    wanted = replace(wanted_by(request("acme/large")), modalities=frozenset({"text", "video"}))
    error = refused(catalog(), wanted)
    assert (error.code, error.param) == (ErrorCode.INVALID_REQUEST, "messages")
    assert error.message == "acme/large does not take video input."


def test_c11_of_several_missing_modalities_the_first_with_a_code_decides() -> None:
    wanted = replace(
        wanted_by(request("acme/large")), modalities=frozenset({"text", "video", "pdf", "image"})
    )
    error = refused(catalog(), wanted)
    assert (error.code, error.param) == (ErrorCode.IMAGE_NOT_SUPPORTED, "messages")
    assert error.message == "acme/large does not take image or pdf or video input."


def test_c19_a_price_over_the_callers_own_is_not_the_tiers_limit() -> None:
    asked = request("acme/large", price_max=PriceCeiling(input=1))
    tiers = catalog(key_tiers={"free": {"max_cost_usd_per_request": "1000"}})
    error = refused(tiers, wanted_by(asked, tier="free"))
    assert (error.code, error.param) == (ErrorCode.INVALID_REQUEST, "provider")
    assert "near/large-1 costs $3 for input, over provider.max_price" in error.message


def test_a_cost_over_the_tiers_limit_names_the_endpoint_and_both_amounts() -> None:
    tiers = catalog(
        models={"acme/large": model(endpoint("near", "n", dollars_in="1", dollars_out="1"))},
        aliases={},
        routes={},
        key_tiers={"free": {"max_cost_usd_per_request": "0.002"}},
    )
    asked = request("acme/large", size_bytes=2_000, output_tokens_max=3_000)
    error = refused(tiers, wanted_by(asked, tier="free"))
    assert (error.code, error.param) == (ErrorCode.KEY_LIMIT_EXCEEDED, "max_tokens")
    assert error.message == (
        "near/n may cost $0.004439005, the tier's limit is $0.002; "
        "ask for fewer tokens with max_tokens."
    )


def test_c11_a_message_with_a_picture_needs_a_model_that_takes_images() -> None:
    asked = replace(request("acme/large"), messages=(UserMessage(content=(PICTURE,)),))
    error = refused(catalog(), wanted_by(asked))
    assert (error.code, error.message) == (
        ErrorCode.IMAGE_NOT_SUPPORTED,
        "acme/large does not take image input.",
    )


@pytest.mark.parametrize(
    ("key_models", "of_member", "of_team", "may"),
    [
        (None, ("acme/*",), ("*/large",), True),
        (("acme/large",), ("acme/*",), None, True),
        (None, ("acme/small",), ("acme/*",), False),
        (("acme/*",), None, ("other/*",), False),
        (("other/*",), ("acme/*",), ("acme/*",), False),
    ],
)
def test_c61_a_model_is_for_the_key_and_for_each_level_above_it(
    key_models: tuple[str, ...] | None,
    of_member: tuple[str, ...] | None,
    of_team: tuple[str, ...] | None,
    may: bool,
) -> None:
    key = replace(
        principal(models=key_models),
        levels=(
            LimitLevel(level="member", id="ana", models=of_member),
            LimitLevel(level="team", id="search", models=of_team),
        ),
    )
    wanted = PlanningRequest.of(request("acme/large"), principal=key, request_id="r-1")
    refusal = Planner(catalog()).survey(wanted, now_s=NOW_S).refusal
    assert (refusal is None) is may
    if refusal is not None:
        assert refusal.code is ErrorCode.MODEL_NOT_ALLOWED
        of_key = key_models is not None and key_models[0].startswith("other/")
        who = "This key" if of_key else "The member or team of this key"
        assert refusal.message == f"{who} may not use acme/large."
    assert ("acme/large" in list_usable_models(catalog(), "acme/large", key)) is may
