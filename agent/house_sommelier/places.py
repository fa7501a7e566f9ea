"""Words for grapes, countries and regions; the format is that of `agent.house_sommelier.lexicon`.

After `=`, each `Name, synonym, …` is an entry of its own, in any language, with the value `Name`.
"""

from typing import Final

GRAPES: Final = """
grapes
  = Agiorgitiko; Areni Noir, areni; Arinto; Bacchus; Baga; Brachetto; Carricante; Castelão
  = Colombard; Fetească Neagră, feteasca; Gaglioppo; Gros Manseng; Hondarrabi Zuri; Koshu
  = Listán Negro; Malagousia; Mauzac; Mondeuse; Négrette; Obaideh; País; Pedro Ximénez
  = Petit Manseng; Pošip; Sercial; Tinta Negra; Vranec, vranac; Xynisteri
  = Aglianico; Albariño, alvarinho; Aligoté; Arneis; Assyrtiko; Barbera
  = Blaufränkisch, lemberger, kékfrankos; Bonarda; Bobal; Cabernet Franc, cab franc
  = Cabernet Sauvignon, cabernet, cab sauv, cab; Carignan, cariñena, mazuelo; Carmenère, carmenere
  = Chardonnay, chard; Chasselas, fendant, gutedel; Chenin Blanc, chenin; Cinsault, cinsaut
  = Clairette; Corvina; Cortese; Dolcetto; Encruzado; Falanghina; Fiano; Frappato; Friulano
  = Furmint; Gamay; Garganega; Gewürztraminer, gewurz, gewuerztraminer, traminer; Glera; Godello
  = Graciano; Grenache, garnacha, cannonau; Grenache Blanc, garnacha blanca; Grechetto; Greco
  = Grillo; Grüner Veltliner, gruner, gruener veltliner, veltliner; Hárslevelű; Jacquère; Kadarka
  = Lagrein; Loureiro; Macabeo, viura; Malbec, cot; Malvasia; Marsanne; Mencía; Melon de Bourgogne
  = Merlot; Monastrell; Mourvèdre, mataro; Montepulciano; Moschofilero
  = Muscat, moscato, moscatel, muskateller; Müller-Thurgau, rivaner; Nebbiolo, spanna; Negroamaro
  = Nerello Mascalese, nerello; Nero d'Avola; Palomino; Petit Verdot; Petite Sirah, durif
  = Picpoul, piquepoul; Pinot Blanc, weissburgunder, pinot bianco
  = Pinot Gris, pinot grigio, grauburgunder; Pinot Meunier, meunier
  = Pinot Noir, spätburgunder, pinot nero, blauburgunder, pinot; Pinotage; Plavac Mali; Poulsard
  = Primitivo; Riesling; Rkatsiteli; Ribolla Gialla, ribolla; Roussanne; Sagrantino; Sangiovese
  = Saperavi; Sauvignon Blanc, sauvignon, sauv blanc, savvy b; Savagnin; Scheurebe; Sémillon
  = Silvaner, sylvaner; St. Laurent, sankt laurent; Syrah, shiraz; Tannat
  = Tempranillo, tinta de toro, tinto fino, cencibel; Teroldego; Torrontés
  = Touriga Nacional, touriga; Trebbiano, ugni blanc; Trincadeira; Trousseau; Verdejo; Verdelho
  = Verdicchio; Vermentino, rolle; Vernaccia; Vidal, vidal blanc; Viognier
  = Welschriesling, graševina; Xarel·lo, xarello; Xinomavro; Zinfandel, zin; Zweigelt
"""

COUNTRIES: Final = """
countries Turkey
  * from turkey, turkish, turkish wine, türkei, turquie, turquía
countries
  = Armenia, armenian; Montenegro, montenegrin
  = Argentina, argentinian, argentine, argentinean, argentinien, argentine, argentino
  = Australia, australian, aussie, australien, australie, australiano
  = Austria, austrian, österreich, österreichisch, österreichischer, autriche, autrichien, austriaco
  = Brazil, brazilian, brasilien, brésil, brasil, brasile; Bulgaria, bulgarian
  = Canada, canadian, kanada, canadien
  = Chile, chilean, chilenisch, chilenischer, chili wine, chilien, chileno, cile
  = China, chinese wine; Croatia, croatian, kroatien, croatie, croacia, croazia; Cyprus, cypriot
  = Czech Republic, czech, czechia
  = England, english, english wine, british, uk, inglaterra, inghilterra
  = France, french, frankreich, französisch, französischer, französischen, français, française
  = France, francia, francés, francesa, francese; Georgia, georgian, georgien, géorgie
  = Germany, german, deutschland, deutscher, deutschen, allemagne, allemand, alemania, alemán
  = Germany, germania, tedesco
  = Greece, greek, griechenland, griechisch, griechischer, grèce, grec, grecia, griego
  = Hungary, hungarian, ungarn, hongrie, hungría, ungheria; India, indian wine; Israel, israeli
  = Italy, italian, italien, italienisch, italienischer, italienischen, italie, italienne, italia
  = Italy, italiano, italiana; Japan, japanese wine
  = Lebanon, lebanese, libanon, liban, líbano, libano; Luxembourg, luxembourgish
  = Mexico, mexican wine; Moldova, moldovan; Morocco, moroccan
  = New Zealand, nz, kiwi, neuseeland, nouvelle zélande, nueva zelanda, nuova zelanda
  = North Macedonia, macedonia, macedonian
  = Portugal, portuguese, portugiesisch, portugiesischer, portugais, portugués
  = Portugal, portogallo, portoghese
  = Romania, romanian, rumänien; Serbia, serbian; Slovakia, slovak
  = Slovenia, slovenian, slowenien, slovénie
  = South Africa, south african, südafrika, südafrikanisch, südafrikanischer, afrique du sud
  = South Africa, sud africain, sudáfrica, sudafrica, sudafricano
  = Spain, spanish, spanien, spanisch, spanischer, spanischen, espagne, espagnol, españa, español
  = Spain, spagna, spagnolo; Switzerland, swiss, schweiz, schweizer, suisse, suiza, svizzera
  = United States, usa, america, american, u s, u s a, vereinigte staaten, états unis
  = United States, stati uniti, estados unidos; Uruguay, uruguayan
"""

REGIONS: Final = """
regions
  = Adelaide Hills; Arbois; Calabria; Catalonia, catalan; Columbia Valley; Commandaria
  = Constantia; Corbières; Dalmatia; Dundee Hills; Eger; Elgin; Finger Lakes; Fitou; Jurançon
  = Kent; Lazio; Liguria; Lombardy, lombardia; Mercurey; Minervois; Moulin-à-Vent; New York
  = Niagara; Okanagan; Patagonia; Peloponnese; Retsina; Robertson; Salta; Samos; Setúbal
  = South West, southwest france; Styria, steiermark; Sussex; Villány; Walker Bay
  = Abruzzo; Alentejo; Alsace, alsatian, elsass, alsacia, alsazia
  = Alto Adige, südtirol, south tyrol; Amarone; Asti; Baden; Bairrada; Bandol; Barbaresco; Barolo
  = Barossa, barossa valley; Beaujolais; Beaune; Bekaa, bekaa valley; Bierzo
  = Bolgheri, super tuscan; Bordeaux, claret, bordelais, burdeos; Brouilly
  = Brunello, brunello di montalcino; Burgenland
  = Burgundy, bourgogne, burgund, borgoña, borgogna, burgundian; Cahors
  = California, californian, kalifornien, californie; Campania; Casablanca; Central Otago; Chablis
  = Châteauneuf-du-Pape, chateauneuf; Chianti, chianti classico; Chinon; Clare Valley; Colchagua
  = Collio; Condrieu; Coonawarra; Cornas; Corsica, corse, corsican; Côte-Rôtie; Côtes du Rhône
  = Crozes-Hermitage; Dão; Douro; Eden Valley; Emilia-Romagna; Etna; Fleurie; Franken, franconia
  = Friuli; Gavi; Gevrey-Chambertin; Gigondas; Hawke's Bay, hawkes bay; Hermitage; Hunter Valley
  = Istria; Jumilla; Jura; Kakheti; Kamptal; Languedoc; Loire, loire valley; Lugana; Madiran
  = Maipo; Margaret River; Margaux; Marche; Marlborough; Maule; McLaren Vale; Mendoza; Meursault
  = Montalcino; Montefalco; Morgon; Mosel, moselle; Muscadet; Nahe; Naoussa; Napa, napa valley
  = Navarra; Nemea; Oregon; Paso Robles; Pauillac; Penedès; Pessac-Léognan; Pfalz, palatinate
  = Piedmont, piemonte, piedmontese, piemont; Pomerol; Pommard; Pouilly-Fuissé; Pouilly-Fumé
  = Priorat; Provence, provencal; Puglia, apulia; Puligny-Montrachet; Rheingau; Rheinhessen
  = Rhône, rhone valley; Rías Baixas; Ribera del Duero; Rioja; Roussillon; Rueda
  = Saint-Émilion, st emilion; Saint-Estèphe, st estephe; Saint-Joseph, st joseph
  = Saint-Julien, st julien; Sancerre; Santorini; Sardinia, sardinian, sardegna; Saumur; Sauternes
  = Savoie, savoy; Sicily, sicilian, sicilia, sizilien, sicile; Soave; Somontano; Sonoma
  = Stellenbosch; Swartland; Tasmania, tasmanian; Tavel; Toro; Tokaj, tokaji; Trentino
  = Tuscany, tuscan, toscana, toskana, toscane; Umbria; Uco Valley; Vacqueyras; Valpolicella
  = Veneto; Vinho Verde; Volnay; Vosne-Romanée; Vouvray; Wachau; Wagram
  = Washington, washington state; Willamette, willamette valley; Yarra Valley, yarra
"""
