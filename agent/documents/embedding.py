"""An embedding model of an OpenAI-compatible server: texts to vectors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import SecretStr

from agent.engine.llm import LOCAL_KEY

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class EmbeddingService:
    """Fulfils `agent.ports.Embedder`; one call is one request, no text is cut or cached."""

    def __init__(
        self,
        *,
        model: str,
        api_key: SecretStr | None = None,
        base_url: str | None = None,
        timeout_seconds: float = 60,
    ) -> None:
        self.name = model
        self._api_key = api_key
        self._base_url = base_url
        self._timeout_seconds = timeout_seconds
        self._opened: AsyncOpenAI | None = None

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector for each text, in order. Raises what the client raises."""
        # Floats, because many servers do not know the client's own default, base64.
        response = await self._client.embeddings.create(
            model=self.name, input=list(texts), encoding_format="float"
        )
        return [item.embedding for item in sorted(response.data, key=lambda item: item.index)]

    async def close(self) -> None:
        """Close the connections to the server."""
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    def __repr__(self) -> str:
        return f"EmbeddingService({self.name})"

    @property
    def _client(self) -> "AsyncOpenAI":
        if self._opened is None:
            from openai import AsyncOpenAI  # noqa: PLC0415 - heavy, needed by the first request

            self._opened = AsyncOpenAI(
                api_key=self._api_key.get_secret_value() if self._api_key else LOCAL_KEY,
                base_url=self._base_url,
                max_retries=0,
                timeout=self._timeout_seconds,
            )
        return self._opened
