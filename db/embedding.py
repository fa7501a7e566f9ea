"""Vectors from an embedding source: checked, scaled to length 1, compared by their angle.

The source is a port (`agent.ports.Embedder`) and may be anything; nothing it returns is trusted.
"""

import asyncio
import math
from collections.abc import Sequence
from operator import mul
from typing import Final

from agent.documents.store import Embedder
from agent.engine.errors import AgentError

BATCH: Final = 64
"""Texts sent to the source at once."""


class EmbeddingError(Exception):
    """The embedding source is down, too slow, or returned something other than vectors."""


async def embed(embedder: Embedder, texts: Sequence[str], seconds: float) -> list[list[float]]:
    """One vector of length 1 for each text, in order; `seconds` is the time limit.

    Raises:
        EmbeddingError: no vectors, whatever the reason.
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


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """How alike two vectors of length 1 are: 1 for the same direction, -1 for the opposite."""
    product: float = sum(map(mul, one, other))
    return product


def signs(vector: Sequence[float]) -> bytes:
    """One bit for each number, 1 where it is positive: a sketch that is quick to compare."""
    bits = int("0" + "".join("1" if value > 0 else "0" for value in vector), 2)
    return bits.to_bytes((len(vector) + 7) // 8)


def difference(one: bytes, other: int) -> int:
    """How many signs differ from `other`, itself signs read as a big-endian integer."""
    return (int.from_bytes(one) ^ other).bit_count()
