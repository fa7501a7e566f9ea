"""Read in what a wine is sold from texts such as "Magnum 1,5 l", "6 x 0,75 l" and "Glas 0,1l"."""

from dataclasses import dataclass
from typing import Final

from agent.sommelier.vocabulary import OfferKind, normalize
from agent.text import pattern
from db.wines.lists.words import load_words

SIZE: Final = pattern(
    r"(?i)(?:\b(\d{1,2})\s*[x×*]\s*|\b)(\d{1,4}(?:[.,]\d{1,3})?)\s?"
    r"(ml|cl|dl|l|lt|ltr|liters?|litres?|litros?|litri)\b\.?"
)
"""A size, after the number of bottles in a case: "6 x 0,75 l", "75cl", "1.5L"."""
LITRES: Final = pattern(r"(?:\A|\s)(0[.,]\d{1,3})(?:\s|\z)")
"""A size without its unit, in the names of columns of restaurants: "Glas 0,1", "0,75"."""
COUNT: Final = pattern(
    r"(?i)\b(?:([2-9]|[1-9]\d)er\b|(?:case|box|pack|carton|caisse|caja|cassa|cartone|doos|caixa|karton|kiste)"
    r"\s(?:of|de|da|di|van|mit|à|a)?\s?(\d{1,2})\b|(\d{1,2})[\s-]?(?:bottles?|pack|flaschen|bouteilles|"
    r"botellas|bottiglie|flessen|garrafas)\b)"
)
"""The number of bottles in a case: "6er Karton", "case of 12", "6 bottles"."""
MILLILITRES: Final = {"ml": 1, "cl": 10, "dl": 100}
"""The millilitres in a unit. All other units that `SIZE` reads are names of the litre."""
MILLILITRES_OF_LITRE: Final = 1000
USUAL_SIZES: Final = {
    OfferKind.BOTTLE: 750,
    OfferKind.HALF: 375,
    OfferKind.MAGNUM: 1500,
}
SHOP_KINDS: Final = (
    (250, OfferKind.PICCOLO),
    (400, OfferKind.HALF),
    (1000, OfferKind.BOTTLE),
    (1500, OfferKind.MAGNUM),
)
"""The largest size, in millilitres, of each kind that a shop sells. More is a large bottle."""
SERVED_KINDS: Final = ((250, OfferKind.GLASS), (500, OfferKind.CARAFE))
"""The largest size, in millilitres, of each kind that a restaurant pours."""
MAX_ML: Final = 100_000
"""A larger size is an error: the largest bottles have 30 litres."""
NAMES_OF_WINES: Final = frozenset({"demi", "imperial", "imperiale"})
"""Words that name a bottle only if they stand alone: "Demi-Sec" and "Brut Impérial" are wines."""


@dataclass(frozen=True, slots=True)
class Packing:
    """In what a wine is sold. `size_ml` is None if it is unknown, or usual for the kind."""

    kind: OfferKind
    size_ml: int | None = None


def read_packing(text: str, *, is_served: bool = False) -> Packing | None:
    """Return in what a text says that a wine is sold, or None if it does not say it.

    If `is_served`, the text is the title of a column in a restaurant's list.
    """
    size_ml = _read_size(text, is_served=is_served)
    bottle_count = _count_bottles(text)
    if bottle_count > 1:
        bottle_ml = size_ml or USUAL_SIZES[OfferKind.BOTTLE]
        return Packing(OfferKind.CASE, bottle_count * bottle_ml)
    kind = _read_kind(text)
    if size_ml is None:
        return Packing(kind) if kind else None
    if kind is None:
        kind = _kind_of_size(size_ml, is_served=is_served)
    elif kind is OfferKind.BOTTLE:
        # People call a magnum a bottle, too.
        kind = _kind_of_size(size_ml, is_served=False)
    if size_ml == USUAL_SIZES.get(kind):
        return Packing(kind)
    return Packing(kind, size_ml)


def strip_packing(text: str) -> str:
    """Return a title without its size, and without words such as "Magnum" at its end."""
    without_size = SIZE.sub(" ", text)
    tokens = COUNT.sub(" ", without_size).split()
    while len(tokens) > 1 and _is_packing_word(tokens[-1]):
        tokens.pop()
    return " ".join(tokens)


def _is_packing_word(token: str) -> bool:
    """Return whether a word says how a wine is packed, such as "bottle" or "magnum"."""
    word = normalize(token)
    kinds = load_words()["trailing_kinds"]
    return any(word in names for names in kinds.values())


def _read_kind(text: str) -> OfferKind | None:
    """Return the kind that the words of a text name, or None."""
    # The spaces let only whole words match.
    padded = f" {normalize(text)} "
    without_size = normalize(SIZE.sub(" ", text))
    for kind, names in load_words()["kinds"].items():
        for name in names:
            if f" {name} " not in padded:
                continue
            stands_alone = name == without_size
            if stands_alone or name not in NAMES_OF_WINES:
                return OfferKind(kind)
    return None


def _read_size(text: str, *, is_served: bool) -> int | None:
    """Return the size of one bottle or glass in millilitres, or None."""
    unit_ml = MILLILITRES_OF_LITRE
    size = SIZE.search(text)
    if size:
        number = size[2]
        unit = size[3].lower()
        unit_ml = MILLILITRES.get(unit, unit_ml)
    else:
        litres = LITRES.search(text)
        if litres is None or not is_served:
            return None
        number = litres[1]
    size_ml = round(_to_float(number) * unit_ml)
    if 0 < size_ml <= MAX_ML:
        return size_ml
    return None


def _to_float(number: str) -> float:
    return float(number.replace(",", "."))


def _count_bottles(text: str) -> int:
    """Return the number of bottles in a case, or 1 if the text does not name a case."""
    numbers: list[str | None] = []
    size = SIZE.search(text)
    if size:
        count_before_size = size[1]
        numbers.append(count_before_size)
    count = COUNT.search(text)
    if count:
        # Each group has the number of one way to write it.
        numbers += count.groups()
    for number in numbers:
        if number:
            return int(number)
    return 1


def _kind_of_size(size_ml: int, *, is_served: bool) -> OfferKind:
    """Return the kind of an offer of this size. A restaurant also serves glasses and carafes."""
    # A restaurant's half bottle has the size of a small carafe.
    if is_served and size_ml != USUAL_SIZES[OfferKind.HALF]:
        for largest_ml, kind in SERVED_KINDS:
            if size_ml <= largest_ml:
                return kind
    for largest_ml, kind in SHOP_KINDS:
        if size_ml <= largest_ml:
            return kind
    return OfferKind.LARGE
