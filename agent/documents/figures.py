"""Numbers in prose, made comparable: "1,000" and "1000", "12,5" and "12.50", "two" and 2."""

from typing import Final

from agent.text import pattern, words

NUMBER: Final = pattern(r"\d+(?:[.,’'\u00a0\u202f]\d+)*")
SEPARATOR: Final = pattern(r"\D")
WRITTEN: Final = (
    "one two three four five six seven eight nine ten eleven twelve",
    "ein zwei drei vier funf sechs sieben acht neun zehn elf zwolf",
    "un deux trois quatre cinq six sept huit neuf dix onze douze",
    "uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "uno due tre quattro cinque sei sette otto nove dieci undici dodici",
    "een twee drie vier vijf zes zeven acht negen tien elf twaalf",
    "um dois tres quatro cinco seis sete oito nove dez onze doze",
)
"""One to twelve in the languages of the interface, folded."""
VALUES: Final = {
    name: float(value) for names in WRITTEN for value, name in enumerate(names.split(), 1)
}


def unsupported_number(statement: str, sources: str) -> str | None:
    """Return the first number in a statement that its sources do not hold, or None.

    The sources may write it in figures or, up to twelve, in words.
    """
    held = {value for figures in NUMBER.findall(sources) for value in values(figures)}
    held.update(VALUES[word] for word in words(sources) if word in VALUES)
    numbers = NUMBER.findall(statement)
    return next((figures for figures in numbers if held.isdisjoint(values(figures))), None)


def values(figures: str) -> set[float]:
    """Return what a number in figures may mean: "1.500" is 1500, or one and a half."""
    first, *groups = SEPARATOR.split(figures)
    if not groups:
        return {float(first)}
    found = {float(f"{first}{''.join(groups[:-1])}.{groups[-1]}")}
    if all(len(group) == 3 for group in groups):
        found.add(float(first + "".join(groups)))
    return found
