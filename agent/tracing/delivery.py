"""Send traces and scores to Langfuse, or traces to another backend of OpenTelemetry, by HTTP.

A request that is not done raises `Unavailable`, whose message is one line that says why.
"""

import asyncio
import gzip
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final, cast

import httpx2
from langfuse.api import AsyncLangfuseAPI, CreateScoreRequest, ScoreDataType
from langfuse.api.core import ApiError, RequestOptions
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from agent import lengths
from agent.tracing.errors import KEYS, Unavailable, unavailable
from agent.tracing.records import StoredScore

Keys = tuple[str, str]  # public, secret

ONCE: Final = RequestOptions(max_retries=0)
OBSERVATIONS_AT_ONCE: Final = 100
HEADERS: Final = {"x-langfuse-ingestion-version": "4"}
PROTOBUF: Final = "application/x-protobuf"
NOT_DELETABLE: Final = (404, 405, 501)  # there is no such score, or none can be deleted


class Backend:
    """A server that takes spans in OpenTelemetry's protocol; a request takes at most `seconds`."""

    name = "The OTLP endpoint"
    check = "OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS"

    def __init__(
        self, url: str, headers: dict[str, str], auth: Keys | None = None, *, seconds: float
    ) -> None:
        self.http = httpx2.AsyncClient(
            auth=auth,
            timeout=seconds,
            event_hooks={"response": [lengths.ends_at(lengths.SERVICE_BYTES)]},
        )
        self._url = url
        self._headers = {"Content-Type": PROTOBUF, "Content-Encoding": "gzip", **headers}
        self._seconds = seconds

    async def export(self, body: bytes) -> int:
        """Send an `ExportTraceServiceRequest`; return how many spans were not accepted."""
        packed = await asyncio.to_thread(gzip.compress, body, 1)
        async with self.bounded():
            response = await self.http.post(self._url, content=packed, headers=self._headers)
            if not response.is_success:
                raise ApiError(status_code=response.status_code)
            kind = response.headers.get("content-type", "")
            if kind.startswith("text/html"):
                raise ValueError("a web page")
        if kind != PROTOBUF:
            return 0
        answer = ExportTraceServiceResponse.FromString(response.content)
        return int(answer.partial_success.rejected_spans)

    @asynccontextmanager
    async def bounded(self) -> AsyncIterator[None]:
        """Make a request of the server, in bounded time."""
        try:
            async with asyncio.timeout(self._seconds):
                yield
        except (ApiError, httpx2.HTTPError, TimeoutError, ValueError) as error:
            raise unavailable(error, self.name, self.check) from None

    async def aclose(self) -> None:
        """Close the connections."""
        await self.http.aclose()


class LangfuseApi(Backend):
    """The API of one project of Langfuse, by the client's own `api`."""

    name = "Langfuse"
    check = KEYS

    def __init__(self, keys: Keys, base_url: str, *, seconds: float) -> None:
        base_url = base_url.rstrip("/")
        super().__init__(f"{base_url}/api/public/otel/v1/traces", HEADERS, keys, seconds=seconds)
        self.api = AsyncLangfuseAPI(
            base_url=base_url,
            username=keys[0],
            password=keys[1],
            httpx_client=cast(Any, self.http),  # the client of httpx's next generation
        )

    async def send_scores(self, scores: Sequence[StoredScore]) -> int:
        """Create or replace scores, and delete those without a value; return how many were refused.

        Langfuse replaces a score only if it has the same id and the same timestamp.
        """
        given = [
            CreateScoreRequest(
                id=score.score_id,
                trace_id=score.trace_id,
                observation_id=score.observation_id,  # the root: the list of traces shows it there
                name=score.name,
                value=score.value if isinstance(score.value, str) else float(score.value),
                data_type=ScoreDataType(score.kind),
                comment=score.comment,
                environment="default",
                timestamp=score.at,
            )
            for score in scores
            if score.value is not None
        ]
        refused = 0
        if given:
            async with self.bounded():
                answer = await self.api.scores.create(request=given, request_options=ONCE)
            refused = int(getattr(answer, "rejected", 0))
        for score in [score for score in scores if score.value is None]:
            try:
                async with self.bounded():
                    await self.api.scores.delete(score.score_id, request_options=ONCE)
            except Unavailable as error:
                if error.status not in NOT_DELETABLE:
                    raise
        return refused

    async def delete_traces(self, user: str, before: datetime | None = None) -> int:
        """Delete the traces of a user that began before a moment; return how many there were.

        Langfuse deletes later, observations and scores too; asking again is no error.
        """
        found, cursor = set[str](), None
        while True:
            async with self.bounded():
                page = await self.api.observations.get_many(
                    user_id=user,
                    to_start_time=before,
                    fields="core",
                    limit=OBSERVATIONS_AT_ONCE,
                    cursor=cursor,
                    request_options=ONCE,
                )
                ids = {item.trace_id for item in page.data if item.trace_id}
                if ids:
                    delete = self.api.trace.delete_multiple
                    await delete(trace_ids=sorted(ids), request_options=ONCE)
            found |= ids
            if not (cursor := page.meta.cursor):
                return len(found)
