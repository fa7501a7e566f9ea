"""Words for desserts, nuts and what goes before a meal, by food, in six languages.

The format is that of `lexicon`; how a food is called in an answer is said in `foods` and `dutch`,
which are read before.
"""

from typing import Final

DESSERTS: Final = """
foods fruit_dessert
  en fruit pie, apple pies, peach cobbler, plum tart, strawberries, fresh fruit
  en strawberries and cream, rhubarb crumble, pear tart
  en poached pear, apricot tart, blueberry pie, lemon cake, cobbler
  de Obst, zu Früchten, mit Früchten, Obsttorte, Apfeltarte, Apfel Crumble, Zitronentarte
  de Fruchtdessert, Erdbeerkuchen
  de Himbeertorte, Pflaumenkuchen, Zwetschgenkuchen, Kirschkuchen, Obstsalat, Fruchtsorbet, Sorbet
  de Rhabarberkuchen
  de Kaiserschmarrn, Strudel, Rote Grütze, Zitronenkuchen, Apfelstrudeln, Marillenknödel
  de Tarte Tatin, Panettone
  fr aux fruits, desserts aux fruits, tarte tatin, tarte au citron, salade de fruits
  fr tarte aux fraises, sorbet, crumble
  fr clafoutis, tarte aux abricots, poire belle hélène, crumble aux pommes
  fr tarte aux poires, tarte aux framboises, sorbets
  es postre de fruta, con fruta, con frutas, de postre fruta, macedonia di frutta, tarta de frutas
  es tarta de limón, sorbete, tarta de fresas
  es manzana asada, peras al vino, postre de fruta, tatin, pastel de manzana, strudel
  it alla frutta, con la frutta, dessert di frutta, torta di mele, crostata di frutta, macedonia
  it sorbetto, strudel, torta al limone
  it crostate, dolci alla frutta, torta di frutta, crostata di marmellata, strudel di mele
  it dessert alla frutta, panettone, colomba
  nl vers fruit, appelgebak, appelkruimel, vruchten, citroentaart, sorbet
  nl perentaart, crumble
  nl appelcrumble, pruimentaart, kersenvlaai, vlaai, abrikozentaart, tarte tatin
  nl aardbeientaart, gestoofde peren, stoofpeertjes
foods creamy_dessert
  en custard tart, creme caramel, panna cottas, zabaglione, rice pudding, cheesecakes, eclair
  en profiterole, banoffee
  en toffee pudding, bread pudding, flan, mille feuille, banoffee pie
  de Tiramisu, Panna Cotta, Crème brûlée, Pudding, Eiscreme, Vanillepudding, Sahnetorte
  de Cheesecake, Grießbrei
  de Mascarponecreme, Bayerisch Creme, Bayerische Creme, Milchreis, Eisbecher, Windbeutel, Mousse
  de Cremeschnitte, Vanillesoße, Vanillesauce, Zabaione
  fr crème caramel, tiramisu, panna cotta, île flottante, crème anglaise, cheesecake, riz au lait
  fr crème dessert, crèmes
  fr profiteroles, mille feuille, glaces, flan, desserts crémeux, glace vanille, éclair
  fr paris brest, millefeuille
  fr glace à la vanille, crème pâtissière, dessert lacté
  es crema catalana, natillas, tarta de queso, tiramisú, panna cotta, arroz con leche, helados
  es flanes, cheesecake, pudin
  es leche frita, helado de vainilla, postres cremosos, crema pastelera, profiteroles, milhojas
  es torrijas, budín
  es crème brûlée, leche merengada
  it panna cotta, creme caramel, crema catalana, zabaione, cheesecake, budino, semifreddo, gelati
  it cannoli, bignè, zuppa inglese
  it millefoglie, crema pasticcera, dolci cremosi, dolce al cucchiaio, dolci al cucchiaio
  it profiteroles, crème brûlée
  it gelato alla vaniglia, babà
  nl crème brûlée, tiramisu, panna cotta, cheesecake, roomijs, vla, bavarois, roomdessert, custard
  nl vanille-ijs
  nl puddinkje, rijstepap, soesjes, slagroomtaart, ijsje, tompouce, crème caramel, ijstaart
foods fruit_dessert, creamy_dessert
  en desserts, cakes, pastries, dessert course, afters, petit four, sponge cake, cupcake
  de Desserts, Torte, Torten, Süßspeise, Süßspeisen, Nachspeisen, zum Nachtisch, Gebäck
  de Mehlspeise, Süßem, Geburtstagstorte
  fr dessert, desserts, gâteaux, pâtisseries, gâteau d anniversaire, tarte, tartes, galette des rois
  es postres, pasteles, tartas, tarta de cumpleaños, bizcocho, repostería, bollería, roscón
  it torte, dessert, pasticceria, torta di compleanno, pasticcini, biscotti, cantucci
  nl desserts, dessert, nagerechten, toetjes, taarten, taartje, cake, koekjes, verjaardagstaart
  nl gebakje, zoetigheid
foods chocolate
  en chocolates, chocolate truffle, chocolate pudding, fudge, chocolate ice cream
  en chocolate lava cake, ganache
  en molten chocolate cake, bitter chocolate, chocolate cookie, chocolate fondue
  de Schoko, Schokoladen, Schokokuchen, Schokoladenmousse, Mousse au Chocolat
  de Zartbitterschokolade, Schokotorte, Brownies
  de Brownie, Schokoladentorte, Schokoladendessert, dunkle Schokolade, dunkler Schokolade
  de Pralinen, Schokodessert
  de Schokoladenfondue, Schwarzwälder Kirschtorte, Schokopudding, Schokoladeneis, Sachertorte
  de Nougat, Kakao, Bitterschokolade
  fr chocolats, fondant au chocolat, chocolat noir, moelleux au chocolat, tarte au chocolat
  fr brownies, truffes au chocolat
  fr dessert au chocolat, gâteaux au chocolat, mousse chocolat, forêt noire, brownie
  fr gâteau chocolat, au chocolat
  fr coulant au chocolat, ganache, bûche au chocolat
  es chocolates, chocolate negro, tarta de chocolate, mousse de chocolate, brownie, coulant
  es bombones, trufas de chocolate
  es pastel de chocolate, postre de chocolate, coulant de chocolate, brownies, helado de chocolate
  es bizcocho de chocolate
  it cioccolata, cioccolato fondente, fondente, torta cioccolato, mousse al cioccolato
  it cioccolatini, tortino al cioccolato
  it brownie, torte al cioccolato, al cioccolato, sacher, gianduia, dolce al cioccolato, brownies
  it salame al cioccolato
  nl chocola, chocoladedessert, chocolademousses, brownie, brownies, donkere chocolade
  nl chocoladefondue, bonbons
  nl chocoladecake, lava cake, chocoladetruffels, chocolade ijs, chocolade-ijs, chocoladetaartje
  nl chocoladefondant, bonbon
foods nuts
  en almonds, walnuts, hazelnuts, pistachios, cashews, roasted nut, salted almond, mixed nut
  en peanuts, chestnut
  en pecan, salted nut, pine nut, marzipan, frangipane, brazil nut
  de Nuss, Nüssen, Walnüsse, Walnüssen, Haselnüsse, Haselnüssen, Mandel, Pistazien, Cashews
  de Erdnüsse, Nusskuchen
  de geröstete Mandeln, gesalzene Mandeln, gebrannte Mandeln, Walnuss, Maronen, Salzmandeln
  de Nussmischung, gerösteten Mandeln
  de Erdnüssen, Cashewkerne, Studentenfutter, Marzipan, Kastanien, Pekannüsse, Nussecken
  fr amande, noisettes, pistaches, cacahuètes, noix de cajou, fruits secs, fruits à coque
  fr noix de pécan, châtaignes
  fr amandes grillées, pignons, tarte aux noix, noix de macadamia, frangipane, massepain
  es nueces, avellanas, almendra, pistachos, cacahuetes, anacardos, fruto seco, almendras saladas
  es piñones, castañas
  es almendras tostadas, turrón, mazapán, avellana, nueces de macadamia, nueces pecanas
  it con la frutta secca, mandorla, nocciola, pistacchi, frutta secca, anacardi, arachidi, pinoli
  it castagne
  it mandorle salate, mandorle tostate
  it noci pecan, torta di nocciole, noci di macadamia, pistacchio, marzapane, torrone
  nl noot, nootjes, walnoot, amandel, hazelnoot, pistache, pistachenoten, cashewnoten, pinda's
  nl kastanjes, gezouten noten
  nl nootjesmix, pecannoten, gebrande amandelen, gemengde noten, notentaart, gezouten amandelen
  nl marsepein, borrelnootjes
foods aperitif
  en aperitifs, aperos, canapes, appetizers, appetisers, starters, amuse bouche, nibbles
  en pre dinner drink, welcome drink
  en hors d oeuvres, happy hour, sundowner, as an aperitif, cocktail hour, popcorn, potato chip
  de zum Aperitif, Apéro, Aperitifs, Sektempfang, Vorspeisen, Amuse Gueule, Canapés, Knabbereien
  de Begrüßungsdrink
  de als Aperitif, vor dem Essen, Stehempfang, Sundowner, Knabberzeug, Gruß aus der Küche
  de Feierabendwein
  fr apéro, apéritifs, apéros, amuse bouches, amuse gueule, amuse gueules, petits fours
  fr à l apéritif, canapés, mise en bouche
  fr apéro dînatoire, apéritif dînatoire, entrée, entrées, en apéritif, vin d honneur
  fr cocktail dînatoire, gougères
  es aperitivos, el aperitivo, canapés, entrantes, entrante, antes de comer, cóctel de bienvenida
  es entremeses
  es de aperitivo, antes de cenar, copa de bienvenida, para aperitivo, patatas fritas, snacks
  es hora del vermut
  it aperitivi, per aperitivo, apericena, come aperitivo, prima di cena, stuzzichino
  it antipasto leggero, all aperitivo, salatini
  it brindisi di benvenuto, ora dell aperitivo, aperitivo in terrazza, patatine, happy hour, entrée
  nl aperitieven, als aperitief, bij de borrel, borreltje, amuses, amuse, voorgerechten, hapje
  nl voor het eten, borrelen
  nl welkomstdrankje, vrijmibo, hapjes vooraf, voorgerechtje, borrels, welkomstdrank
"""
