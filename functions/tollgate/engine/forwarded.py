"""The names of unknown fields that were sent to a provider or came back from it."""

from collections.abc import Collection
from typing import Final

from tollgate.core.events import UnknownFields
from tollgate.core.request import GenerationRequest
from tollgate.engine.gateway import Call
from tollgate.routing.planning.plan import Attempt

# Maximum number of names in a record, and maximum length of a name in characters.
_NAMES_MAX: Final = 32
_NAME_LENGTH_MAX: Final = 64


class ForwardedNames:
    """The names of the unknown fields of one answer."""

    def __init__(self) -> None:
        self._of_answer: dict[str, None] = {}

    def note(self, event: UnknownFields) -> None:
        """Record the names of a provider's unknown fields, each prefixed with the type of its
        frame.
        """
        names = [""] if event.is_frame else [f".{name}" for name in event.fields]
        for name in names:
            if len(self._of_answer) < _NAMES_MAX:
                self._of_answer[f"{event.place}{name}"[:_NAME_LENGTH_MAX].lstrip(".")] = None

    def names(
        self, call: Call, serving: Attempt | None, adapted: Collection[str]
    ) -> tuple[str, ...]:
        """Return the names of unknown fields that were sent, and of unknown fields in the
        answer.
        """
        request = call.parsed.request
        native = request.native if isinstance(request, GenerationRequest) else None
        sent = () if native is None or serving is None else native.unknown_names
        return (*(name for name in sent if name not in adapted), *self._of_answer)
