"""Words for meat, by food, in six languages.

The format is that of `lexicon`; how a food is called in an answer is said in `foods` and `dutch`,
which are read before.
"""

from typing import Final

MEATS: Final = """
foods lamb
  en lamb kofta, lamb roast, lamb cutlet, lamb shoulder, lamb steak
  en lamb kebab, lamb leg, lamb rack, souvlaki, moussaka, lamb loin, lamb ragu
  de Lämmer, Lammbraten, Lammkarree, Lammkoteletts, Lammkeulen, Lammhaxe, Lammfilet
  de Lammcurry, Lammragout, Lammrack, Lammchops, Lammeintopf, Hammelfleisch, Lammstelze
  fr agneaux, gigots, souris d agneau, épaule d agneau, côtelettes d agneau, navarin, méchoui
  fr selle d agneau, curry d agneau, carré d agneaux, côtes d agneau, navarin d agneau
  es corderos, pierna de cordero, paletilla, paletilla de cordero, chuletas de cordero, caldereta
  es cordero asado, lechal, cordero lechal, carré de cordero, ternasco
  it agnelli, costolette d agnello, cosciotto d agnello, carré d agnello, cosciotto, capretto
  it scottadito, abbacchi, spalla d agnello, montone, costolette di agnello
  nl lamskoteletten, lamskoteletjes, lamsschenkel, lamsstoof, lamsragout, lamscarré, lamsfilet
  nl lamsstoofpot, lamszadel, lamscurry
foods beef
  en steaks, beef rib, rump steak, rump, flank steak, beef fillet, chateaubriand
  en porterhouse, tomahawk, flat iron, beef roast, topside, tenderloin, wagyu, sirloin steak
  de Steak, Steaks, Rumpsteak, Entrecote, Filetsteak, Rinderbrust, Rinderroulade, Rinderrouladen
  de Roulade, Rouladen, Ochsenbacke, Ochsenbäckchen, Rinderbäckchen, Rindsfilet, Rindsbraten
  de Zwiebelrostbraten, Rostbraten, Rindertatar, Tatar, Rindfleischgerichte, rotem Fleisch
  de rotes Fleisch, Chateaubriand, Hochrippe, Rindercarpaccio
  fr steak, pavé de bœuf, rôti de bœuf, rosbif, tournedos, steak tartare, tartare de bœuf, rumsteck
  fr bavette, viandes rouges, filet de bœuf, faux filets, entrecôtes, steaks, joue de bœuf
  es bistec, filete, filete de ternera, entrecot de ternera, chuleta de vaca, chuletón de buey
  es rosbif, steak tartar, lomo alto, churrasco, carpaccio de ternera, carnes rojas, bife, vacuno
  es carrilleras, carrillada
  it bistecche, manzi, filetto, filetto di manzo, roast beef, costata, controfiletto, tartare
  it carpaccio di manzo, fiorentine, bistecca alla fiorentina, carni rosse, arrosto di manzo
  it tagliata di manzo, entrecote, chianina
  nl rund, runder, steak, biefstukken, rumpsteak, tournedos, rosbief, runderlende, carpaccio
  nl steak tartaar, côte de boeuf, runderhaas, riblap, rib eye, entrecotes, diamanthaas, longhaas
foods pork
  en pork roast, pork tenderloin, pork shoulder, hog roast, crackling, pork cutlet
  en pork schnitzel, pork fillet, pork steak, gammon steak
  de Schweinefilet, Schweinemedaillons, Schweinekotelett, Kotelett, Koteletts, Schweinshaxe
  de Spanferkel, Krustenbraten, Schweinelende, Schweinebauch, Kasseler, Schweinshaxn, Schweinesteak
  fr filet mignon de porc, côtes de porc, côte de porc, échine, cochon de lait, travers de porc
  fr rouelle, poitrine de porc, jambonneau, petit salé
  es lomo, lomo de cerdo, solomillo de cerdo, chuletas de cerdo, secreto ibérico
  es presa ibérica, lechón, carne de cerdo, cerdo ibérico, pluma ibérica, costillas de cerdo
  it maialino, porchetta, arista di maiale, lombo di maiale, costine di maiale, filetto di maiale
  it braciola, braciole, stinco, stinco di maiale, cotechino, zampone, lonza
  nl varkensfilet, varkenskarbonade, karbonades, varkensrollade, speklapjes, buikspek
  nl varkensschnitzel, varkenswangen, speenvarken, varkenslende
foods veal
  en veal chop, veal escalope, veal scaloppine, scaloppine, veal stew, veal roast, veal cutlet
  en escalope, calf liver, calf s liver, blanquette, milanese
  de Schnitzel, Wiener Schnitzel, Kalbsschnitzel, Kalbshaxe, Kalbsfilet, Kalbskotelett, Kalbsleber
  de Kalbsrücken, Kalbsgulasch, Geschnetzeltes, Zürcher Geschnetzeltes, Saltimbocca, Cordon bleu
  de Kalbsmedaillons, Kalbsragout
  fr escalope, escalope de veau, rôti de veau, côte de veau, paupiettes, osso buco, ris de veau
  fr côtes de veau, foie de veau, sauté de veau, jarret de veau
  es ternera blanca, escalope de ternera, escalope, ternera lechal, osobuco, chuleta de ternera
  es milanesa, milanesas, cachopo, ossobuco, mollejas, redondo de ternera
  it scaloppine, scaloppina, cotolette, ossobuco, ossibuchi, saltimbocca, vitello tonnato
  it arrosto di vitello, fegato alla veneziana, nodino, fesa di vitello, carne di vitello, milanese
  nl kalfsoesters, kalfsentrecote, kalfslever, kalfswang, kalfsgebraad, kalfsrollade
  nl wiener schnitzel
  nl schnitzels, ossobuco, kalfshaas, kalfsfricandeau, zwezerik
foods poultry
  en chickens, turkeys, chicken thighs, coq, poussin, chicken nuggets, roast turkey, cornish hen
  en chicken kiev, chicken schnitzel, chicken leg, spatchcock, chicken fricassee
  de Hühner, Hühnerbrust, Hähnchenbrust, Brathähnchen, Brathuhn, Hendl, Brathendl, Poularde
  de Perlhuhn, Putenbrust, Putenschnitzel, Puten, Hähnchenkeule, Grillhähnchen, Hühnerfrikassee
  de Maispoularde, Stubenküken, Masthuhn, Hähnchenschnitzel, Poulet, Hühnersuppe
  fr poulets, volailles, poularde, coq, coquelet, blanc de poulet, suprême de volaille, dindes
  fr poulet basquaise, poule au pot, dinde de noël, cuisse de poulet, viande blanche
  es pollos, aves, pechuga, pechuga de pollo, pollo asado, pularda, capón, pavos, pollo al horno
  es gallina, muslo de pollo, pollo frito, pollo al ajillo, carne blanca, pavo de navidad
  it polli, pollo arrosto, petto di pollo, pollo alla cacciatora, galletto, cappone, tacchini
  it faraone, gallina, pollo fritto, cosce di pollo, carne bianca, carni bianche
  nl kippen, kippenborst, kippendij, kipschnitzel, braadkip, kipdrumsticks, haantje, kipsaté
  nl kalkoenfilet, piepkuiken, wit vlees, gegrilde kip, kippensoep, kip uit de oven
foods duck
  en ducks, roast duck, crispy duck, duck leg, roast goose, duck pate, duck liver, christmas goose
  de Enten, Entenkeule, Entenkeulen, Gänse, Gänsekeule, Gänsekeulen, Martinsgans, Weihnachtsgans
  de Pekingente, Entenbraten, Barbarie Ente, Gänsebrust, Gänseleber, Gansl, Martinigansl, Entenleber
  fr canards, confit de canard, magrets, cuisse de canard, canard à l orange, oies, foie gras
  fr canard laqué, aiguillettes de canard, parmentier de canard, oie rôtie
  es patos, magret de pato, confit de pato, pato a la naranja, pato pekín, ganso, oca, foie
  es pato laqueado, muslo de pato, jamón de pato, foie gras, magret
  it anatre, petto d anatra, anatra all arancia, oche, foie gras, confit d anatra, fegato d oca
  it anatra arrosto, anatra alla pechinese, ragù d anatra
  nl eenden, eendenborsten, gebraden eend, pekingeend, eendenconfit, konfijt van eend, ganzen
  nl ganzenlever, gebraden gans, tamme eend, eendenlever, confit de canard
foods game
  en the game bird, the game pie, the game dish, the game meat
  en gamey meat, game bird, wild game, venison stew, roe deer, wild duck, hare stew, moose
  en game pie, woodcock, game meat, roast pheasant, rabbit stew, game dish, reindeer, bison
  de zu Wild, zum Wild, mit Wild, für Wild, Wild und, Wildbraten, Wildragout, Wildgulasch
  de Wildfleisch
  de Wildgericht, Wildterrine, Hirsche, Hirschragout, Hirschgulasch, Hirschbraten, Hirschfilet
  de Hirschrücken, Hirschkeule, Rehragout, Rehkeule, Rehbraten, Rehmedaillons, Wildschweinbraten
  de Wildschweinragout, Wildschweingulasch, Hasenrücken, Hasenpfeffer, Fasan, Rebhuhn, Wachtel
  de Wachteln, Wildente, Hasenbraten, Kaninchenbraten, Wildhase, Fasane, Gams, Wildspezialitäten
  de oder Wild, und Wild, gegrilltem Wild, gebratenem Wild, Rehschnitzel, Rehfilet, Elch, Damwild
  fr chevreuils, sangliers, civet, civet de lièvre, lièvre, biche, cailles, caille, pigeon
  fr perdreau, bécasse, gibiers, faisans, cuissot de chevreuil, rôti de sanglier, marcassin
  fr lapin à la moutarde, daim, viande de gibier
  es ciervos, jabalíes, conejos, perdiz, perdices, liebre, faisán, codorniz, codornices, corzo
  es carne de caza, caza mayor, paloma, guiso de jabalí, solomillo de ciervo, pichón
  it cinghiali, cervi, lepri, capriolo, fagiano, conigli, quaglia, quaglie, pernice, daino
  it cacciagione, piccione, ragù di cinghiale, camoscio, coniglio alla ligure, beccaccia
  nl met wild, voor wild, wild of, wild en, of wild, en wild, wildstoofpot, wildschotel, wildvlees
  nl hertenragout, hertenstoofpot, hertenfilet, reebout, zwijn, wild zwijn, hazenpeper, patrijs
  nl hazenrug, kwartel, fazanten, wilde eend, duif, konijnenbout, hertenvlees, bij het wild
foods charcuterie
  en sausages, hams, pates, cured ham, iberico ham, liverwurst, smoked meat, salumi, boudin
  en pastrami
  en rillettes, saucisson, black pudding, iberico, speck, coppa, charcuterie board, cold meats
  de Würste, Würsten, Bratwürste, Bratwürsten, Würstchen, Schinkenplatte, Salami, Serrano
  de Serranoschinken, Parmaschinken, Leberwurst, Brotzeit, Vesper, Vesperplatte, Brettljause
  de Pastete
  de Blutwurst, Rohschinken, Wurstwaren, Speckbrett, Terrine, Wurstsalat, Mettwurst, Leberkäse
  fr charcuteries, jambons, jambon cru, jambon de parme, saucisses, saucissons, boudin, boudin noir
  fr terrine, du pâté, un pâté, le pâté, pâté en croûte, pâté de campagne, planche de charcuterie
  fr chorizo, andouillette, assiette de charcuterie, coppa, bresaola
  es embutidos, jamón, jamón serrano, chorizo, chorizos, morcilla, lomo embutido, fuet, paté, cecina
  es salchichas, salchicha, butifarra, sobrasada, tabla de embutidos, ibéricos, jamón de bellota
  es fiambre, mortadela, longaniza
  it salame, salami, prosciutto, prosciutti, mortadella, speck, bresaola, salsicce, coppa, tagliere
  it pancetta, nduja, culatello, tagliere di salumi, affettato, prosciutto di parma, wurstel
  it finocchiona
  nl worst, worsten, gedroogde ham, serranoham, parmaham, leverworst, chorizo, grillworst
  nl braadworst
  nl charcuterie, vleesplank, bloedworst, ardenner ham, coppa, fijne vleeswaren, rillettes
foods barbecue
  en barbecues, barbecued, bbq ribs, grills, grilled meats, grilled sausage, skewer, smoked brisket
  en chargrilled, from the grill, off the grill, on the grill, at the barbecue, bbq chicken
  en yakitori, grilled steak, grilled skewer, barbecue sauce, mixed grills
  de Barbecue, BBQ, vom Grill, zum Grillen, beim Grillen, Grillparty, Grillteller, Grillfest
  de Grillplatte, Grillspieße, Spareribs, Rippchen, gegrilltem Fleisch, gegrilltes Fleisch
  de Gegrilltem
  de gegrillt, gegrillte, gegrilltem, gegrilltes, grillt, grille, Grillgut, Grillsteak, Grillwurst
  de Grillsaison, Döner, Kebab, Cevapcici, Schaschlik, Grill, Spieße, Grillwürste
  fr barbecue, au barbecue, viande grillée, viandes grillées, grill, au grill, brochettes, brochette
  fr ribs, merguez, plancha, à la plancha, kebab, grillée, grillées, soirée barbecue
  es barbacoas, a la parrilla, a la brasa, a la barbacoa, carne a la brasa, brasa, parrilladas
  es carne a la parrilla, costillas, asado, asados, pinchos morunos, brochetas, carne asada
  es costillas a la barbacoa, kebab, a la plancha
  it barbecue, alla griglia, alla brace, carne alla griglia, grigliate, grigliata mista, spiedini
  it costine, carne alla brace, brace, salsicce alla griglia, carne grigliata, sulla griglia
  it grigliato
  it kebab, arrosticino, bbq
  nl barbecues, barbecueën, op de barbecue, van de barbecue, bij de bbq, spareribs, gegrild
  nl gegrilde
  nl geroosterd vlees, saté, spiesen, grill, grillplaat, op de grill, mixed grill, kebab, shoarma
  nl grillvlees, sate, vleesspiesen, sparerib
foods stew
  en stews, braised meat, slow cooked, casseroles, beef casserole, ragouts, irish stew
  en braised, slow cooked beef, oxtail, daube, goulash soup, bourguignon, feijoada
  de Eintöpfe, Eintopfgericht, Schmorgericht, Schmorgerichte, Schmorgerichten, Geschmortes
  de Geschmortem, geschmort, Rindergulasch, Gulaschsuppe, Ochsenschwanz, geschmorte, geschmortem
  de Coq au vin, Bœuf bourguignon, Chili con carne, Schweinegulasch, Ragouts, Tajine, Cassoulet
  fr ragoûts, plat mijoté, plats mijotés, mijoté, pot au feu, cassoulet, tajine, daubes
  fr coq au vin, carbonade, estouffade, goulash, potée, couscous, choucroute, garbure
  fr chili con carne
  es estofados, guisos, guisado, cocidos, fabada, rabo de toro, potaje, puchero, carne guisada
  es ternera guisada, olla, lentejas, cazuela, callos, goulash, estofado de ternera, ragú
  it stufati, brasati, brasato al barolo, spezzatini, stracotto, bollito, gulasch, in umido
  it coda alla vaccinara, peposo, cassoeula, ribollita, bollito misto, ragù di carne
  nl stoofpotje, stoofpotten, stoofvleesje, stoofgerecht, ragout, rundergoulash, suddervlees
  nl sudderlap, coq au vin, boeuf bourguignon, cassoulet, runderstoof, jachtschotel, stoofgerechten
  nl gestoofd, gestoofde, tajine, chili con carne, waterzooi
foods burgers
  en beef burger, beefburger, burger and fries, smash burger, bacon burger, veggie burger, slider
  de Hamburger, Hamburgern, Cheeseburger, Burgern, Cheeseburgern, Rindfleischburger, Frikadellen
  de Frikadelle, Buletten, Bulette, Fleischpflanzerl, Hacksteak, Burgerabend, Beefburger
  de Fleischküchle, Hackbällchen, Fleischlaberl
  fr burger, hamburger, cheeseburger, steak haché, burger maison, hamburgers frites, cheeseburgers
  fr burger frites, boulettes de viande
  es burger, hamburguesa de ternera, hamburguesa con queso, cheeseburger, hamburguesa casera
  es burguer
  es hamburguesitas, albóndigas, burguers
  it hamburger di manzo, cheeseburger, panino con hamburger, burger, polpette, polpetta, burgers
  it svizzera di manzo, polpettone
  nl burger, cheeseburger, rundvleesburger, runderburger, burgers, hamburgertje, gehaktballen
  nl gehaktbal
  nl cheeseburgers, gehakt, smashburger, rundburger
"""
