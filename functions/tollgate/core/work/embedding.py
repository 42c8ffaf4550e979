"""A request for embeddings: inputs, each of which becomes a vector."""

from typing import ClassVar, Literal, Self

from msgspec.structs import replace
from typing_extensions import override

from tollgate.core.request import InputType, Need
from tollgate.core.work.base import InputWork
from tollgate.core.work.kinds import WorkKind

VectorEncoding = Literal["float", "base64"]


class EmbeddingRequest(InputWork, frozen=True, kw_only=True):
    """Inputs to embed: all of them strings, or all of them lists of token ids."""

    kind: ClassVar[WorkKind] = "embedding"

    texts: tuple[str, ...] = ()
    token_lists: tuple[tuple[int, ...], ...] = ()
    encoding: VectorEncoding = "float"
    dimensions: int | None = None
    """The requested number of dimensions; None for the model's default."""
    input_type: InputType | None = None

    @property
    @override
    def own_texts(self) -> tuple[str, ...]:
        return self.texts or tuple(" ".join(map(str, ids)) for ids in self.token_lists)

    @property
    @override
    def bytes_per_input(self) -> tuple[int, ...]:
        return tuple(len(text) if text.isascii() else len(text.encode()) for text in self.texts)

    @property
    @override
    def tokens_per_input(self) -> tuple[int, ...]:
        return tuple(map(len, self.token_lists))

    @property
    @override
    def needs(self) -> frozenset[Need]:
        return frozenset({"token_ids"}) if self.token_lists else frozenset()

    @property
    @override
    def inputs(self) -> int:
        return len(self.texts) + len(self.token_lists)

    def split(self, inputs_max: int) -> tuple[Self, ...]:
        """Split the request into requests of at most `inputs_max` inputs, in order."""
        if self.inputs <= inputs_max:
            return (self,)
        starts = range(0, self.inputs, inputs_max)
        return tuple(
            replace(
                self,
                texts=self.texts[start : start + inputs_max],
                token_lists=self.token_lists[start : start + inputs_max],
            )
            for start in starts
        )
