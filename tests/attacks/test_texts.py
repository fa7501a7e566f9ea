"""Texts that cost more than they are long: marks, numbers, digits, line breaks."""

import asyncio

import pytest

from agent.engine.contract import Evidence
from agent.sommelier.answer import grounding_problem
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.tracing.masking import (
    MAX_JUDGED,
    MAX_MASKED_CHARS,
    NUMBER_RULES,
    Masking,
    Rule,
)
from bot.telegram.render import MAX_REPLY_CHARS
from bot.telegram.sender import build_messages
from bot.turn import Destination
from tests.attacks.limits import run_with_limits
from tests.fakes import CHINON

MARKS = '"a" + "\\u0301\\u0316" * 64_500'


@pytest.mark.parametrize(
    "work",
    [
        "from agent.turn import find_security_flags; find_security_flags(text)",
        "from agent.numerals import find_numbers; find_numbers(text)",
        "from agent.sommelier.answer import grounding_problem; from agent import Evidence;"
        "from agent.sommelier.sommelier_prompts import SommelierResponse as Response;"
        "answer = Response(response_type='informational', intro='evil.example');"
        "grounding_problem(answer, Evidence(assistant_texts=[text]))",
        "from db.documents.reading import read_document; read_document(text.encode(), 'a.txt')",
    ],
)
def test_a_text_of_combining_marks_is_normalized_in_linear_time(work: str) -> None:
    run_with_limits(f"text = {MARKS}; {work}")


NUMBERS = '" ".join(f"{number}.{number % 90 + 10} euros" for number in range(7, 3_000))'


@pytest.mark.parametrize("asked", [NUMBERS, "'wine' * 2_000"])
def test_a_list_of_amounts_is_checked_in_linear_time(asked: str) -> None:
    run_with_limits(
        "from agent import Evidence; from agent.sommelier.answer import *;"
        "from agent.sommelier.sommelier_prompts import SommelierResponse as Response;"
        f"answer = Response(response_type='informational', intro={NUMBERS}[:31_000]);"
        f"evidence = Evidence(user_texts=[{asked}]);"
        "grounding_problem(answer, evidence); keep_valid(answer, evidence)"
    )


def test_many_numbers_let_no_invented_amount_pass() -> None:
    counts = ", ".join(map(str, range(1, 61)))
    evidence = Evidence({CHINON.id: CHINON}, user_texts=[f"I am {counts}"])
    intro = f"Of {counts} it is yours for 1357.24 euros."
    answer = SommelierResponse.model_validate(
        {"response_type": "informational", "intro": intro}
    )
    assert "1357.24 euros" in (grounding_problem(answer, evidence) or "")
    multiple = f"Of {counts} bottles it costs 999 euros."
    answer = SommelierResponse.model_validate(
        {"response_type": "informational", "intro": multiple}
    )
    assert "999 euros" in (grounding_problem(answer, evidence) or "")


def test_only_some_numbers_of_a_text_are_judged_and_the_others_masked() -> None:
    text = "; ".join(
        f"06{number:02} {number:03} {number:02} {number:02}" for number in range(99)
    )
    judged: list[str] = []

    def judge(row: str) -> str:
        judged.append(row)
        return ""

    rule = Rule(NUMBER_RULES[-1].form, judge, "[phone]")
    masked = rule.mask_all(text)
    assert len(judged) == MAX_JUDGED
    assert masked.count("[phone]") == 99 - MAX_JUDGED
    assert "0698" not in Masking().mask_text(text)


def test_a_long_text_in_a_trace_is_cut_before_it_is_masked() -> None:
    masked = Masking().mask_text("0664 1234567 " * 100_000)
    assert len(masked) < 2 * MAX_MASKED_CHARS
    assert masked.endswith("[cut: 1300000 characters in all]")


async def test_the_event_loop_is_free_while_a_long_reply_is_rendered() -> None:
    text = ("**a** _b_ evil.com " * MAX_REPLY_CHARS)[:MAX_REPLY_CHARS]
    rendering = asyncio.create_task(build_messages(Destination(1), [text]))
    iterations = 0
    while not rendering.done():
        await asyncio.sleep(0)
        iterations += 1
    assert iterations > 10  # one, if it were rendered on the event loop
    assert len(await rendering) > 1


LINE_BREAKS = """
from agent.engine.run import Run
from agent.language import split_sentences, truncate_at_boundary
from agent.markdown import escape
from agent.safety.concerns import read_safety_state
from agent.tracing.masking import Masking
from agent.turn import clean_and_flag
from bot.telegram.render import split_messages
from db.documents.reading import read_document
from db.wines.lists.cellar import read_cellar
from db.wines.lists.problems import CatalogueFileError

text = "Barolo" + "\\n" * 1_000_000 + "Chablis"
clean_and_flag(text, Run(()).span)
read_safety_state(text)
truncate_at_boundary(text, 2_000)
split_sentences(text)
Masking().mask_text(text)
read_document(text.encode(), "a.md")
try:
    read_cellar(text.encode())
except CatalogueFileError:
    pass
print(split_messages(escape(text)))
"""


def test_a_megabyte_of_line_breaks_takes_little_time() -> None:
    assert run_with_limits(LINE_BREAKS) == repr(["Barolo\n…"])
