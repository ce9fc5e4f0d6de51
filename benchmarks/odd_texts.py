"""Out-of-distribution texts for a classifier of English reviews, written for this benchmark."""

FOREIGN = (
    # German
    "Der Film hat mir sehr gut gefallen, die Schauspieler waren großartig.",
    "Leider war die Handlung langweilig und viel zu lang.",
    "Wir fahren morgen mit dem Zug nach Hamburg.",
    "Das Essen im Restaurant war kalt und teuer.",
    # French
    "Ce film est une merveille, je le recommande à tout le monde.",
    "L'histoire est ennuyeuse et les acteurs jouent mal.",
    "Nous avons acheté du pain et du fromage au marché.",
    "Il pleut depuis trois jours dans toute la région.",
    # Spanish
    "La película me pareció aburrida y demasiado larga.",
    "Una historia preciosa, con actores que emocionan.",
    "Mañana iremos a la playa con los niños.",
    "El tren sale a las ocho de la estación central.",
    # Italian
    "Un film bellissimo, pieno di poesia e di umorismo.",
    "La trama non sta in piedi e i dialoghi sono ridicoli.",
    "Ho dimenticato le chiavi sul tavolo della cucina.",
    "Domani mattina apriamo il negozio alle nove.",
    # Portuguese
    "O filme é lindo e os atores são excelentes.",
    "Achei a história fraca e sem nenhuma graça.",
    "Vou visitar os meus avós no próximo fim de semana.",
    "A reunião foi adiada para a segunda-feira.",
    # Dutch
    "De film was saai en duurde veel te lang.",
    "Wat een prachtig verhaal, ik heb ervan genoten.",
    "We gaan vanavond met vrienden uit eten.",
    "De winkel is op zondag gesloten.",
    # Polish
    "Film był nudny, a aktorzy grali bardzo słabo.",
    "Piękna historia, która wzrusza do łez.",
    "Jutro rano jadę pociągiem do Krakowa.",
    "Proszę kupić chleb, mleko i jajka.",
    # Swedish
    "Filmen var underbar och skådespelarna lysande.",
    "Handlingen var tråkig och förutsägbar.",
    "Vi cyklade längs sjön hela eftermiddagen.",
    "Mötet börjar klockan tio på torsdag.",
    # Finnish
    "Elokuva oli tylsä ja aivan liian pitkä.",
    "Näyttelijät olivat loistavia ja tarina kaunis.",
    "Lähdemme huomenna mökille järven rannalle.",
    "Kauppa on auki yhdeksään asti.",
    # Turkish
    "Film çok güzeldi, oyuncular harikaydı.",
    "Hikâye sıkıcıydı ve hiç komik değildi.",
    "Yarın sabah erkenden yola çıkacağız.",
    "Pazardan biraz meyve ve sebze aldım.",
    # Russian
    "Фильм оказался скучным и слишком длинным.",
    "Прекрасная история и замечательные актёры.",
    "Завтра утром мы поедем на дачу.",
    "Магазин закрыт до понедельника.",
    # Greek
    "Η ταινία ήταν υπέροχη και οι ηθοποιοί εξαιρετικοί.",
    "Η ιστορία ήταν βαρετή και χωρίς νόημα.",
    "Αύριο θα πάμε στη θάλασσα με φίλους.",
    "Το τρένο έφυγε πριν από δέκα λεπτά.",
    # Arabic
    "كان الفيلم رائعا والممثلون ممتازين.",
    "القصة مملة وطويلة جدا.",
    "سنسافر غدا إلى البحر مع الأصدقاء.",
    "السوق مغلق يوم الجمعة.",
    # Chinese
    "这部电影非常好看，演员也很出色。",
    "故事很无聊，而且太长了。",
    "我们明天坐火车去北京。",
    "请帮我买一些水果。",
    # Japanese
    "この映画はとても素晴らしかったです。",
    "話が退屈で、長すぎました。",
    "明日は友達と海に行きます。",
    "駅の近くで昼ご飯を食べました。",
    # Hindi
    "फिल्म बहुत अच्छी थी और कलाकार शानदार थे।",
    "कहानी उबाऊ और बहुत लंबी थी।",
    "हम कल सुबह गाँव जाएँगे।",
    "बाज़ार रविवार को बंद रहता है।",
)

EMOJIS = (
    "😀",
    "👍👍👍",
    "🎬🍿😍",
    "😡 😡",
    "❤️",
    "🤷‍♀️",
    "👎",
    "🙂🙃🙂",
)

NO_WORDS = (
    "",
    " ",
    "\n",
    "...",
    "!?",
    "---",
    "***",
    "“”",
)

GIBBERISH = (
    "asdf jkl qwer",
    "xkcd zzzt brrp flurb",
    "lkjhg poiuy mnbvc",
    "wubba vrrk snarfle oog",
    "qqq www eee",
    "gnrph tlaxo vimmet drosk plib",
    "zxcv bnma",
    "hjkl hjkl hjkl",
    "frobnitz quuxly garply",
    "aaaaaaa bbbbbb",
    "tgif vbnm ghty",
    "plorv snickt wazzo",
)

SHORT = (
    "Meh.",
    "Ok",
    "Hmm",
    "lol",
    "42",
    "x",
    "Whatever.",
    "No idea",
    "12:30",
    "Hello",
)
