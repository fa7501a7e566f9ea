"""Request vectors of texts from a server with OpenAI's `/embeddings` API."""

import asyncio
import math
from collections.abc import Sequence

import httpx2
from pydantic import BaseModel, SecretStr, ValidationError

from agent import size_limits
from agent.engine.errors import AgentError
from agent.servers import OPENAI_URL, build_bearer_headers, read_body


class EmbeddingError(AgentError):
    """The embedding source is down, too slow, or returned something other than vectors."""


class _Vector(BaseModel):
    index: int
    embedding: list[float]


class _Vectors(BaseModel):
    data: list[_Vector]


class Embedder:
    """An embedding model. Texts with similar meanings get vectors with similar directions.

    Vectors are compared only if their models have the same name. One call is one request.
    """

    def __init__(
        self,
        http: httpx2.AsyncClient,
        *,
        model: str,
        base_url: str | None = None,
        api_key: SecretStr | None = None,
    ) -> None:
        self.name = model
        self._http = http
        self._url = f"{base_url or OPENAI_URL}/embeddings"
        self._headers = build_bearer_headers(api_key)

    async def embed(self, texts: Sequence[str], seconds: float) -> list[list[float]]:
        """Return one vector of length 1 for each text, in order.

        Raises:
            EmbeddingError: the server sent no usable vectors within `seconds`.
        """
        try:
            async with asyncio.timeout(seconds):
                body = await self._request(texts, seconds)
            items = _Vectors.model_validate_json(body).data
        except (TimeoutError, httpx2.HTTPError, ValidationError) as error:
            error_name = type(error).__name__
            raise EmbeddingError(
                f"{self.name} gave no vectors ({error_name})"
            ) from None
        items.sort(key=lambda item: item.index)  # servers need not keep the order
        vectors = [item.embedding for item in items]
        return _normalize(vectors, len(texts))

    async def _request(self, texts: Sequence[str], seconds: float) -> bytes:
        """Return the body of the server's response, or nothing if it is too long."""
        # Ask for floats, because many servers do not know base64.
        body = {"model": self.name, "input": list(texts), "encoding_format": "float"}
        request = self._http.stream(
            "POST", self._url, json=body, headers=self._headers, timeout=seconds
        )
        async with request as response:
            if response.status_code != httpx2.codes.OK:
                raise EmbeddingError(f"{self.name} answered {response.status_code}")
            data = await read_body(response, size_limits.SERVICE_RESPONSE_BYTES)
            return data or b""


def _normalize(vectors: Sequence[Sequence[float]], count: int) -> list[list[float]]:
    """Scale vectors to length 1.

    Raises:
        EmbeddingError: there are not `count` vectors, one is zero, or they do not all have the
            same number of dimensions.
    """
    dimensions = {len(vector) for vector in vectors}
    if len(vectors) != count or len(dimensions) > 1:
        raise EmbeddingError("the embedding source gave no usable vectors")
    return [_scale(vector) for vector in vectors]


def _scale(vector: Sequence[float]) -> list[float]:
    """Return a vector of length 1 in the direction of `vector`.

    Raises:
        EmbeddingError: `vector` has no direction, because it is zero or not finite.
    """
    norm = math.hypot(*vector)
    if not math.isfinite(norm) or norm == 0:
        raise EmbeddingError("the embedding source gave no usable vectors")
    return [value / norm for value in vector]
