"""What each converter makes of its set: turns, halves, questions and evidence, case by case."""

from collections.abc import Callable
from pathlib import Path

import pytest

from everlong.errors import InputError
from everlong.lab.datasets.dialogue import Dataset, Question
from everlong.lab.datasets.table import convert_dataset
from tests.lab.datasets.checkouts import CHECKOUTS, beam, locomo_sample, longmemeval, vcsum_segment, write

Convert = Callable[[str], Dataset]


@pytest.fixture
def convert(tmp_path: Path) -> Convert:
    """Convert the made-up folder of a set."""

    def made(name: str) -> Dataset:
        CHECKOUTS[name](tmp_path)
        return convert_dataset(name, tmp_path)

    return made


def question_with(dataset: Dataset, words: str) -> Question:
    (found,) = [question for question in dataset.questions if words in question.question]
    return found


def ids(dataset: Dataset, at: int = 0) -> list[str]:
    return [turn.id for turn in dataset.dialogues[at].turns]


# --- BEAM ----------------------------------------------------------------------------------------------


def test_chats_of_even_number_are_for_tuning_and_come_in_the_order_of_their_numbers(convert: Convert) -> None:
    chats = convert("beam_100k").dialogues
    assert [(chat.id, chat.half) for chat in chats] == [
        ("beam-100k-1", "confirming"),
        ("beam-100k-2", "tuning"),
        ("beam-100k-10", "tuning"),
    ]


def test_the_plan_numbers_of_a_chat_are_nobodys_words(convert: Convert) -> None:
    first = convert("beam_100k").dialogues[0]
    assert first.turns[0].content.endswith("The harvest is on 8 July.")
    assert first.turns[2].content == "I never water in the evening."


def test_questions_without_sources_are_left_out_and_both_sides_of_a_contradiction_count(convert: Convert) -> None:
    own = [question for question in convert("beam_500k").questions if question.dialogue == "beam-500k-2"]
    assert [(question.category, question.evidence) for question in own] == [
        ("contradiction_resolution", ("2", "4")),
        ("information_extraction", ("0",)),
    ]
    assert own[0].answer == "You said both."


def test_a_field_that_is_missing_is_named_with_its_file(tmp_path: Path) -> None:
    beam(tmp_path)
    write(tmp_path, "chats/100K/2/chat.json", [{"turns": [[{"role": "user", "content": "x"}]]}])
    with pytest.raises(InputError, match=r"chats/100K/2/chat\.json.*missing required field `id`"):
        convert_dataset("beam_100k", tmp_path)


# --- LoCoMo --------------------------------------------------------------------------------------------


def test_sessions_come_in_order_with_names_times_and_captions(convert: Convert) -> None:
    (talk,) = convert("locomo").dialogues
    assert ids(convert("locomo")) == ["D1:1", "D1:2", "D2:1", "D2:2"]
    assert [(turn.role, turn.name) for turn in talk.turns[:2]] == [("user", "Ines"), ("assistant", "Tom")]
    assert talk.turns[1].content == "Look at this. [image: a red lighthouse]"
    assert talk.turns[2].time == "9:00 am on 1 June, 2023"


def test_evidence_is_read_however_it_is_written(convert: Convert) -> None:
    dataset = convert("locomo")
    assert question_with(dataset, "came late").evidence == ("D1:1", "D1:2")
    assert question_with(dataset, "Whose boat").evidence == ("D2:1",)
    assert (question_with(dataset, "Whose boat").category, question_with(dataset, "Whose").answer) == (
        "adversarial",
        "Ines",
    )
    assert not [question for question in dataset.questions if "Nothing names" in question.question]


def test_the_conversations_that_are_not_the_usual_ones_are_for_confirming(convert: Convert) -> None:
    (talk,) = convert("locomo_rest").dialogues
    assert (talk.id, talk.half) == ("conv-30", "confirming")


def test_a_cue_stands_where_its_time_puts_it(convert: Convert) -> None:
    dataset = convert("locomo_plus")
    # asked a week after 1 June: two weeks before that is 25 May, a month 9 May
    assert ids(dataset, 0) == ["D1:1", "D1:2", "C0:1", "C0:2", "D2:1", "D2:2", "C2:1", "C2:2"]
    assert ids(dataset, 1) == ["D1:1", "D1:2", "C1:1", "C1:2", "D2:1", "D2:2"]
    assert [(question.question, question.evidence) for question in dataset.questions][-1] == (
        "I miss the road.",
        ("C1:1", "C1:2"),
    )
    assert [dialogue.half for dialogue in dataset.dialogues] == ["tuning", "confirming"]
    cue = dataset.dialogues[0].turns[2]
    assert (cue.name, cue.role, cue.content) == ("Ines", "user", "I sold my van.")


def test_a_session_without_a_readable_time_is_named(tmp_path: Path) -> None:
    CHECKOUTS["locomo_plus"](tmp_path)
    sample = locomo_sample("conv-26")
    sample["conversation"]["session_1_date_time"] = "noon"  # type: ignore[index]
    write(tmp_path, "data/locomo10.json", [sample])
    with pytest.raises(InputError, match=r"conv-26: the time of a session cannot be read: 'noon'"):
        convert_dataset("locomo_plus", tmp_path)


def test_real_messages_keep_their_time_and_those_without_words_are_left_out(convert: Convert) -> None:
    dataset = convert("realtalk")
    assert [(dialogue.id, dialogue.half) for dialogue in dataset.dialogues] == [
        ("realtalk-10", "confirming"),
        ("realtalk-1", "tuning"),
    ]
    assert [(turn.id, turn.content) for turn in dataset.dialogues[1].turns] == [
        ("D1:1", "Morning!"),
        ("D1:3", "Look [image: a wet dog]"),
        ("D1:4", "Poor thing."),
    ]
    assert dataset.dialogues[0].turns[0].time == "2023-12-28T18:37:01"
    assert {question.evidence for question in dataset.questions} == {("D1:3",)}


# --- RealMem -------------------------------------------------------------------------------------------


def test_a_query_is_asked_where_it_stands_and_wants_the_turns_of_its_memories(convert: Convert) -> None:
    dataset = convert("realmem")
    own = [question for question in dataset.questions if question.dialogue == "realmem-Ada"]
    assert [(question.question, question.evidence, question.category, question.before) for question in own] == [
        ("What now, 1?", ("S1:2",), "assistant", "S2:1"),
        ("What now, 2?", ("S1:1", "S1:2"), "both", "S2:3"),
        ("What now, 4?", ("S1:1",), "user", "S2:7"),
    ]
    assert [dialogue.half for dialogue in dataset.dialogues] == ["tuning", "confirming"]
    assert dataset.dialogues[0].turns[2].time == "2025-12-20"


# --- meetings ------------------------------------------------------------------------------------------


def test_marks_of_the_transcriber_are_no_words_and_spans_include_their_ends(convert: Convert) -> None:
    dataset = convert("qmsum")
    assert [dialogue.half for dialogue in dataset.dialogues] == ["tuning", "confirming"]
    assert [(turn.id, turn.name, turn.content) for turn in dataset.dialogues[0].turns] == [
        ("0", "Chair", "Shall we begin ?"),
        ("2", "Chair", "The quay needs paint soon ."),
        ("3", "Painter", "Blue , I think ."),
    ]
    assert [(question.evidence, question.category) for question in dataset.questions] == [(("2", "3"), "short")] * 2


def test_what_people_highlighted_under_a_headline_is_the_evidence(convert: Convert) -> None:
    dataset = convert("zh_vcsum")
    assert [(question.id, question.dialogue) for question in dataset.questions] == [
        ("vcsum-3_0", "vcsum-3"),
        ("vcsum-4_0", "vcsum-4"),
    ]
    assert dataset.questions[0].question == "会上关于“刷漆的费用”说了什么？"
    assert dataset.questions[0].evidence == ("3_0:1", "3_0:2")
    turns = dataset.dialogues[0].turns
    assert [turn.content[:6] for turn in turns[:4]] == ["码头要刷漆。", "钱从哪里来？", "明年再说。", "好的。"]
    assert [turn.name for turn in turns[2:4]] == ["发言人1", "发言人2"]


def test_short_sentences_of_one_speaker_make_one_message(tmp_path: Path) -> None:
    segment = vcsum_segment("3_0", [[1], [], []])
    segment["context"], segment["highlights"] = (
        [["一。", "二。", "三。"], ["四。"]],
        [[[0, 0], [1, 1], [0, 0]], [[0, 0]]],
    )
    for part in ("dev", "test"):
        write(tmp_path, f"vcsum_data/short_{part}.txt", [segment | {"id": f"{len(part)}_0"}], lines=True)
    dataset = convert_dataset("zh_vcsum", tmp_path)
    assert [turn.content for turn in dataset.dialogues[0].turns] == ["一。二。三。", "四。"]
    assert dataset.questions[0].evidence == ("3_0:1",)


# --- MemoryBank, MADial --------------------------------------------------------------------------------


def test_the_marked_turns_are_the_evidence_in_both_languages(convert: Convert) -> None:
    chinese, english = convert("zh_memorybank"), convert("memorybank")
    assert [dialogue.id for dialogue in chinese.dialogues] == ["mb-zh-00", "mb-zh-01"]
    assert chinese.dialogues[0].turns[1].name == "AI"
    assert (chinese.questions[2].category, chinese.questions[2].evidence) == ("assistant", ("D7:6",))
    assert english.questions[2].evidence == ("D7:6",)


def test_a_question_whose_day_was_cut_short_is_left_out(convert: Convert) -> None:
    kept = [question.id for question in convert("memorybank").questions]
    assert "mb-en-00-q5" in kept
    assert "mb-en-00-q6" not in kept
    assert len(convert("zh_memorybank").questions) == len(kept) + 1


def test_the_lines_before_the_assistant_recalls_are_the_question(convert: Convert) -> None:
    dataset = convert("madial")
    assert [dialogue.id for dialogue in dataset.dialogues] == ["madial-Bart", "madial-Lisa"]
    assert ids(dataset) == ["3", "7"]
    first = dataset.questions[0]
    assert first.question == "Assistant：line 2\nBart：line 3\nAssistant：line 4\nBart：line 5"
    assert (first.evidence, first.answer, first.category) == (("7",), "Assistant：line 6", "n1")


def test_every_third_chinese_talk_stands_apart(convert: Convert) -> None:
    usual, apart = convert("zh_madial"), convert("zh_madial_rest")
    assert [question.id for question in usual.questions] == ["madial-0", "madial-2"]
    assert [question.id for question in apart.questions] == ["madial-1"]
    assert {dialogue.half for dialogue in apart.dialogues} == {"confirming"}


# --- LongMemEval ---------------------------------------------------------------------------------------


def test_sessions_come_by_date_and_the_turn_with_the_answer_is_the_evidence(convert: Convert) -> None:
    dataset = convert("longmemeval")
    (question,) = dataset.questions
    assert (question.evidence, question.category) == (("S2:2",), "single-session-assistant")
    assert dataset.dialogues[0].turns[0].content == "I have a slate roof."
    assert dataset.dialogues[0].turns[3].time == "2023-05-20T02:21"


def test_an_older_file_serves_where_the_cleaned_one_is_not_there(tmp_path: Path) -> None:
    longmemeval(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "longmemeval_s_cleaned.json").rename(tmp_path / "data" / "longmemeval_oracle.json")
    assert len(convert_dataset("longmemeval", tmp_path).questions) == 1
