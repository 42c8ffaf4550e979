"""A request to judge texts by what they contain."""

from typing import ClassVar

from typing_extensions import override

from tollgate.core.request import WorkKind
from tollgate.core.work import InputWork


class ModerationRequest(InputWork, frozen=True, kw_only=True):
    """Texts, each of which is judged by itself."""

    kind: ClassVar[WorkKind] = "moderation"

    texts: tuple[str, ...]

    @property
    @override
    def own_texts(self) -> tuple[str, ...]:
        return self.texts

    @property
    @override
    def bytes_per_input(self) -> tuple[int, ...]:
        return tuple(len(text.encode()) for text in self.texts)
