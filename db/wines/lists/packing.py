"""Read what is sold from texts such as "Magnum 1,5 l", "6 x 0,75 l" and "Glas 0,1l"."""

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
"""Other units are litres."""
USUAL_SIZES: Final = {
    OfferKind.BOTTLE: 750,
    OfferKind.HALF: 375,
    OfferKind.MAGNUM: 1500,
}
LARGEST: Final = (
    (250, OfferKind.PICCOLO),
    (400, OfferKind.HALF),
    (1000, OfferKind.BOTTLE),
    (1500, OfferKind.MAGNUM),
)
"""What is sold in a shop up to a size, in millilitres; beyond, it is a large bottle."""
LARGEST_SERVED: Final = ((250, OfferKind.GLASS), (500, OfferKind.CARAFE))
"""What is poured in a restaurant up to a size, except the half bottle."""
MAX_ML: Final = 100_000
NAMES_OF_WINES: Final = frozenset({"demi", "imperial", "imperiale"})
"""Kinds only if nothing else is said: "Demi-Sec" and "Brut Impérial" are names of wines."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Says what is sold; `size_ml` is None if it is unknown or the usual one of its kind."""

    kind: OfferKind
    size_ml: int | None = None


def read_packing(text: str, *, is_served: bool = False) -> Packing | None:
    """Return what a text says is sold, or None. `is_served` is for the columns of restaurants."""
    kind = _read_kind(text)
    size_ml = _read_size(text)
    if size_ml is None and is_served and not SIZE.search(text):
        size_ml = _read_litres(text)
    bottles = _count_bottles(text)
    if bottles > 1:
        size_of_one = size_ml or USUAL_SIZES[OfferKind.BOTTLE]
        return Packing(OfferKind.CASE, bottles * size_of_one)
    if size_ml is None:
        return Packing(kind) if kind else None
    if kind is None:
        kind = _kind_of_size(size_ml, is_served=is_served)
    if kind is OfferKind.BOTTLE:  # said of a magnum too
        kind = _kind_of_size(size_ml, is_served=False)
    if size_ml == USUAL_SIZES.get(kind):
        return Packing(kind)
    return Packing(kind, size_ml)


def strip_packing(text: str) -> str:
    """Return a title without its size, and without a word for what is sold at its end."""
    without_size = SIZE.sub(" ", text)
    tokens = COUNT.sub(" ", without_size).split()
    while len(tokens) > 1 and _is_packing_word(tokens[-1]):
        tokens.pop()
    return " ".join(tokens)


def _is_packing_word(token: str) -> bool:
    word = normalize(token)
    return any(word in names for names in load_words()["trailing_kinds"].values())


def _read_kind(text: str) -> OfferKind | None:
    """Return the kind that the words of a text name, or None."""
    padded = f" {normalize(text)} "
    without_size = normalize(SIZE.sub(" ", text))
    for kind, names in load_words()["kinds"].items():
        for name in names:
            may_be_of_a_wine = name in NAMES_OF_WINES and name != without_size
            if f" {name} " in padded and not may_be_of_a_wine:
                return OfferKind(kind)
    return None


def _read_size(text: str) -> int | None:
    """Return the size in a text like "75cl" or "6 x 0,75 l", in millilitres, or None."""
    size = SIZE.search(text)
    if size is None:
        return None
    amount = float(size[2].replace(",", "."))
    millilitres = round(amount * MILLILITRES.get(size[3].lower(), 1000))
    if 0 < millilitres <= MAX_ML:
        return millilitres
    return None


def _read_litres(text: str) -> int | None:
    """Return the size in a text like "Glas 0,1", in millilitres, or None."""
    litres = LITRES.search(text)
    if litres is None:
        return None
    return round(1000 * float(litres[1].replace(",", ".")))


def _count_bottles(text: str) -> int:
    """Return the number of bottles in a case, 1 if the text names none."""
    size = SIZE.search(text)
    if size and size[1]:
        return int(size[1])
    count = COUNT.search(text)
    if count is None:
        return 1
    number = count[1] or count[2] or count[3]
    return int(number)


def _kind_of_size(size_ml: int, *, is_served: bool) -> OfferKind:
    if is_served and size_ml != USUAL_SIZES[OfferKind.HALF]:
        for largest, kind in LARGEST_SERVED:
            if size_ml <= largest:
                return kind
    for largest, kind in LARGEST:
        if size_ml <= largest:
            return kind
    return OfferKind.LARGE
