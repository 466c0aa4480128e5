"""Languages by script and by their commonest words; sentences and lengths."""

import pytest
from hypothesis import given, strategies as st

from everlong.summarize.audit.language import UNKNOWN_LATIN, detected, differs, spoken
from everlong.summarize.text import clipped, counted_words, sentences_of, within_words


def words_language(text: str) -> str:
    return detected(text)[0]


SAID = {
    "en": "The user wants the login page fixed and the tests to pass.",
    "zh": "用户想修复登录页面，并让测试通过。",
    "ja": "ユーザーはログインページの修正を求めています。",
    "ko": "사용자는 로그인 페이지를 수정하고 테스트를 통과하기를 원합니다.",
    "ar": "يريد المستخدم إصلاح صفحة تسجيل الدخول وتشغيل الاختبارات.",
    "ru": "Пользователь хочет исправить страницу входа и тесты.",
    "es": "El usuario quiere arreglar la página y que los tests pasen con el servidor.",
    "pt": "O usuário não quer mudar a página, mas os testes do servidor em produção.",
    "fr": "L'utilisateur veut corriger la page et les tests du serveur dans une branche.",
    "de": "Der Nutzer will die Seite und das Formular mit der neuen Version nicht ändern.",
    "it": "Il cliente non vuole cambiare la pagina della banca che è stata fatta per gli utenti.",
}


@pytest.mark.parametrize(("language", "text"), SAID.items(), ids=SAID.keys())
def test_a_language_is_told_from_its_words(language: str, text: str) -> None:
    assert words_language(text) == language
    assert spoken([text]) == language
    assert differs(text, language) == ""
    assert differs(text, "zh" if language != "zh" else "en") == language


@pytest.mark.parametrize(
    "text", ["", "ok", "42", "`some code in here that is long enough`", "src/a.py src/b.py src/c.py"]
)
def test_where_nothing_can_be_told_nothing_is_claimed(text: str) -> None:
    assert words_language(text) == ""
    assert differs(text, "zh") == ""
    assert spoken([text]) == "en"


def test_code_names_and_quotations_do_not_count() -> None:
    text = '修改 src/app/main_window.py 的 readFile，运行 `pip install -e .`，标题改为 "My little shop for all"。'
    assert words_language(text) == "zh"
    assert differs("The heading is now “本月销售报告以及全年汇总”, as the user asked for it.", "en") == ""


def test_an_unknown_wish_is_no_reason_to_refuse() -> None:
    assert differs(SAID["zh"], "xx") == ""
    assert differs(SAID["es"], "latin") == ""
    assert differs(SAID["zh"], "latin") == "zh"


def test_sentences_do_not_end_inside_names_and_numbers() -> None:
    text = "Fixed a.py (v1.2.3), e.g. the loop. It took 2.5 s! 好了。再见？是\n- last"
    assert sentences_of(text) == [
        "Fixed a.py (v1.2.3), e.g. the loop.",
        "It took 2.5 s!",
        "好了。",
        "再见？",
        "是",
        "- last",
    ]


@given(st.text(alphabet="ab .。!\n中", max_size=80), st.integers(0, 60))
def test_what_is_cut_is_never_longer_than_asked(text: str, most: int) -> None:
    assert len(clipped(text, most)) <= most
    assert counted_words(within_words(text, most)) <= most


def test_a_cut_ends_with_a_sentence_where_one_fits() -> None:
    assert clipped("One is here. Two is longer than that.", 20) == "One is here."
    assert clipped("a" * 30, 10) == "a" * 9 + "…"
    assert within_words("one two three. four five six", 5) == "one two three."


LATIN = {
    "twice as many words of one language": ("the of uno dos tres el", "en"),
    "not quite twice": ("the of is uno el los", UNKNOWN_LATIN),
    "as many of both": ("the of uno tres el los", UNKNOWN_LATIN),
    "two words, none of another": ("the of uno dos tres quatro", "en"),
    "one word, none of another": ("the uno dos tres quatro cinco", UNKNOWN_LATIN),
}


@pytest.mark.parametrize(("text", "language"), LATIN.values(), ids=LATIN)
def test_a_language_in_latin_letters_needs_twice_as_many_words_as_the_next(text: str, language: str) -> None:
    assert words_language(text) == language


@pytest.mark.parametrize(("words", "told"), [(5, False), (6, True)])
def test_fewer_than_six_words_tell_nothing(words: int, told: bool) -> None:
    assert words_language("的" * words) == ("zh" if told else "")


@pytest.mark.parametrize(("chinese", "language"), [(8, "ja"), (9, "zh")])
def test_up_to_four_chinese_characters_to_one_kana_are_japanese(chinese: int, language: str) -> None:
    assert words_language("的" * chinese + "のは") == language


@pytest.mark.parametrize(("latin", "named"), [(4, "zh"), (5, "")])
def test_another_script_counts_from_six_words_in_ten(latin: int, named: str) -> None:
    assert differs("的" * 6 + " word" * latin, "en") == named
