"""Declare a wine, and what the product does with each of its fields."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.fields import FieldInfo

from agent.sommelier.offers import OFFER_FACTS, Offer, describe_offers, sort_offers
from agent.sommelier.vocabulary import (
    Allergen,
    Body,
    Colour,
    Currency,
    Food,
    Level,
    OfferKind,
    Style,
    Sweetness,
    format_money_for_model,
)
from agent.sommelier.wine_field import WineField
from agent.text import pattern, split_words

HTTPS_ADDRESS: Final = pattern(
    r"\Ahttps://[^\s/?#@:.<>\"]+(?:\.[^\s/?#@:.<>\"]+)+(?::\d{1,5})?(?:[/?#][^\s<>\"]*)?\z"
)
"""An address with a host of two parts or more: `https://shop.example:8443/barolo?size=75`."""
MAX_ADDRESS_CHARS: Final = 1_000
NON_VEGAN_ALLERGENS: Final = frozenset({Allergen.EGG, Allergen.MILK, Allergen.FISH})
VEGAN_WORD: Final = "vegan"
"""The beginning of the words for vegan in all languages of the tables: "veganistisch", "végan"."""
DENIALS: Final = frozenset({"not", "non", "no", "nicht", "pas", "niet", "nao"})
"""The words that deny the word for vegan if they stand directly before it: "not vegan"."""
CELLAR_PREFIX: Final = "own:"
"""The prefix of the ids of wines in a guest's own cellar. No id of the catalogue has it."""


def _check_address(address: str) -> str:
    """Return an address unchanged.

    Raises:
        ValueError: it does not begin with https, or Telegram would refuse it under a message.
    """
    if not address:
        return address
    if len(address) > MAX_ADDRESS_CHARS or not HTTPS_ADDRESS.match(address):
        raise ValueError(
            "is not an address like https://shop.example/barolo, the https included"
        )
    return address


Address = Annotated[str, AfterValidator(_check_address)]
"""The https address of a page or a picture. It may be empty."""


class Wine(BaseModel):
    """A wine of the catalogue or of a guest's own cellar.

    Each field declares by `WineField` what is done with it. A wine that is sold by the bottle only
    may be given by `price`, `currency` and `in_stock` instead of `offers`.
    """

    model_config = ConfigDict(frozen=True)

    id: Annotated[
        str,
        WineField(
            model="wine_id",
            columns="sku, artikelnummer, artikel nr, artikelnr, art nr, artnr, item number, "
            "item no, product id, product code, reference, ref, code article, codice, "
            "codice articolo, cod, codigo, referencia, artikelcode, iwine, handle, variant sku",
        ),
    ]
    producer: Annotated[
        str,
        WineField(
            is_evidence=True,
            is_searched=True,
            in_cellar=True,
            model="name",
            columns="winery, estate, maker, brand, vendor, domaine, chateau, producteur, "
            "vigneron, maison, weingut, erzeuger, produzent, winzer, hersteller, marke, bodega, "
            "productor, marca, cantina, produttore, azienda, wijnhuis, producent, merk, quinta, "
            "produtor",
        ),
    ]
    name: Annotated[
        str,
        WineField(
            is_evidence=True,
            is_searched=True,
            in_cellar=True,
            model="name",
            columns="wine, wine name, title, product, product name, article, item, vin, nom, "
            "nom du vin, cuvee, libelle, designation, produit, wein, weinname, bezeichnung, "
            "artikel, artikelbezeichnung, produkt, produktname, vino, nombre, nombre del vino, "
            "producto, nome, nome vino, nome del vino, etichetta, prodotto, wijn, naam, "
            "wijnnaam, omschrijving, vinho, nome do vinho, produto",
        ),
    ]
    vintage: Annotated[
        int | None,
        WineField(
            is_evidence=True,
            is_searched=True,
            in_cellar=True,
            model="name",
            columns="year, millesime, annee, jahrgang, jahrg, jhg, jg, jahr, anada, cosecha, ano, "
            "annata, anno, jaar, oogstjaar, wijnjaar, colheita, safra",
        ),
    ] = None
    """None for a non-vintage wine. In a guest's cellar, None for an unknown vintage."""
    country: Annotated[
        str,
        WineField(
            is_evidence=True,
            is_searched=True,
            in_cellar=True,
            model="from",
            columns="pays, land, herkunftsland, ursprungsland, pais, paese, nazione, "
            "land van herkomst, country of origin, origin country",
        ),
    ]
    region: Annotated[
        str,
        WineField(
            is_evidence=True,
            is_searched=True,
            in_cellar=True,
            model="from",
            columns="wine region, anbaugebiet, gebiet, weinregion, weinbaugebiet, herkunft, "
            "zona, regione, regiao, streek, wijnstreek, origine, origin, origen",
        ),
    ] = ""
    appellation: Annotated[
        str,
        WineField(
            is_evidence=True,
            is_searched=True,
            in_cellar=True,
            model="from",
            columns="aoc, aop, doc, docg, do, denominacion, denominacion de origen, "
            "denominazione, herkunftsbezeichnung, appellatie, denominacao",
        ),
    ] = ""
    grapes: Annotated[
        tuple[str, ...],
        WineField(
            is_evidence=True,
            is_searched=True,
            in_cellar=True,
            model="grapes",
            columns="grape, varietal, variety, varieties, grape variety, grape varieties, "
            "mastervarietal, cepage, cepages, rebsorte, rebsorten, traube, trauben, uva, uvas, "
            "variedad, variedades, vitigno, vitigni, druif, druiven, druivenras, druivenrassen, "
            "casta, castas",
        ),
    ] = ()
    style: Annotated[
        Style | None,
        WineField(
            is_evidence=True,
            is_searched=True,
            in_cellar=True,
            model="style",
            columns="type, wine type, kind, category, categories, product type, "
            "product category, couleur, type de vin, categorie, weinart, art, farbe, typ, "
            "kategorie, weintyp, color, colour, tipo, tipo de vino, categoria, tipologia, "
            "colore, tipo di vino, soort, wijnsoort, kleur, cor, tipo de vinho, gamme",
        ),
    ] = None
    """None if the wine list does not say it."""
    colour: Annotated[
        Colour | None,
        WineField(
            is_evidence=True,
            is_searched=True,
            in_cellar=True,
            model="colour",
            columns="color, couleur, farbe, colore, kleur, cor",
        ),
    ] = None
    sweetness: Annotated[
        Sweetness | None,
        WineField(
            is_evidence=True,
            is_searched=True,
            in_cellar=True,
            model="sweetness",
            unsaid="dry",
            columns="sugar, dosage, sucrosite, douceur, geschmack, geschmacksrichtung, susse, "
            "dulzor, dolcezza, smaak, zoetheid, docura",
        ),
    ] = None
    body: Annotated[
        Body | None,
        WineField(
            is_evidence=True,
            in_cellar=True,
            model="body",
            columns="corps, koerper, korper, cuerpo, corpo, structure, struttura, volheid",
        ),
    ] = None
    acidity: Annotated[
        Level | None,
        WineField(
            is_evidence=True,
            in_cellar=True,
            model="acidity",
            columns="acid, acidite, saure, acidez, acidita, zuurgraad, zuren",
        ),
    ] = None
    tannin: Annotated[
        Level | None,
        WineField(
            is_evidence=True,
            in_cellar=True,
            model="tannin",
            unsaid="none",
            columns="tannins, tanin, tanins, tannine, taninos, tannini",
        ),
    ] = None
    abv: Annotated[
        float | None,
        WineField(
            is_evidence=True,
            in_cellar=True,
            model="abv",
            columns="alcohol, alc, alc vol, alcohol by volume, alcool, degre, degre alcoolique, "
            "taux d alcool, alkohol, alkoholgehalt, vol, grado, graduacion, gradazione, "
            "gradazione alcolica, alcol, alcoholpercentage, alcoholgehalte, teor alcoolico",
        ),
    ] = None
    offers: Annotated[
        tuple[Offer, ...],
        AfterValidator(sort_offers),
        WineField(is_evidence=True, model="offers", has_column=False, is_stored=False),
    ] = Field((Offer(),), min_length=1)
    """The offers in the order of `OfferKind`, so that a bottle is the first.

    The price of the first offer is the price of the wine. After a search for another kind, an offer
    of that kind is the first.
    """
    foods: Annotated[
        tuple[Food, ...],
        WineField(
            is_evidence=True,
            is_searched=True,
            in_cellar=True,
            model="foods",
            columns="food, food pairing, pairing, pairings, goes with, accords, accords mets, "
            "accompagnement, passt zu, speiseempfehlung, essensempfehlung, maridaje, "
            "abbinamento, abbinamenti, past bij, gerechten, harmonizacao",
        ),
    ] = ()
    allergens: Annotated[
        tuple[Allergen, ...],
        WineField(
            is_evidence=True,
            in_cellar=True,
            model="allergens",
            columns="allergenes, allergene, alergenos, allergeni, allergenen, alergenios",
        ),
    ] = ()
    """The allergens that a label declares. The wine may contain others."""
    notes: Annotated[
        str,
        WineField(
            is_evidence=True,
            is_searched=True,
            in_cellar=True,
            model="notes",
            columns="description, tasting notes, tasting note, note, bottle note, bottlenote, "
            "personal note, private note, pnotes, comment, comments, short description, "
            "commentaire, "
            "notes de degustation, beschreibung, verkostungsnotiz, notiz, bemerkung, "
            "kurzbeschreibung, descripcion, nota de cata, notas, descrizione, "
            "note di degustazione, omschrijving kort, beschrijving, proefnotitie, opmerking, "
            "descricao",
        ),
    ] = ""
    notes_language: Annotated[
        str,
        WineField(has_column=False),
    ] = "en"
    link: Annotated[
        Address,
        WineField(
            columns="url, product url, product link, product page, permalink, web address, "
            "shop url, shop link, page, lien, url produit, lien produit, produktlink, "
            "produkt url, shoplink, webadresse, enlace, url del producto, collegamento, "
            "url prodotto, productlink, product pagina, ligacao, url do produto",
        ),
    ] = ""
    image: Annotated[
        Address,
        WineField(
            columns="image url, image src, image link, images, picture, picture url, photo, "
            "photo url, label image, product image, product image url, bild, bild url, "
            "bildlink, produktbild, bilder, photo du produit, url image, imagen, url imagen, "
            "foto, immagine, url immagine, afbeelding, imagem, url da imagem",
        ),
    ] = ""
    is_sample: Annotated[
        bool,
        WineField(has_column=False, is_stored=False),
    ] = False
    """Whether the wine is one of the starter list, whose prices are indicative."""
    unknown_allergens: Annotated[
        tuple[Allergen, ...],
        WineField(has_column=False, is_stored=False),
    ] = ()
    """The allergens that this guest avoids and that the wine may contain, as far as is known.

    A search for the guest sets them.
    """
    warns_of_alcohol: Annotated[
        bool,
        WineField(has_column=False, is_stored=False),
    ] = False
    """Whether the card says that the wine has alcohol, because this guest had better not drink.

    A search for the guest sets it.
    """

    @model_validator(mode="before")
    @classmethod
    def _offer_one_bottle(cls, data: Any) -> Any:
        """Make an offer of the price and stock of a wine that is given without `offers`."""
        if not isinstance(data, Mapping) or "offers" in data:
            return data
        facts = {name: data[name] for name in OFFER_FACTS if name in data}
        if not facts:
            return data
        return {**data, "offers": [facts]}

    def with_first_offer(self, kind: OfferKind) -> "Wine | None":
        """Return the wine with an offer of this kind as the first.

        Return None if no such offer is in stock.
        """
        for first in self.offers:
            if first.kind is kind and first.in_stock:
                others = [offer for offer in self.offers if offer is not first]
                return self.model_copy(update={"offers": (first, *others)})
        return None

    @property
    def price(self) -> float | None:
        """Return the price of the first offer, or None if it is unknown."""
        return self.offers[0].price

    @property
    def currency(self) -> Currency:
        """Return the currency of the first offer."""
        return self.offers[0].currency

    @property
    def in_stock(self) -> bool:
        """Return whether the wine can be had in any way."""
        return any(offer.in_stock for offer in self.offers)

    @property
    def label(self) -> str:
        """Return producer, name and vintage. `NV` marks non-vintage wines of the catalogue."""
        if self.vintage is None and not self.is_own:
            return f"{self.title} NV"
        return self.title

    @property
    def title(self) -> str:
        """Return producer, name and vintage, as they are shown in a language without `NV`."""
        title = self.name
        if self.producer not in self.name:
            title = f"{self.producer} {self.name}"
        if self.vintage:
            title += f" {self.vintage}"
        return title.strip()

    @property
    def is_own(self) -> bool:
        """Return whether the wine is in a guest's own cellar."""
        return self.id.startswith(CELLAR_PREFIX)

    @property
    def source_text(self) -> str:
        """Return what an answer may say of the wine: its label and the fields that are evidence."""
        texts = [self.label]
        for name, field in wine_fields().items():
            if field.is_evidence:
                texts.append(self.field_text(name))
        return "\n".join(text for text in texts if text)

    @property
    def links(self) -> tuple[str, ...]:
        """Return no addresses, because code makes the card of a wine and its links."""
        return ()

    def field_text(self, name: str) -> str:
        """Return the value of a field as text, or "" if the value is unknown."""
        value = getattr(self, name)
        if value is None:
            return ""
        if isinstance(value, tuple):
            return ", ".join(str(item) for item in value)
        return str(value)

    @property
    def vegan(self) -> Literal["yes", "no", "unknown"]:
        """Return whether the wine is vegan, according to its name, notes and allergens."""
        if not NON_VEGAN_ALLERGENS.isdisjoint(self.allergens):
            return "no"
        word_before = ""
        for word in split_words(f"{self.name} {self.notes}"):
            if word.startswith(VEGAN_WORD):
                if word_before in DENIALS:
                    return "no"
                return "yes"
            word_before = word
        return "unknown"

    def is_known_to_lack(self, allergen: Allergen) -> bool:
        """Return whether the wine is known to be free of an allergen.

        A vegan wine is free of `NON_VEGAN_ALLERGENS`. Nothing else is known.
        """
        return self.vegan == "yes" and allergen in NON_VEGAN_ALLERGENS

    @property
    def facts(self) -> "Wine":
        """Return the wine itself. `ReadWine.facts` returns the wine of the catalogue."""
        return self

    @property
    def prices(self) -> tuple[float, ...]:
        """Return the known prices of all offers."""
        prices: list[float] = []
        for offer in self.offers:
            if offer.price is not None:
                prices.append(offer.price)
        return tuple(prices)

    @property
    def price_in_euros(self) -> float | None:
        """Return the price in euros at rounded rates, or None if it is unknown."""
        return self.offers[0].price_in_euros


@cache
def wine_fields() -> Mapping[str, WineField]:
    """Return the declarations of the fields of `Wine` by name, in their order.

    After `offers` come the facts of an offer that a wine may be given as its own.
    """
    declarations: dict[str, WineField] = {}
    for name, info in Wine.model_fields.items():
        declarations[name] = _declaration(info)
        if name == "offers":
            for fact in OFFER_FACTS:
                declarations[fact] = _declaration(Offer.model_fields[fact])
    return declarations


@cache
def stored_wine_fields() -> set[str]:
    """Return the fields that have a column in the table of wines."""
    fields = wine_fields()
    return {name for name in Wine.model_fields if fields[name].is_stored}


def _declaration(info: FieldInfo) -> WineField:
    """Return the declaration of a field, or the default declaration if it has none."""
    for metadata in info.metadata:
        if isinstance(metadata, WineField):
            return metadata
    return WineField()


def wine_record(wine: Wine) -> dict[str, Any]:
    """Return the known facts of a wine for a model.

    A value that a field declares as `unsaid`, such as `dry`, is left out.
    """
    composed = _compose_facts(wine)
    record: dict[str, Any] = {}
    for name, field in wine_fields().items():
        fact_name = field.model
        value = getattr(wine, name)
        if not fact_name or value == field.unsaid:
            continue
        if fact_name in composed:
            value = composed[fact_name]
        if value is not None and value != "":
            record[fact_name] = value
    record["vegan"] = wine.vegan
    if wine.unknown_allergens:
        record["may_contain"] = ", ".join(wine.unknown_allergens)
    return record


def _compose_facts(wine: Wine) -> dict[str, Any]:
    """Return the facts whose form for a model differs from that of the fields.

    A fact that is None or empty is left out of the record.
    """
    places: list[str] = []
    for place in (wine.appellation, wine.region, wine.country):
        if place and place not in places:
            places.append(place)
    facts: dict[str, Any] = {
        "name": wine.label,
        "from": ", ".join(places),
        "grapes": ", ".join(wine.grapes),
        "price": None,
        "offers": describe_offers(wine.offers),
        "foods": ", ".join(wine.foods),
        "allergens": "unknown",
    }
    if str(wine.colour) == wine.style:  # the style "red" says the colour, too
        facts["colour"] = None
    if wine.price is not None:
        facts["price"] = format_money_for_model(wine.price, wine.currency)
    if wine.allergens:
        declared = [name for name in wine.allergens if name != Allergen.SULPHITES]
        facts["allergens"] = ", ".join(declared)
    return facts
