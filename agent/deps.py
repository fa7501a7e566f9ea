"""The dependencies of this product's tools and rules: the `deps` of a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agent.engine.messages import LLM
from agent.engine.run import Run
from agent.engine.span import Prompt
from agent.turn import Person


class Prompts(Protocol):
    """The prompts of a turn."""

    def get(self, name: str) -> Prompt:
        """Return the prompt to use now, at once: nothing is waited for.

        Raises:
            KeyError: this product has no prompt of that name.
        """


@dataclass(frozen=True, slots=True)
class Deps:
    """The person who asks, the prompts in use, and models that are asked for one thing each.

    Without a `person` nothing is known of them but their messages; without `prompts` those of the
    repository are used. `told` are the ids of excerpts and wines that a model was given in this
    turn.
    """

    person: Person | None = None
    prompts: Prompts | None = None
    models: Mapping[str, LLM] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)


def deps_of(run: Run) -> Deps:
    """Return the deps of a run; a run that was made without any has none of it."""
    return run.deps if isinstance(run.deps, Deps) else Deps()
