"""What the refusal of a model's server says, and what is to be done about it. Pure."""

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

ADVICE: Final[Mapping[int, str]] = {
    401: "the server rejects the key (401); check OPENAI_API_KEY",
    402: "the account has no credit left (402); check its billing",
    403: "the key may not use this model (403); check its permissions and LLM_MODEL",
    404: "the server does not know this model or path (404); check LLM_MODEL, OPENAI_BASE_URL",
    429: "the account has no quota left (429); check its billing",
}


def advice(status: int) -> str:
    """What an operator does about a server that rejects us with `status`."""
    rejected = f"the server rejects our requests ({status}); check OPENAI_BASE_URL and LLM_MODEL"
    return ADVICE.get(status, rejected)


def error_text(body: object) -> str:
    """The server's own words on a refusal, at most 300 characters, without what was sent to it."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        body = inner.get("message", inner) if isinstance(inner, Mapping) else inner
    return " ".join(str(_without_input(body) or "").split())[:300]


def _without_input(node: object) -> object:
    """The errors of a server that validates, without the input they repeat."""
    if isinstance(node, list):
        return [_without_input(item) for item in node]
    if isinstance(node, Mapping):
        return {key: _without_input(value) for key, value in node.items() if key != "input"}
    return node


def status_within(error: object) -> int:
    """The status that an error names itself; 502 if it names none."""
    code = error.get("code") if isinstance(error, Mapping) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 502


def names_parameter(status: int, reason: str) -> bool:
    """Whether a refusal may be one of a parameter; some servers call that their own failure."""
    own_failure = status in {500, 501} and ("grammar" in reason or "response_format" in reason)
    return status in {400, 422} or own_failure


def is_filtered(body: object) -> bool:
    """Whether a refusal is one of a content filter that did not let the question pass."""
    code = body.get("code") if isinstance(body, Mapping) else None
    return code in {"content_filter", "content_policy_violation"}


def is_out_of_quota(body: object) -> bool:
    """Whether a 429 is about money, which waiting does not bring."""
    return isinstance(body, Mapping) and "insufficient_quota" in (
        body.get("code"),
        body.get("type"),
    )


def retry_after(headers: Mapping[str, str] | None) -> float | None:
    """Seconds a server asks us to wait, None when it does not say so."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        said = (headers or {}).get(name, "")
        seconds = _number(said) if _number(said) is not None else _seconds_until(said)
        if seconds is not None:
            return max(0.0, seconds / unit)
    return None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) else value


def _seconds_until(date: str) -> float | None:
    """Seconds until an HTTP date, None if it is none."""
    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except (ValueError, TypeError):
        return None
