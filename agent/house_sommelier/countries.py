"""Names of further countries in the languages but English; the format is that of `lexicon`."""

from typing import Final

FURTHER_COUNTRIES: Final = """
countries Armenia
  de Armenien
  fr Arménie
  es Armenia
  it Armenia
  nl Armenië
countries Brazil
  de Brasilien
  fr Brésil
  es Brasil
  it Brasile
  nl Brazilië
countries Bulgaria
  de Bulgarien
  fr Bulgarie
  es Bulgaria
  it Bulgaria
  nl Bulgarije
countries Canada
  de Kanada
  fr Canada
  es Canadá
  it Canada
  nl Canada
countries China
  de China
  fr Chine
  es China
  it Cina
  nl China
countries Cyprus
  de Zypern
  fr Chypre
  es Chipre
  it Cipro
  nl Cyprus
countries Israel
  de Israel
  fr Israël
  es Israel
  it Israele
  nl Israël
countries Japan
  de Japan
  fr Japon
  es Japón
  it Giappone
  nl Japan
countries Mexico
  de Mexiko
  fr Mexique
  es México
  it Messico
  nl Mexico
countries Moldova
  de Moldau
  fr Moldavie
  es Moldavia
  it Moldavia
  nl Moldavië
countries Montenegro
  de Montenegro
  fr Monténégro
  es Montenegro
  it Montenegro
  nl Montenegro
countries Morocco
  de Marokko
  fr Maroc
  es Marruecos
  it Marocco
  nl Marokko
countries North Macedonia
  de Nordmazedonien
  fr Macédoine du Nord
  es Macedonia del Norte
  it Macedonia del Nord
  nl Noord-Macedonië
countries Romania
  de Rumänien
  fr Roumanie
  es Rumanía
  it Romania
  nl Roemenië
countries Turkey
  de Türkei
  fr Turquie
  es Turquía
  it Turchia
  nl Turkije
countries Uruguay
  de Uruguay
  fr Uruguay
  es Uruguay
  it Uruguay
  nl Uruguay
"""
