"""`python -m benchmarks.grounding [FILE]`: what the check of free text stops, and what not.

The file is of JSON lines with `text` and `forged` (true or false), or a `label` (`ordinary` or
not); each is judged alone, as the words of a model that called no tool. Printed are both shares and
the `id` of each that was wrongly stopped, or not stopped; with `--show` the texts and reasons, too.
Without a file they are sentences from outside.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from agent.engine.contract import Evidence
from agent.sommelier.answer import unsupported
from agent.sommelier.sommelier_prompts import SommelierResponse

OUTSIDE: Final = Path(__file__).parent.parent / "tests" / "evals" / "outside"

Row = dict[str, Any]


def rows_of(file: Path) -> Iterator[Row]:
    """Read a file, each row with whether it is `forged`; a number is the id of one without."""
    for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1):
        row = json.loads(line)
        yield {"id": str(number), "forged": row.get("label", "ordinary") != "ordinary"} | row


def own_rows() -> Iterator[Row]:
    """Read the sentences from outside."""
    for name in ("ordinary", "forged"):
        yield from (
            row | {"forged": name == "forged"} for row in rows_of(OUTSIDE / f"{name}.jsonl")
        )


def problem(text: str) -> str | None:
    """Say what is made up in a text, None if nothing is."""
    return unsupported(SommelierResponse(response_type="informational", intro=text), Evidence())


def report(rows: Sequence[Row], *, forged: bool, show: bool) -> Iterator[str]:
    """Say how many texts of one side are stopped, and which ones wrongly are or are not."""
    side = [row for row in rows if row["forged"] == forged]
    began = perf_counter()
    found = [(row, problem(row["text"])) for row in side]
    milliseconds = 1000 * (perf_counter() - began) / max(1, len(side))
    stopped = sum(each is not None for _, each in found)
    wrong = [(row, each) for row, each in found if (each is not None) != forged]
    yield (
        f"{'forged' if forged else 'ordinary'}: {len(side)} texts, {stopped} stopped "
        f"({stopped / max(1, len(side)):.1%}), {milliseconds:.2f} ms each"
    )
    yield f"  {'not' if forged else 'wrongly'} stopped: {' '.join(row['id'] for row, _ in wrong)}"
    if show:
        yield from (f"  {row['id']} {row['text']!r} {each or ''}" for row, each in wrong)


def main() -> None:
    """Print the figures of a file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grounding", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    rows = list(rows_of(given.file) if given.file else own_rows())
    for forged in (False, True):
        print(*report(rows, forged=forged, show=given.show), sep="\n")


if __name__ == "__main__":
    main()
