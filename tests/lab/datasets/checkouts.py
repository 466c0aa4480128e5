"""Small made-up folders in the shape of each public set, as a clone of it looks. All of it is written by us."""

import json
from collections.abc import Callable
from pathlib import Path

from everlong.lab.datasets.dialogue import Dataset, Dialogue, Question, Turn, write_dataset


def write(folder: Path, path: str, value: object, *, lines: bool = False) -> None:
    """Write a file of JSON, or one with an object a line."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = value if lines and isinstance(value, list) else [value]
    file.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")


# --- BEAM ----------------------------------------------------------------------------------------------


def beam_chat(harvest: str) -> list[object]:
    said = [
        f"We planted six beds of beans. The harvest is on {harvest}. ->-> 1,1",
        "Six beds are a good start. Water them early.",
        "I never water in the evening. ->-> 1, 2",
        "Then mornings it is.",
        "Today I watered in the evening after all.",
        "Noted: an evening this time.",
    ]
    turns = [
        {"role": ("user", "assistant")[at % 2], "id": at, "content": text, "question_type": "main_question"}
        for at, text in enumerate(said)
    ]
    return [
        {"batch_number": 1, "time_anchor": None, "turns": [turns[:2], turns[2:4]]},
        {"batch_number": 2, "time_anchor": "May-02-2024", "turns": [turns[4:]]},
    ]


BEAM_QUESTIONS = {
    "abstention": [{"question": "Which tractor do I drive?", "ideal_response": "Nothing was said about it."}],
    "contradiction_resolution": [
        {
            "question": "Do I water in the evening?",
            "ideal_answer": "You said both.",
            "source_chat_ids": {"first_statement": [2], "second_statement": [4, 2]},
        }
    ],
    "information_extraction": [
        {"question": "When is the harvest?", "answer": "In the second week of July.", "source_chat_ids": [0]}
    ],
}


def beam(folder: Path) -> None:
    for size in ("100K", "500K"):
        for number, harvest in ((1, "8 July"), (2, "9 July"), (10, "10 July")):
            write(folder, f"chats/{size}/{number}/chat.json", beam_chat(harvest))
            write(folder, f"chats/{size}/{number}/probing_questions/probing_questions.json", BEAM_QUESTIONS)


# --- LoCoMo, LoCoMo-Plus -------------------------------------------------------------------------------


def locomo_sample(key: str) -> dict[str, object]:
    first = [
        {"speaker": "Ines", "dia_id": "D1:1", "text": "The ferry was late again."},
        {"speaker": "Tom", "dia_id": "D1:2", "text": "Look at this.", "blip_caption": "a red lighthouse"},
    ]
    second = [
        {"speaker": "Tom", "dia_id": "D2:1", "text": "I bought the boat."},
        {"speaker": "Ines", "dia_id": "D2:2", "text": "For how much? "},
    ]
    asked = [
        {"question": "What did Tom buy?", "answer": "a boat", "evidence": ["D2:1"], "category": 4},
        {"question": "What came late, what was shown?", "answer": 1, "evidence": ["D1:1; D1:02"], "category": 1},
        {"question": "Whose boat?", "adversarial_answer": "Ines", "evidence": ["D:2:1", "D9:9"], "category": 5},
        {"question": "Nothing names a turn", "answer": "x", "evidence": ["D"], "category": 3},
    ]
    talk = {
        "speaker_a": "Ines",
        "speaker_b": "Tom",
        "session_2_date_time": "9:00 am on 1 June, 2023",
        "session_2": second,
        "session_1_date_time": "8:05 pm on 1 May, 2023",
        "session_1": first,
    }
    return {"sample_id": key, "conversation": talk, "qa": asked}


def locomo(folder: Path) -> None:
    write(folder, "data/locomo10.json", [locomo_sample("conv-26"), locomo_sample("conv-30")])


def locomo_plus(folder: Path) -> None:
    locomo(folder)
    cues = [
        {
            "relation_type": "causal",
            "cue_dialogue": f"A: I sold my {thing}.\nB: A pity.",
            "trigger_query": "A: I miss the road.",
            "time_gap": gap,
        }
        for thing, gap in (("van", "two weeks later"), ("bike", "a month later"), ("tent", "some day"))
    ]
    write(folder, "data/locomo_plus.json", cues)


def realtalk(folder: Path) -> None:
    """Chat 1 is for tuning, chat 10 not. A picture alone has no words."""
    for name in ("Chat_1_Ada_Ben", "Chat_10_Cy_Dee"):
        said = [("Ada", "Morning!", ""), ("Ben", "", ""), ("Ben", "Look", "a wet dog"), ("Ada", "Poor thing.", "")]
        turns = [
            {
                "clean_text": text,
                "speaker": who,
                "date_time": f"28.12.2023, 18:37:0{at}",
                "img_file": [],
                "dia_id": f"D1:{at}",
                **({"blip_caption": caption} if caption else {}),
            }
            for at, (who, text, caption) in enumerate(said, start=1)
        ]
        asked = [{"question": "What did Ben show?", "answer": "a dog", "evidence": ["D1:3", "D1:2"], "category": 1}]
        fields = {"name": {"speaker_1": "Ada"}, "session_1": turns, "events_session_1": {}, "qa": asked}
        write(folder, f"data/{name}.json", fields)


# --- RealMem -------------------------------------------------------------------------------------------


def realmem(folder: Path) -> None:
    def said(speaker: str, text: str, **more: object) -> dict[str, object]:
        return {"speaker": speaker, "content": text, "is_query": False, "query_id": None} | more

    def memory(text: str, turn: int, snapshot: str) -> dict[str, object]:
        return {
            "index": "m",
            "type": "Dynamic",
            "content": text,
            "source_turn": turn,
            "source_content_snapshot": snapshot,
            "session_uuid": "one",
        }

    hull, plan = "The hull is blue and made of larch.", "Then sand it twice, and take the resin of the third shelf."
    first = {
        "session_uuid": "one",
        "current_time": "2025-12-19 (Friday)",
        "dialogue_turns": [said("User", hull), said("Assistant", plan)],
        "extracted_memory": [
            memory("blue larch hull", 1, hull[:20]),
            memory("resin of the third shelf", 2, plan),
            memory("the whole session", 0, hull),
        ],
    }

    def asked(number: int, *memories: str) -> list[dict[str, object]]:
        used = [{"session_uuid": "one", "content": text} for text in memories]
        return [
            said("User", f"What now, {number}?", is_query=True, query_id=f"Q-{number}"),
            said("Assistant", f"Go on with {number}.", memory_used=used),
        ]

    second = {
        "session_uuid": "two",
        "current_time": "2025-12-20 (Saturday)",
        "dialogue_turns": [
            *asked(1, "resin of the third shelf"),
            *asked(2, "resin of the third shelf", "blue larch hull"),
            *asked(3, "blue larch hull", "the whole session"),
            *asked(4, "blue larch hull"),
            *asked(5),
        ],
        "extracted_memory": [],
    }
    for name in ("Ada", "Ben"):
        write(folder, f"dataset/{name}_dialogues_256k.json", {"_metadata": {}, "dialogues": [first, second]})


# --- meetings ------------------------------------------------------------------------------------------


def qmsum(folder: Path) -> None:
    for part, name in (("val", "A1"), ("test", "B2")):
        said = ["Shall we begin ?", "{vocalsound}", "The quay needs paint {disfmarker} soon .", "Blue , I think ."]
        meeting = {
            "topic_list": [],
            "general_query_list": [{"query": "Summarize", "answer": "paint"}],
            "specific_query_list": [
                {"query": "What about the quay?", "answer": "paint", "relevant_text_span": [["1", "2"], ["2", "3"]]},
                {"query": "Who coughed?", "answer": "nobody knows", "relevant_text_span": [["1", "1"]]},
            ],
            "meeting_transcripts": [
                {"speaker": ("Chair", "Painter")[at % 2], "content": text} for at, text in enumerate(said)
            ],
        }
        write(folder, f"data/ALL/{part}/{name}.json", meeting)


def vcsum_segment(key: str, marks: list[list[int]]) -> dict[str, object]:
    sentences = ["码头要刷漆。", "钱从哪里来？" * 20, "明年再说。"]
    return {
        "id": key,
        "av_num": 1,
        "context": [sentences, ["好的。"]],
        "speaker": [1, 2],
        "discussion": "讨论了刷漆。",
        "agenda": "刷漆的费用",
        "highlights": [
            [mark + [0] * (len(text) - len(mark)) for mark, text in zip(marks, sentences, strict=True)],
            [[0]],
        ],
    }


def vcsum(folder: Path) -> None:
    for part, number in (("dev", 3), ("test", 4)):
        segments = [
            vcsum_segment(f"{number}_0", [[1, 1, 1], [1], []]),
            vcsum_segment(f"{number}_1", [[], [], []]),
        ]
        write(folder, f"vcsum_data/short_{part}.txt", segments, lines=True)


# --- MemoryBank, MADial --------------------------------------------------------------------------------


def memorybank(folder: Path) -> None:
    """Two users: in English the last day of the first is cut short."""
    for code, names in (("cn", ("林晓", "周航")), ("en", (" Lin", "Zhou"))):
        bank = {}
        for name in names:
            days = {
                f"2023-05-{day:02d}": [
                    {"query": f"q {name} {day}.{at}", "response": f"r {name} {day}.{at}"} for at in range(9)
                ]
                for day in range(1, 11)
            }
            if code == "en" and name == names[0]:
                days["2023-05-08"] = days["2023-05-08"][:1]
            bank[name] = {"name": name, "history": days, "summary": {}}
        write(folder, f"eval_data/{code}/memory_bank_{code}.json", bank)
        asked = [{name.strip(): [f"{name} {at}?" for at in range(7)]} for name in names]
        write(folder, f"eval_data/{code}/probing_questions_{code}.jsonl", asked, lines=True)


def madial(folder: Path) -> None:
    for place, code in (("ch", "zh"), ("en", "en")):
        notes = [
            {"7": {"time": "2023-05-01", "scene": "s", "emotion": "e", "event": "Bart baked bread."}},
            {"3": {"time": "2022-05-01", "scene": "s", "emotion": "e", "event": "Bart lost a kite."}},
            {"9": {"time": "2023-01-01", "scene": "s", "emotion": "e", "event": "Lisa won a race."}},
        ]
        talks = [
            {
                "dialogue": [
                    "<BOD>\n",
                    *(f'<{who}>:"line {at}"\n' for at, who in enumerate(["Bart", "Assistant"] * 4, 1)),
                ],
                "test-turn": [6],
                "relevant-id": [7, 99],
                "user-id": 1,
            }
            for _ in range(3)
        ]
        write(folder, f"data/{place}/MADial-Bench-{code}-memory.json", notes, lines=True)
        write(folder, f"data/{place}/MADial-Bench-{code}-dialogue.json", talks, lines=True)


# --- LongMemEval ---------------------------------------------------------------------------------------


def longmemeval(folder: Path) -> None:
    late = [
        {"role": "user", "content": "Which glue holds slate?"},
        {"role": "assistant", "content": "Take the grey resin of the third shelf.", "has_answer": True},
    ]
    early = [{"role": "user", "content": "I have a slate roof."}, {"role": "assistant", "content": "Nice."}]
    entry = {
        "question_id": "ab1",
        "question_type": "single-session-assistant",
        "question": "Which glue did you name?",
        "answer": "grey resin",
        "question_date": "2023/06/01 (Thu) 10:00",
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/04/02 (Sun) 12:00"],
        "haystack_session_ids": ["b", "a"],
        "haystack_sessions": [late, early],
        "answer_session_ids": ["b"],
    }
    write(folder, "longmemeval_s_cleaned.json", [entry, entry | {"question_id": "cd2_abs"}])


# --- chats for questions about the assistant's words -----------------------------------------------------


def advice(topic: str, items: tuple[str, str, str]) -> tuple[str, str]:
    """A request about a topic, and an answer with points of its own."""
    listed = "\n".join(f"{at}. **{item}**: keep an eye on the {item.lower()}." for at, item in enumerate(items, 1))
    request = f"I'm worried about the {topic}, can you help me find a way that holds for years?"
    answer = (
        f"Certainly! The {topic} deserves care, and there are several things to think of before you begin with it. "
        f"Here is what I would do, in this order:\n\n{listed}\n\nTake your time with each of them, write down what you "
        "did, and look at the result again after a week; most mistakes show themselves by then."
    )
    return request, answer


def chats(folder: Path) -> None:
    said = [
        *advice("wooden garden gate", ("Hinge grease", "Oak wedges", "Cedar oil")),
        *advice("crooked kitchen tap", ("Brass washer", "Thread tape", "Ceramic cartridge")),
        *advice("steep attic stairs", ("Talcum", "Longer screws", "Felt strips")),
    ]
    turns = tuple(Turn(str(at), ("user", "assistant")[at % 2], text) for at, text in enumerate(said))
    question = Question("q", "house", "What leaks?", ("2",))
    write_dataset(Dataset((Dialogue("house", turns, "tuning"),), (question,)), folder)


CHECKOUTS: dict[str, Callable[[Path], None]] = {
    "beam_100k": beam,
    "beam_500k": beam,
    "assistant_words": chats,
    "realmem": realmem,
    "longmemeval": longmemeval,
    "locomo": locomo,
    "locomo_rest": locomo,
    "locomo_plus": locomo_plus,
    "realtalk": realtalk,
    "qmsum": qmsum,
    "memorybank": memorybank,
    "zh_memorybank": memorybank,
    "madial": madial,
    "zh_madial": madial,
    "zh_madial_rest": madial,
    "zh_vcsum": vcsum,
}
