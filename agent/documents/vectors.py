"""Vectors of texts: the port of an embedding source, and vectors that are checked."""

import asyncio
import math
from collections.abc import Sequence
from typing import Protocol

from agent.engine.errors import AgentError


class Embedder(Protocol):
    """An embedding source: texts to vectors, near each other where the texts mean alike."""

    @property
    def name(self) -> str:
        """Return the model's name; vectors of different names are never compared."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, in order. Raises anything when the source is down."""


class EmbeddingError(Exception):
    """The embedding source is down, too slow, or returned something other than vectors."""


async def embed(embedder: Embedder, texts: Sequence[str], seconds: float) -> list[list[float]]:
    """Return one vector of length 1 for each text, in order, within a limit of `seconds`.

    Raises:
        EmbeddingError: there are no vectors, for whatever reason.
    """
    try:
        async with asyncio.timeout(seconds):
            vectors = await embedder.embed(texts)
    except TimeoutError:
        raise EmbeddingError(f"{embedder.name} did not answer within {seconds:g} s") from None
    except AgentError as error:
        raise EmbeddingError(f"{embedder.name} failed: {error}") from error
    except Exception as error:
        raise EmbeddingError(f"{embedder.name} failed: {type(error).__name__}") from error
    try:
        return _checked(vectors, len(texts))
    except (TypeError, ValueError) as error:
        raise EmbeddingError(f"{embedder.name} gave no vectors: {error}") from None


def _checked(vectors: Sequence[Sequence[float]], count: int) -> list[list[float]]:
    if len(vectors) != count:
        raise ValueError(f"{len(vectors)} for {count} texts")
    if len({len(vector) for vector in vectors}) > 1:
        raise ValueError("they are of different lengths")
    return [_unit(vector) for vector in vectors]


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.hypot(*vector)
    if not math.isfinite(length) or length == 0:
        raise ValueError("one has no direction")
    return [value / length for value in vector]
