"""Metrics of texts in every script: a text is like itself, another one is not, and English is what the libraries make of it."""

import itertools
from unicodedata import normalize

import pytest

from analysis.metrics.texts import processes
from analysis.metrics.texts.built_in import BUILT_IN, is_english, is_unspaced, scorers
from analysis.metrics.texts.processes import ChunkScorer, TextsOfPrompt
from studies.stimuli.words import words

# A text, one with a word or two changed, and one that shares a digit alone.
SCRIPTS = {
    "Arabic": ("القط 5 ينام على النافذة طوال اليوم", "القط 5 ينام على الأرض طوال اليوم", "اشترى أخي 5 كتب جديدة"),
    "Armenian": ("5 կատու քնում է պատուհանի մոտ ամբողջ օրը", "5 կատու քնում է դռան մոտ ամբողջ օրը", "Եղբայրս գնեց 5 նոր գիրք"),
    "Bengali": ("বিড়াল 5 জানালায় সারাদিন ঘুমায় আর খায়", "বিড়াল 5 জানালায় সারারাত ঘুমায় আর খায়", "আমার ভাই 5 নতুন বই কিনেছে"),
    "Burmese": ("ကြောင် 5 ကောင် အိပ်နေသည်", "ကြောင် 5 ကောင် စားနေသည်", "စာအုပ် 5 ဝယ်"),
    "Chinese": ("5只猫整天睡在窗台上。", "5只猫整天睡在地板上。", "我哥哥买了5本新书。"),
    "Devanagari": ("बिल्ली 5 खिड़की पर दिन भर सोती है", "बिल्ली 5 खिड़की पर रात भर सोती है", "मेरे भाई ने 5 किताबें खरीदीं"),
    "Georgian": ("5 კატა მთელი დღე ფანჯარასთან წევს", "5 კატა მთელი დღე კართან წევს", "ძმამ იყიდა 5 ახალი წიგნი"),
    "German": ("5 Kätzchen schlafen täglich müde am Fenster", "5 Kätzchen schlafen täglich müde am Ofen", "Übrigens kaufte Jörg 5 Bücher"),
    "Greek": ("5 γάτες κοιμούνται όλη μέρα στο παράθυρο", "5 γάτες κοιμούνται όλη μέρα στο πάτωμα", "ο αδερφός αγόρασε 5 βιβλία"),
    "Hangul": ("고양이 5 마리가 창가에서 하루 종일 잔다", "고양이 5 마리가 바닥에서 하루 종일 잔다", "형이 새 책을 5 권 샀다"),
    "Hebrew": ("5 חתולים ישנים כל היום ליד החלון", "5 חתולים ישנים כל היום ליד הדלת", "אחי קנה 5 ספרים חדשים"),
    "Japanese": ("猫が5匹、窓辺で一日中眠っている。", "猫が5匹、床の上で一日中眠っている。", "あには5さつ、ほんをかった。"),
    "Khmer": ("ឆ្មា 5 ដេកនៅបង្អួច", "ឆ្មា 5 ដេកនៅទ្វារ", "គាត់ទិញ 5 សៀវភៅ"),
    "Lao": ("ແມວ 5 ໂຕນອນຢູ່ປ່ອງຢ້ຽມ", "ແມວ 5 ໂຕນອນຢູ່ພື້ນ", "ຊື້ 5 ປຶ້ມ"),
    "Latin": ("5 cats sleep by the window all day", "5 cats sleep by the door all day", "My brother bought 5 new books"),
    "Russian": ("5 кошек спят на окне весь день", "5 кошек спят на полу весь день", "мой брат купил 5 новых книг"),
    "Tamil": ("பூனை 5 நாள் முழுவதும் ஜன்னலில் தூங்குகிறது", "பூனை 5 நாள் முழுவதும் தரையில் தூங்குகிறது", "என் அண்ணன் 5 புத்தகங்கள் வாங்கினான்"),
    "Thai": ("แมว 5 ตัวนอนอยู่บนหน้าต่างทั้งวัน", "แมว 5 ตัวนอนอยู่บนพื้นทั้งวัน", "พี่ซื้อ 5 เล่ม"),
    "Vietnamese": ("5 con mèo ngủ bên cửa sổ cả ngày", "5 con mèo ngủ bên cánh cửa cả ngày", "Anh tôi mua 5 quyển sách"),
    "mixed": ("GPT-4 сказал 猫が5匹 and then slept", "GPT-4 сказал 猫が5匹 and then left", "5"),
}  # fmt: skip
LANGUAGES = {"Chinese": "zh", "Japanese": "ja", "Thai": "th", "Russian": "ru", "German": "de", "Latin": "en"}
# Of one script with spaces, BLEU's four-grams of a short text are few; what must hold is the order.
WORDS_LEAST = 0.55


def scores(reference: str, text: str, language: str = "", names=tuple(BUILT_IN)) -> dict[str, float]:
    return {name: found[0] for name, found in ChunkScorer(list(names)).score([TextsOfPrompt([reference], [text], language)]).items()}  # fmt: skip


@pytest.mark.parametrize(
    ("script", "is_declared"), [(script, declared) for script in SCRIPTS for declared in (False, True) if not declared or script in LANGUAGES]
)  # fmt: skip
def test_a_text_is_like_itself_and_a_changed_one_is_between_it_and_another(script, is_declared):
    language = LANGUAGES[script] if is_declared else ""
    same, near, far = (scores(SCRIPTS[script][0], text, language) for text in SCRIPTS[script])
    for name, metric in BUILT_IN.items():
        best = 0 if name == "ter" else 100 if name in ("bleu", "chrf") else 1
        assert same[name] == pytest.approx(best), name
        if name != "exact_match":
            ordered = [far[name], near[name], same[name]]
            assert ordered == sorted(set(ordered), reverse=metric.is_lower_better), (name, ordered)
    assert far["rouge_1"] < WORDS_LEAST and near["rouge_1"] >= WORDS_LEAST and near["token_f1"] >= WORDS_LEAST


@pytest.mark.parametrize("script", SCRIPTS)
def test_decomposed_marks_change_no_score_of_words(script):
    reference, near, _ = SCRIPTS[script]
    names = ("rouge_1", "rouge_2", "rouge_l", "exact_match", "token_f1")
    assert scores(normalize("NFD", reference), near, names=names) == scores(
        reference, normalize("NFD", near), names=names
    )
    assert words(normalize("NFD", reference)) == words(reference)


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_empty_text_scores_nothing(script):
    for reference, text in ((SCRIPTS[script][0], ""), (SCRIPTS[script][0], " \n"), ("", SCRIPTS[script][0])):
        found = scores(reference, text, names=("bleu", "rouge_1", "rouge_2", "rouge_l", "exact_match", "token_f1"))
        assert set(found.values()) == {0}, (reference, text, found)


ENGLISH = (
    "The cat’s 5 “kittens” slept — all day… by the window.",
    "Two little kittens slept in the café by the great window of the old house, and the dog was running round it all day long again.",
    "5 kittens sleep; I don't know why 😀 1️⃣",
    "Kittens_slept 3.5% of THE day",
    "",
)


@pytest.mark.parametrize("language", ["", "en", "en-GB"])
def test_english_has_the_scores_of_the_libraries(language):
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu import metrics

    variants = {name: BUILT_IN[name].parameters["variant"] for name in ("rouge_1", "rouge_2", "rouge_l")}
    rouge = RougeScorer(list(variants.values()), use_stemmer=True)
    for reference, text in itertools.product(ENGLISH, ENGLISH):
        found = scores(reference, text, language)
        expected = rouge.score(reference, text)
        assert [found[name] for name in variants] == [expected[variant].fmeasure for variant in variants.values()]
        assert found["bleu"] == metrics.BLEU(effective_order=True).sentence_score(text, [reference]).score
        assert found["ter"] == metrics.TER().sentence_score(text, [reference]).score


def test_chinese_bleu_is_that_of_the_tokenizer_for_chinese():
    from sacrebleu import metrics

    bleu = metrics.BLEU(effective_order=True, tokenize="zh")
    reference = "今天天气很好，我们一起去公园散步吧。"
    for text in ("今天天气很好，我们一起去公园玩吧。", "他说：“GPT-4 很好！”", "今天", SCRIPTS["Chinese"][0]):
        assert scores(reference, text)["bleu"] == bleu.sentence_score(text, [reference]).score
    assert scores(reference, "今天天气很好，我们一起去公园玩吧。")["bleu"] > 70


def test_the_score_of_all_texts_is_that_of_the_library_in_each_script():
    from sacrebleu import metrics

    make = BUILT_IN["bleu"].make_of_all
    english = [list(pair) for pair in itertools.pairwise(ENGLISH[:4])]
    texts, references = [pair[0] for pair in english], [[pair[1], ENGLISH[0]] for pair in english]
    streams = [list(stream) for stream in zip(*references, strict=True)]
    assert make()(texts, references) == metrics.BLEU().corpus_score(texts, streams).score
    chinese = SCRIPTS["Chinese"]
    zh = metrics.BLEU(tokenize="zh").corpus_score(list(chinese[1:]), [[chinese[0], chinese[0]]]).score
    assert make()(chinese[1:], [[chinese[0]], [chinese[0]]]) == zh > 0
    same = [SCRIPTS[script][0] for script in SCRIPTS]
    assert make()(same, [[text] for text in same]) == pytest.approx(100)


def test_each_script_has_its_words():
    assert words("GPT-4 сказал: 猫が5匹!") == ["gpt", "4", "сказал", "猫", "が", "5", "匹"]
    assert words("किताबें") == ["किताबें"] and words("น้ำ ๕") == [*words("น้ำ"), "๕"] and len(words("น้ำ")) == 2
    assert words("می\u200cخواهم") == ["میخواهم"] and words("1️⃣ ❤️") == ["1"] and words("\u0301x") == ["x"]
    spaceless = {script for script, (text, *_) in SCRIPTS.items() if is_unspaced(text)}
    assert spaceless == {"Burmese", "Chinese", "Japanese", "Khmer", "Lao", "Thai", "mixed"}
    assert {script for script, (text, *_) in SCRIPTS.items() if is_english(text)} == {"Latin"}
    assert not is_english("plain letters", "nl") and not is_english("猫", "en") and is_english("a café", "en-US")


def test_the_version_of_a_metric_says_how_it_splits_words():
    assert {name: metric.version().rpartition(" ")[2] for name, metric in BUILT_IN.items() if name != "chrf"} == dict.fromkeys(
        (name for name in BUILT_IN if name != "chrf"), "2"
    )  # fmt: skip
    assert "words" not in BUILT_IN["chrf"].version()


@pytest.mark.slow
def test_a_process_knows_the_language_of_a_prompt():
    prompt = TextsOfPrompt(["The old houses"], ["an old house"], "nl")
    found = dict(
        processes.score_chunks(["rouge_1"], [[prompt], [TextsOfPrompt(prompt.references, prompt.texts)]], n_processes=2)
    )
    # English words without their endings agree; those of another language are compared as they are.
    assert found[0]["rouge_1"] == [pytest.approx(1 / 3)] and found[1]["rouge_1"] == [pytest.approx(2 / 3)]


def test_texts_alone_are_scored_as_in_a_chunk():
    for names, beside in scorers(["rouge_1", "token_f1"]):
        assert beside([SCRIPTS["Russian"][0]])(SCRIPTS["Russian"][0]) == dict.fromkeys(names, 1.0)
