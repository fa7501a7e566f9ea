"""Countries, and states that people write behind a town, as they are called in several languages.

A search that names one of these and no town is a search of the whole country. A name that is
missing here only makes the check of ten queries milder.
"""

from typing import Final

_COUNTRIES: Final = """
Albania Algeria Andorra Angola Argentina Armenia Australia Austria Azerbaijan Bahrain Bangladesh
Belarus Belgium Belize Bolivia Botswana Brazil Bulgaria Cambodia Cameroon Canada Chile China
Colombia Croatia Cuba Cyprus Czechia Denmark Ecuador Egypt England Estonia Ethiopia Finland France
Georgia Germany Ghana Greece Guatemala Honduras Hungary Iceland India Indonesia Iran Iraq Ireland
Israel Italy Jamaica Japan Jordan Kazakhstan Kenya Kosovo Kuwait Kyrgyzstan Laos Latvia Lebanon
Liechtenstein Lithuania Luxembourg Madagascar Malawi Malaysia Malta Mauritius Mexico Moldova Monaco
Mongolia Montenegro Morocco Mozambique Myanmar Namibia Nepal Netherlands Nicaragua Nigeria Norway
Oman Pakistan Panama Paraguay Peru Philippines Poland Portugal Qatar Romania Russia Rwanda Scotland
Senegal Serbia Singapore Slovakia Slovenia Spain Sweden Switzerland Syria Taiwan Tanzania Thailand
Tunisia Turkey Uganda Ukraine Uruguay Uzbekistan Venezuela Vietnam Wales Zambia Zimbabwe
Albanien Algerien Argentinien Armenien Australien Österreich Belgien Brasilien Bulgarien Kanada
Kolumbien Kroatien Zypern Tschechien Dänemark Ägypten Estland Finnland Frankreich Georgien
Deutschland Griechenland Ungarn Island Indien Irland Italien Jordanien Lettland Libanon Litauen
Luxemburg Mexiko Moldau Marokko Niederlande Norwegen Polen Rumänien Russland Schottland Serbien
Slowakei Slowenien Spanien Schweden Schweiz Südafrika Türkei Tunesien Neuseeland
Großbritannien
Algérie Argentine Arménie Australie Autriche Belgique Brésil Bulgarie Chili Chine Colombie Croatie
Chypre Tchéquie Danemark Égypte Angleterre Estonie Finlande Géorgie Allemagne Grèce Hongrie
Islande Inde Irlande Israël Italie Japon Jordanie Lettonie Liban Lituanie Malte Mexique Moldavie
Maroc Norvège Pologne Pérou Roumanie Russie Écosse Serbie Slovaquie Slovénie Espagne Suède Suisse
Thaïlande Turquie Tunisie
Alemania Bélgica Brasil Canadá Croacia Chipre Dinamarca Egipto Inglaterra Eslovaquia
Eslovenia España Finlandia Francia Grecia Hungría Irlanda Islandia Italia Japón Líbano Lituania
Luxemburgo Marruecos México Moldavia Noruega Perú Polonia Rumanía Rusia Escocia Suecia Suiza
Tailandia Turquía Túnez Ucrania
Germania Giappone Inghilterra Irlanda Libano Lussemburgo Marocco Messico Norvegia Ungheria
Polonia Portogallo Romania Russia Scozia Slovacchia Spagna Svezia Svizzera Turchia Cechia Croazia
Cipro Danimarca Egitto
Alemanha Espanha França Grécia Itália Japão Suíça Eslovênia Croácia
Česko Danmark Eesti Ísland Latvija Lietuva Magyarország Nederland België Norge Polska România
Slovensko Slovenija Srbija Hrvatska Suomi Sverige Türkiye Ελλάδα Κύπρος България Україна Россия
საქართველო ישראל 日本 中国 中國 台湾 台灣 대한민국 한국 ประเทศไทย
UK GB USA US UAE
"""
_SEVERAL_WORDS: Final = """
Bosnia and Herzegovina; Costa Rica; Czech Republic; Dominican Republic; El Salvador; Great Britain;
Hong Kong SAR; Ivory Coast; New Zealand; North Macedonia; Northern Ireland; Puerto Rico; San Marino;
Saudi Arabia; South Africa; South Korea; Sri Lanka; United Arab Emirates; United Kingdom;
United States; United States of America; Vereinigtes Königreich; Vereinigte Staaten; Royaume-Uni;
États-Unis; Pays-Bas; Afrique du Sud; Nouvelle-Zélande; Reino Unido; Estados Unidos; Países Bajos;
Nueva Zelanda; Regno Unito; Stati Uniti; Paesi Bassi; Nuova Zelanda; Gran Bretagna; Gran Bretaña;
New South Wales; South Australia; Western Australia; British Columbia; Nova Scotia
"""
_STATES: Final = """
Alabama Alaska Arizona Arkansas California Colorado Connecticut Delaware Florida Hawaii Idaho
Illinois Indiana Iowa Kansas Kentucky Louisiana Maine Maryland Massachusetts Michigan Minnesota
Mississippi Missouri Montana Nebraska Nevada Ohio Oklahoma Oregon Pennsylvania Tennessee Texas Utah
Vermont Virginia Wisconsin Wyoming Ontario Quebec Québec Alberta Manitoba Saskatchewan Queensland
Tasmania
"""


COUNTRY_NAMES: Final = (
    *_COUNTRIES.split(),
    *_STATES.split(),
    *(" ".join(name.split()) for name in _SEVERAL_WORDS.split(";")),
)
