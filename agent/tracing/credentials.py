"""Credentials in a text, found by their form or by the word before them. Pure.

Every pattern reads a text in linear time, see `agent.tracing.masks`.
"""

import re
from functools import lru_cache
from typing import Final

# Not within a word or an id. ASCII only: where a script writes no spaces, a number may stand right
# behind a letter. An escaped line's end is one too: answers that were cut off are no JSON.
FRESH: Final = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"

SHORTEST_CREDENTIAL: Final = 8  # characters, with the word before it
_TOKEN_HINTS: Final = (
    *("sk-", "pk-lf-", "glpat-", "hf_", "xox", "AKIA", "ASIA", "AIza", "eyJ"),
    *("k_live_", "k_test_", "npm_", "pypi-", "dop_v1_"),
)
_GITHUB_HINT: Final = re.compile("g(?:h[pousr]|ithub_pat)_")
_TOKEN: Final = re.compile(
    rf"""{FRESH}(?<!-)(?:
        (?:sk|pk-lf)-[A-Za-z0-9_-]{{16,}}+
      | gh[pousr]_[A-Za-z0-9]{{20,}}+ | github_pat_[A-Za-z0-9_]{{20,}}+
      | glpat-[A-Za-z0-9_-]{{16,}}+ | hf_[A-Za-z0-9]{{20,}}+ | xox[a-z]-[A-Za-z0-9-]{{10,}}+
      | (?:AKIA|ASIA)[A-Z0-9]{{16}}(?![A-Za-z0-9]) | AIza[A-Za-z0-9_-]{{35}}
      | [prs]k_(?:live|test)_[A-Za-z0-9]{{16,}}+ | npm_[A-Za-z0-9]{{30,}}+
      | pypi-[A-Za-z0-9_-]{{16,}}+ | dop_v1_[a-f0-9]{{40,}}+
      | eyJ[A-Za-z0-9_-]{{8,}}+\.[A-Za-z0-9_-]{{8,}}+(?:\.[A-Za-z0-9_-]*+)?
    )""",
    re.VERBOSE,
)
_PRIVATE_KEY: Final = re.compile(
    r"(?s)-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END[A-Z ]{0,40}-----|\Z)"
)
_BOT_TOKEN_END: Final = re.compile(r":[A-Za-z0-9_-]{20}")
_BOT_TOKEN: Final = re.compile(r"(?<!\d)\d{5,}+:[A-Za-z0-9_-]{20,}+")
_USERINFO: Final = re.compile(r"""(?<=://)[^\s/?#"<>\\]+@""")

_SECRET_WORDS: Final = (
    *("password", "passwort", "passwd", "pwd", "kennwort", "contraseña", "mot de passe", "пароль"),
    *("secret", "token", "key", "credential", "authorization"),
)
_EITHER: Final = "|".join(_SECRET_WORDS)
_IS: Final = r"""s?["'`]?\s{0,3}[:=]\s{0,3}["'`]?(?:basic\s)?"""
_VALUE: Final = r"""[^\s"'`,;:<>()\[\]{}\\]{6,}+"""
# One for each word: a pattern that begins with a fixed text is searched for fast.
_ASSIGNED_WORDS: Final = tuple((word, re.compile(word + _IS + _VALUE)) for word in _SECRET_WORDS)
_TOLD: Final = re.compile(
    r"(?i)((?:password|passwort|passwd|pwd|kennwort|contraseña|mot de passe|пароль)"
    rf"\s(?:is|ist|es|est)\s)({_VALUE})"
)
_PASSWORD: Final = re.compile(r"(?i)pass|pwd|kennwort|contrase|пароль")
_NAMES_NOTHING_ELSE: Final = re.compile(
    r"(?i)pass(?:word|wort|wd)|pwd|(?:api|access|secret|private)[_ -]?key|client[_ -]?secret"
    r"|(?:access|auth|refresh|bearer)[_ -]?token|authorization"
)
_NAMES_SECRET: Final = re.compile(rf"(?i)(?:{_EITHER})s?\Z")
_ASSIGNED: Final = re.compile(rf"(?i)((?:{_EITHER}){_IS})({_VALUE})")
_BEARER: Final = re.compile(r"(?i)(bearer\s{1,4})([A-Za-z0-9._~+/-]{8,}+=*)")
_HEX: Final = re.compile(r"[0-9a-fA-F]{16,}\Z")
_BASE64: Final = re.compile(r"(?!.*\.[a-z]{2,4}\Z)[A-Za-z0-9+/_.~-]{16,}={0,2}\Z")  # not a file
_SCATTERED: Final = re.compile(r"(?:[A-Za-z]*+\d++){3}[A-Za-z0-9]*\Z")  # digits, as in no name


def without_credentials(text: str) -> str:
    """Tokens, keys, passwords that are named as such, and userinfo of addresses are `[token]`."""
    if len(text) < SHORTEST_CREDENTIAL:
        return text
    if any(map(text.__contains__, _TOKEN_HINTS)) or _GITHUB_HINT.search(text):
        text = _TOKEN.sub("[token]", text)
    if "PRIVATE KEY-" in text:
        text = _PRIVATE_KEY.sub("[token]", text)
    if ":" in text and _BOT_TOKEN_END.search(text):
        text = _BOT_TOKEN.sub("[token]", text)
    if "@" in text and "://" in text:
        text = _USERINFO.sub("[token]@", text)
    lowered = text.lower()
    if "bearer" in lowered:
        text = _BEARER.sub(_masked_bearer, text)
    assigned = ":" in text or "=" in text
    if assigned and any(word in lowered and is_.search(lowered) for word, is_ in _ASSIGNED_WORDS):
        text = _ASSIGNED.sub(_masked_assignment, text)
    if _PASSWORD.search(lowered):
        text = _TOLD.sub(_masked_assignment, text)
    return text


def is_secret(key: str, value: str) -> bool:
    """Whether `value`, under such a key, is a credential: `{"api_key": "0fd3..."}`."""
    word = _secret_word(key[-32:])
    if not word:
        return False
    one_word = len(value) >= 6 and not any(map(str.isspace, value))
    return _is_credential(word, value) or (one_word and _names_nothing_else(key[-32:]))


@lru_cache(maxsize=1024)
def _names_nothing_else(key: str) -> bool:
    return bool(_NAMES_NOTHING_ELSE.search(key))


@lru_cache(maxsize=1024)
def _secret_word(key: str) -> str:
    found = _NAMES_SECRET.search(key)
    return found.group() if found else ""


def _masked_bearer(found: re.Match[str]) -> str:
    word, value = found.groups()
    opaque = len(value) >= 20 or any(each.isdigit() for each in value)
    return f"{word}[token]" if opaque else found.group()


def _masked_assignment(found: re.Match[str]) -> str:
    before, value = found.groups()
    first, more, rest = value.partition("&")  # as in an address, where another may follow
    if more and _is_credential(before, first):
        return f"{before}[token]{more}{rest}"
    return f"{before}[token]" if _is_credential(before, value) else found.group()


def _is_credential(word: str, value: str) -> bool:
    """After a word for a password anything with a digit; after others only what nobody reads."""
    if not any(each.isdigit() for each in value):
        return False
    if _PASSWORD.search(word):
        return len(value) >= 6
    if _HEX.match(value):
        return True
    mixed = value not in (value.lower(), value.upper())
    return bool(_BASE64.match(value) and (mixed or _SCATTERED.match(value)))
