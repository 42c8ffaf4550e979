"""The image tool, which runs an image model from the catalog and charges the model's costs."""

from collections.abc import Mapping

from tollgate.core.content import Text
from tollgate.core.principal import Principal
from tollgate.core.server_tools import RunResult
from tollgate.core.work.images import ImageRequest
from tollgate.routing.tool_sections import ImageSection
from tollgate.tools.kinds import IMAGE_PROMPT_CHARACTERS_MAX
from tollgate.tools.ports.base import Painter, RunFailure, RunReport


async def paint_picture(
    painter: Painter,
    section: ImageSection,
    arguments: Mapping[str, object],
    *,
    principal: Principal,
    timeout_s: float,
) -> RunReport:
    """Return a report with an image; raise RunFailure if no image can be made."""
    prompt = arguments.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        raise RunFailure("invalid_input", "`prompt` must be a string that is not empty")
    if len(prompt) > IMAGE_PROMPT_CHARACTERS_MAX:
        words = f"`prompt` has more than {IMAGE_PROMPT_CHARACTERS_MAX} characters"
        raise RunFailure("invalid_input", words)
    work = picture_work(section, prompt)
    painted = await painter.paint(work, principal, timeout_s=timeout_s)
    answer = Text(text="The picture was made and is shown to the user.")
    return RunReport(
        result=RunResult(content=(answer,)),
        engine=section.model,
        fees=painted.fees,
        made=painted.images,
    )


def picture_work(section: ImageSection, prompt: str) -> ImageRequest:
    """Return the request for one image; an empty prompt stands for the longest prompt that is
    allowed.
    """
    return ImageRequest(
        model=section.model,
        prompt=prompt or "\U0001f5bc" * IMAGE_PROMPT_CHARACTERS_MAX,
        size=section.size,
        quality=section.quality,
    )
