"""The OpenAPI document of the HTTP API, made from the models of its requests and responses."""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from bot.http.models import (
    AskRequest,
    AskResponse,
    DoneEvent,
    Problem,
    QueryRequest,
    ResultEvent,
    RewriteRequest,
    RewriteResponse,
)

REFERENCE: Final = "#/components/schemas/{model}"
REQUESTS: Final = (RewriteRequest, AskRequest, QueryRequest)
RESPONSES: Final = (RewriteResponse, AskResponse, ResultEvent, DoneEvent, Problem)

REFUSED: Final = {
    400: "The connection ended before the body did.",
    401: "There is no bearer token.",
    403: "The bearer token is wrong.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The content type is not application/json.",
    422: "A field is wrong; `fields` says which and why.",
    503: "The question could not be worked on.",
}
STREAM: Final = (
    "Server-sent events: `result` (a ResultEvent) for each passage, then `done` (a DoneEvent)."
)


@cache
def openapi_document() -> dict[str, Any]:
    """The whole document, of version 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Sommelier", "version": version("sommelier")},
        "security": [{"token": []}],
        "paths": {
            "/api/rag/rewrite": _post(
                "Rewrite a question for the search", RewriteRequest, _json(RewriteResponse)
            ),
            "/api/rag/ask": _post(
                "Answer a question from the documents", AskRequest, _json(AskResponse)
            ),
            "/api/research/query": _post(
                "Find passages, word for word",
                QueryRequest,
                {"text/event-stream": {"schema": {"type": "string", "description": STREAM}}},
            ),
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(REQUESTS, "validation") | _schemas(RESPONSES, "serialization"),
        },
    }


def _schemas(models: Sequence[type[BaseModel]], mode: JsonSchemaMode) -> dict[str, Any]:
    _, schema = models_json_schema([(model, mode) for model in models], ref_template=REFERENCE)
    return dict(schema["$defs"])


def _post(summary: str, request: type[BaseModel], content: dict[str, Any]) -> dict[str, Any]:
    responses = {"200": {"description": "The answer.", "content": content}}
    for status, description in REFUSED.items():
        responses[str(status)] = {"description": description, "content": _json(Problem)}
    body = {"required": True, "content": _json(request)}
    return {"post": {"summary": summary, "requestBody": body, "responses": responses}}


def _json(model: type[BaseModel]) -> dict[str, Any]:
    schema = {"$ref": REFERENCE.format(model=model.__name__)}
    return {"application/json": {"schema": schema}}
