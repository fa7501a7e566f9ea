"""What can be looked for nearby. A new category is one new entry."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

from agent.places.distinct import same_word, words


@dataclass(frozen=True, slots=True)
class Category:
    """A kind of place: what people call it, the hint for the model, and ten phrases of its own.

    The phrases, each followed by the place, are the queries of a house without a model. Behind the
    colon of the hint stand words that mean this kind of place, with commas between them.
    """

    label: str
    hint: str
    phrases: tuple[str, ...]


CATEGORIES: Final[Mapping[str, Category]] = MappingProxyType(
    {
        "WINE_SHOP": Category(
            "wine shop",
            "where bottles are sold: wine shop, wine merchant, bottle shop, vinothèque, cave à "
            "vin, enoteca, Weinhandlung, vinoteca, wine cellar, importer with direct sales",
            (
                "wine shop",
                "wine merchant",
                "bottle store",
                "buy natural wine",
                "fine wine retailer",
                "vinothèque",
                "wine importer direct sale",
                "champagne and sparkling wine seller",
                "organic biodynamic wines to take away",
                "enoteca with tasting counter",
            ),
        ),
        "WINE_BAR": Category(
            "wine bar",
            "where wine is poured: wine bar, natural wine bar, wines by the glass, bar à vin, "
            "enoteca, Weinbar, vinoteca, small plates, cheese and charcuterie",
            (
                "wine bar",
                "wines by the glass",
                "natural wine bar small plates",
                "bar à vins",
                "champagne lounge",
                "enoteca aperitivo",
                "cheese and charcuterie with wine",
                "sherry and port bar",
                "late night wine cellar bar",
                "sommelier led tasting flights",
            ),
        ),
        "WINERY": Category(
            "winery",
            "where wine is made and visitors are received: winery, wine estate, vineyard, cellar "
            "door, domaine, château, Weingut, bodega, cantina, quinta",
            (
                "winery",
                "vineyard to visit",
                "wine estate cellar tour",
                "cellar door sales",
                "organic wine grower",
                "family domaine direct from producer",
                "bodega",
                "sparkling wine house visits",
                "winemaker open days",
                "wine route map",
            ),
        ),
        "TASTING": Category(
            "wine tasting",
            "events and guided tastings: wine tasting, wine flight, vertical tasting, wine "
            "festival, dégustation, Weinprobe, cata de vinos, degustazione, wine fair",
            (
                "wine tasting",
                "guided wine flight evening",
                "wine festival",
                "dégustation",
                "blind tasting event",
                "vertical tasting of old vintages",
                "wine fair tickets",
                "cheese and wine pairing workshop",
                "winemaker dinner",
                "vineyard tour with samples",
            ),
        ),
        "RESTAURANT": Category(
            "restaurant for wine",
            "where the wine list is the reason to go: restaurant with a great wine list, "
            "sommelier, wine pairing menu, bring your own bottle, corkage, bistro, gastropub",
            (
                "restaurant great wine list",
                "wine pairing menu",
                "restaurant with sommelier",
                "bring your own bottle corkage",
                "natural wine bistro",
                "Michelin star wine cellar dining",
                "award winning wine list",
                "seafood and white wine dinner",
                "steakhouse red wine selection",
                "vineyard lunch terrace",
            ),
        ),
        "SOMMELIER_COURSE": Category(
            "wine course",
            "where one learns: sommelier course, WSET, Court of Master Sommeliers, wine school, "
            "wine class for beginners, oenology, cours d'œnologie, Weinseminar, curso de cata",
            (
                "sommelier course",
                "WSET level 2",
                "wine school",
                "wine class for beginners",
                "oenology evening seminar",
                "Court of Master Sommeliers exam",
                "cours d'œnologie",
                "wine appreciation workshop",
                "professional wine certification",
                "online and weekend wine training",
            ),
        ),
    }
)


def category_named(name: str) -> str:
    """The key of a category as a person may write it: "wine bars", "WINE_BAR", "Weinbar".

    Known are its key, its label, its phrases and the words of its hint; where two categories have
    the same, the first is meant.

    Raises:
        ValueError: there is none; the message lists what there is.
    """
    said = words(name)
    for key, category in CATEGORIES.items():
        if any(_same(said, known) for known in (words(key), *_names(category))):
            return key
    raise ValueError(f"there is no category {name.strip()[:40]!r}; use {', '.join(CATEGORIES)}")


@cache
def _names(category: Category) -> tuple[list[str], ...]:
    hinted = category.hint.rpartition(":")[2].split(",")
    return tuple(map(words, (category.label, *category.phrases, *hinted)))


def _same(said: Sequence[str], known: Sequence[str]) -> bool:
    return len(said) == len(known) and all(map(same_word, said, known))
