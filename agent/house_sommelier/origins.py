"""Countries and regions as the six languages name them, with their adjectives.

`agent.house_sommelier.places` has the names that are the same everywhere; here stand, for each
language, the name (first, so that an answer can use it) and the forms of the adjective: `=` after
a German or Dutch stem stands for all its endings.
"""

from typing import Final

_ENDINGS: Final = {"de": ("e", "er", "en", "es", "em", ""), "nl": ("e", "")}

_ORIGINS: Final = """
countries France
  en France, French
  de Frankreich, französisch=
  fr France, français, française, françaises
  es Francia, francés, francesa, franceses, francesas
  it Francia, francese, francesi
  nl Frankrijk, frans=
countries Italy
  en Italy, Italian
  de Italien, italienisch=
  fr Italie, italien, italienne, italiennes
  es Italia, italiano, italiana, italianos, italianas
  it Italia, italiano, italiana, italiani, italiane
  nl Italië, italiaans=
countries Spain
  en Spain, Spanish
  de Spanien, spanisch=
  fr Espagne, espagnol, espagnole, espagnols, espagnoles
  es España, español, española, españoles, españolas
  it Spagna, spagnolo, spagnola, spagnoli, spagnole
  nl Spanje, spaans=
countries Germany
  en Germany, German
  de Deutschland, deutsch=
  fr Allemagne, allemand, allemande, allemands, allemandes
  es Alemania, alemán, alemana, alemanes, alemanas
  it Germania, tedesco, tedesca, tedeschi, tedesche
  nl Duitsland, duits=
countries Portugal
  en Portugal, Portuguese
  de Portugal, portugiesisch=
  fr Portugal, portugais, portugaise, portugaises
  es Portugal, portugués, portuguesa, portugueses, portuguesas
  it Portogallo, portoghese, portoghesi
  nl Portugal, portugees, portugese, portugeze
countries Austria
  en Austria, Austrian
  de Österreich, österreichisch=
  fr Autriche, autrichien, autrichienne, autrichiens
  es Austria, austriaco, austriaca, austriacos, austríaco
  it Austria, austriaco, austriaca, austriaci
  nl Oostenrijk, oostenrijks=
countries Argentina
  en Argentina, Argentinian
  de Argentinien, argentinisch=
  fr Argentine, argentin, argentins, argentines
  es Argentina, argentino, argentinos, argentinas
  it Argentina, argentino, argentini, argentine
  nl Argentinië, argentijns=
countries Chile
  en Chile, Chilean
  de Chile, chilenisch=
  fr Chili, chilien, chilienne, chiliens
  es Chile, chileno, chilena, chilenos, chilenas
  it Cile, cileno, cilena, cileni
  nl Chili, chileens=
countries Australia
  en Australia, Australian
  de Australien, australisch=
  fr Australie, australien, australienne, australiens
  es Australia, australiano, australiana, australianos
  it Australia, australiano, australiana, australiani
  nl Australië, australisch=
countries New Zealand
  en New Zealand, kiwi wine
  de Neuseeland, neuseeländisch=
  fr Nouvelle-Zélande, néo zélandais, néo zélandaise
  es Nueva Zelanda, neozelandés, neozelandesa
  it Nuova Zelanda, neozelandese, neozelandesi
  nl Nieuw-Zeeland, nieuw zeelands=
countries South Africa
  en South Africa, South African
  de Südafrika, südafrikanisch=
  fr Afrique du Sud, sud africain, sud africaine, sud africains
  es Sudáfrica, sudafricano, sudafricana, sudafricanos
  it Sudafrica, sudafricano, sudafricana, sudafricani
  nl Zuid-Afrika, zuid afrikaans=
countries United States
  en United States, American, the States
  de USA, amerikanisch=, Vereinigte Staaten
  fr États-Unis, américain, américaine, américains, américaines
  es Estados Unidos, estadounidense, americano, americana
  it Stati Uniti, americano, americana, americani, statunitense
  nl Verenigde Staten, amerikaans=, Amerika
countries Greece
  en Greece, Greek
  de Griechenland, griechisch=
  fr Grèce, grec, grecque, grecs
  es Grecia, griego, griega, griegos
  it Grecia, vino greco, vini greci, greca
  nl Griekenland, grieks=
countries Hungary
  en Hungary, Hungarian
  de Ungarn, ungarisch=
  fr Hongrie, hongrois, hongroise
  es Hungría, húngaro, húngara
  it Ungheria, ungherese, ungheresi
  nl Hongarije, hongaars=
countries Switzerland
  en Switzerland, Swiss
  de Schweiz, schweizerisch=
  fr Suisse
  es Suiza, suizo, suiza
  it Svizzera, svizzero, svizzeri
  nl Zwitserland, zwitsers=
countries England
  en England, English
  de England, englisch=
  fr Angleterre, anglais, anglaise
  es Inglaterra, inglés, inglesa
  it Inghilterra, inglese, inglesi
  nl Engeland, engels=
countries Georgia
  en Georgia, Georgian
  de Georgien, georgisch=
  fr Géorgie, géorgien, géorgienne
  es Georgia, georgiano
  it Georgia, georgiano
  nl Georgië, georgisch=
countries Croatia
  de Kroatien, kroatisch=
  fr Croatie, croate
  es Croacia, croata
  it Croazia, croato
  nl Kroatië, kroatisch=
countries Slovenia
  de Slowenien, slowenisch=
  fr Slovénie, slovène
  es Eslovenia, esloveno
  it Slovenia, sloveno
  nl Slovenië, sloveens=
countries Lebanon
  de Libanon, libanesisch=
  fr Liban, libanais
  es Líbano, libanés
  it Libano, libanese
  nl Libanon, libanees, libanese
regions Tuscany
  de Toskana, toskanisch=
  fr Toscane, toscan, toscans
  es Toscana, toscano, toscanos
  it Toscana, toscano, toscani, toscane
  nl Toscane, toscaans=
regions Piedmont
  de Piemont, piemontesisch=
  fr Piémont, piémontais
  es Piamonte, piamontés
  it Piemonte, piemontese, piemontesi
  nl Piëmont, piemontees, piemontese
regions Sicily
  de Sizilien, sizilianisch=
  fr Sicile, sicilien, siciliens
  es Sicilia, siciliano, sicilianos
  it Sicilia, siciliano, siciliana, siciliani
  nl Sicilië, siciliaans=
regions Sardinia
  de Sardinien, sardisch=
  fr Sardaigne, sarde
  es Cerdeña, sardo
  it Sardegna, sardo, sarda, sardi
  nl Sardinië, sardijns=
regions Puglia
  de Apulien, apulisch=
  fr Pouilles
  it Puglia, pugliese, pugliesi
  nl Apulië
regions Veneto
  de Venetien, venetisch=
  fr Vénétie
  it Veneto, vini veneti, vino veneto
regions Burgundy
  de Burgund, burgundisch=
  fr Bourgogne, bourguignon, bourguignons, bourgognes
  es Borgoña
  it Borgogna
  nl Bourgogne, bourgondisch=
regions Bordeaux
  de Bordeaux, bordeauxwein, bordeauxweine
  fr Bordeaux, bordelais
  es Burdeos
  nl Bordeaux, bordeauxwijn, bordeauxwijnen
regions Alsace
  de Elsass, elsässisch=, Elsässer
  fr Alsace, alsacien, alsaciens
  es Alsacia
  it Alsazia
  nl Elzas
regions California
  de Kalifornien, kalifornisch=
  fr Californie, californien, californiens
  es California, californiano
  it California, californiano, californiani
  nl Californië, californisch=
regions Rioja
  es Rioja, riojano, riojanos
regions Loire
  fr Loire, vins de Loire
  nl Loirestreek
regions Rhône
  fr vallée du Rhône
  es Ródano
  it Rodano
  nl Rhônestreek
regions Styria
  de Steiermark, steirisch=
regions Catalonia
  fr Catalogne, catalan
  es Cataluña, catalán, catalana, catalanes
  it Catalogna
  nl Catalonië, catalaans=
"""


def _expanded(line: str) -> str:
    """A line with every `stem=` as all the forms of its language."""
    code, _, phrases = line.strip().partition(" ")
    forms = [form for phrase in phrases.split(", ") for form in _forms(phrase, code)]
    return f"  {code} {', '.join(forms)}"


def _forms(phrase: str, code: str) -> list[str]:
    if not phrase.endswith("="):
        return [phrase]
    return [f"{phrase[:-1]}{ending}" for ending in _ENDINGS[code]]


ORIGINS: Final = "\n".join(
    _expanded(line) if line.startswith(" ") else line for line in _ORIGINS.split("\n")
)
