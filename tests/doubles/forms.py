"""Request bodies as clients of the Bot API send them: JSON, URL-encoded forms, multipart."""

import json
from dataclasses import dataclass

from starlette.datastructures import UploadFile
from starlette.requests import Request

from tests.doubles.server import JsonObject

TEXTS = {"text", "caption", "parse_mode", "url", "callback_query_id", "secret_token", "action"}
"""Parameters that stay text even if they look like JSON."""


@dataclass(frozen=True)
class Upload:
    """A file that came in a multipart body."""

    filename: str
    content_type: str
    data: bytes


async def parameters_of(request: Request) -> tuple[JsonObject, dict[str, Upload]]:
    """Return parameters, each decoded from JSON where it is JSON, and files, both by name."""
    params: JsonObject = {name: _decoded(name, text) for name, text in request.query_params.items()}
    if request.headers.get("content-type", "").startswith("application/json"):
        return params | json.loads(await request.body() or b"{}"), {}
    files = dict[str, Upload]()
    async with request.form() as form:
        for name, value in form.items():
            if isinstance(value, UploadFile):
                kind = value.content_type or ""
                files[name] = Upload(value.filename or "", kind, await value.read())
            else:
                params[name] = _decoded(name, value)
    return params, files


def _decoded(name: str, value: str) -> object:
    if name in TEXTS:
        return value
    try:
        decoded: object = json.loads(value)
    except ValueError:
        return value
    return decoded
