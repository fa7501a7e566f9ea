"""The check of an answer by a model, only where one is set aside for it.

One request for the statements that do not stand in their sources' words. Those that it finds to say
the same stand as they are; whatever goes wrong, none does.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.documents.lexicon import numbers
from agent.documents.passages import as_data
from agent.engine.contract import OutputContract
from agent.engine.loop import generate_agentic_response
from agent.engine.run import Run
from agent.prompts import prompt_for

PROMPT: Final = "<statements>\n{statements}\n</statements>\n\nJudge each statement."
SECONDS: Final = 20.0


class Verdict(BaseModel):
    """What one statement is, beside its passage."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: int = Field(description="The number of the statement.")
    verdict: Literal["supported", "not_supported", "contradicted"]
    differs: str = Field(description="The words of it that the passage does not say, or none.")


class Verdicts(BaseModel):
    """A verdict for each statement."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    verdicts: list[Verdict]


async def supported(doubtful: Mapping[str, str], run: Run) -> frozenset[str]:
    """Return those statements that a model finds to say what their passages say.

    A number that the passage lacks is not believed. Nothing is asked without statements, a model
    for it (`aside["check"]`) or a request left. Never raises, except when cancelled.
    """
    model, stated = run.aside.get("check"), list(doubtful.items())
    if not stated or model is None or run.ledger.requests_left(run.limits) < 1:
        return frozenset()
    limits = replace(
        run.limits,
        structured_output_max_retries=0,
        model_tries=1,
        seconds=min(SECONDS, run.limits.seconds),
    )
    contract = OutputContract(Verdicts, temperature=0)
    asked = run.instructed(prompt_for(run, "documents-check"), schema=contract.output.text)
    listed = (
        f"{number}. {as_data(said)}\nPASSAGE: {as_data(passage)}"
        for number, (said, passage) in enumerate(stated, 1)
    )
    with run.span.child("check", "span", input=[said for said, _ in stated]) as step:
        response = await generate_agentic_response(
            PROMPT.format(statements="\n\n".join(listed)),
            run=replace(asked, models=[model], limits=limits, span=step),
            contract=contract,
        )
        verdicts = response.answer.verdicts if response.ok and response.answer else []
        held = {each.number for each in verdicts if each.verdict == "supported"}
        held -= {each.number for each in verdicts if each.verdict != "supported" or each.differs}
        found = frozenset(
            said
            for number, (said, passage) in enumerate(stated, 1)
            if number in held and numbers(said) <= numbers(passage)
        )
        step.update(output=sorted(found), level=None if response.ok else "WARNING")
    return found
