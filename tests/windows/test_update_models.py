"""The script that writes the snapshot, run on small tables in both of their shapes."""

import json
import subprocess
import sys
from pathlib import Path

from everlong.core import Json
from everlong.windows.registry import Registry
from everlong.windows.tables import unpack

SCRIPT = Path(__file__).parents[2] / "scripts" / "update_models.py"

MODELS_DEV: Json = {
    "openai": {
        "models": {
            "gpt-5": {"cost": {"input": 1.25, "output": 10}},  # its limits are those of a base model
            "whisper-1": {"limit": {"context": 448_000}},
            "tiny": {"limit": {"context": 512}},
        }
    },
    "aihubmix": {
        "models": {
            "gpt-5": {"limit": {"context": 400_000, "input": 272_000, "output": 128_000}},
            "orphan": {"cost": {"input": 1}},
        }
    },
    "amazon-bedrock": {
        "models": {
            "anthropic.claude-x-v1:0": {"limit": {"context": 200_000}},
            "eu.anthropic.claude-x-v1:0": {"limit": {"context": 200_000}},
        }
    },
}
MODELS_DEV_FLAT: Json = {
    "date": "2026-07-02",
    "models": [
        {"provider": "openai", "id": "gpt-5", "usd_per_m_input": 1.25, "usd_per_m_output": 10},
        {"provider": "openai", "id": "whisper-1", "context": 448_000},
        {"provider": "openai", "id": "tiny", "context": 512},
        {"provider": "aihubmix", "id": "gpt-5", "context": 400_000, "input": 272_000, "output": 128_000},
        {"provider": "aihubmix", "id": "orphan", "usd_per_m_input": 1},
        {"provider": "amazon-bedrock", "id": "anthropic.claude-x-v1:0", "context": 200_000},
        {"provider": "amazon-bedrock", "id": "eu.anthropic.claude-x-v1:0", "context": 200_000},
    ],
}
LITELLM: Json = {
    "sample_spec": {"mode": "one of: chat, embedding", "max_input_tokens": "max input tokens"},
    "gpt-5": {
        "litellm_provider": "openai",
        "mode": "chat",
        "max_input_tokens": 272_000,
        "max_output_tokens": 128_000,
        "input_cost_per_token": 1.25e-06,
        "output_cost_per_token": 1e-05,
        "cache_read_input_token_cost": 1.25e-07,
    },
    "deepseek-chat": {"litellm_provider": "deepseek", "mode": "chat", "max_input_tokens": 131_072},
    "deepseek/deepseek-chat": {"litellm_provider": "deepseek", "mode": "chat", "max_input_tokens": 131_072},
    "moderator": {"litellm_provider": "openai", "mode": "moderation", "max_input_tokens": 32_768},
    "gemini/gemini-9": {"litellm_provider": "gemini", "mode": "chat", "max_input_tokens": 1_048_576},
}
LITELLM_FLAT: Json = {
    "version": "1.0",
    "models": [
        {
            "id": "gpt-5",
            "provider": "openai",
            "input": 272_000,
            "output": 128_000,
            "usd_per_m_input": 1.25,
            "usd_per_m_output": 10.0,
            "usd_per_m_cache_read": 0.125,
        },
        {"id": "deepseek-chat", "provider": "deepseek", "input": 131_072},
        {"id": "deepseek/deepseek-chat", "provider": "deepseek", "input": 131_072},
        {"id": "gemini/gemini-9", "provider": "gemini", "input": 1_048_576},
        {"id": "nobody", "provider": None, "input": 4_096},
    ],
}


def run(folder: Path, models_dev: Json, litellm: Json, *options: str) -> "subprocess.CompletedProcess[str]":
    (folder / "models_dev.json").write_text(json.dumps(models_dev))
    (folder / "litellm.json").write_text(json.dumps(litellm))
    files = ("--models-dev", "models_dev.json", "--litellm", "litellm.json", "--out", "out.gz")
    return subprocess.run(
        [sys.executable, str(SCRIPT), *files, *options], cwd=folder, capture_output=True, text=True, check=False
    )


def written(folder: Path, models_dev: Json, litellm: Json, *options: str) -> Registry:
    finished = run(folder, models_dev, litellm, *options)
    assert finished.returncode == 0, finished.stderr
    return unpack((folder / "out.gz").read_bytes())


DATES = ("--models-dev-date", "2026-07-02", "--litellm-date", "2026-06-01")


def test_both_shapes_give_the_same_snapshot(tmp_path: Path) -> None:
    own = written(tmp_path, MODELS_DEV, LITELLM, *DATES)
    assert set(written(tmp_path, MODELS_DEV_FLAT, LITELLM_FLAT, *DATES[2:])) == set(own)
    rows = {(entry.claimant, entry.id): (entry.context, entry.input, entry.output) for entry in own}
    assert rows == {
        ("openai (models.dev, inferred)", "gpt-5"): (400_000, 272_000, 128_000),
        ("aihubmix (models.dev)", "gpt-5"): (400_000, 272_000, 128_000),
        ("amazon-bedrock (models.dev)", "anthropic.claude-x-v1:0"): (200_000, None, None),
        ("openai (litellm)", "gpt-5"): (None, 272_000, 128_000),
        ("deepseek (litellm)", "deepseek-chat"): (None, 131_072, None),
        ("google (litellm)", "gemini-9"): (None, 1_048_576, None),
    }
    (gpt,) = (entry for entry in own if entry.claimant == "openai (litellm)")
    assert (gpt.usd_input, gpt.usd_output, gpt.usd_cache_read, gpt.date) == (1.25, 10.0, 0.125, "2026-06-01")


def test_a_second_run_tells_what_changed(tmp_path: Path) -> None:
    written(tmp_path, MODELS_DEV_FLAT, LITELLM_FLAT, *DATES)
    grown = json.loads(json.dumps(LITELLM_FLAT).replace("131072", "1000000"))
    assert (
        "deepseek (litellm) deepseek-chat: 131,072 -> 1,000,000" in run(tmp_path, MODELS_DEV_FLAT, grown, *DATES).stdout
    )


def test_a_table_without_a_date_is_refused_in_one_line(tmp_path: Path) -> None:
    finished = run(tmp_path, MODELS_DEV, LITELLM)
    assert finished.returncode != 0
    assert finished.stderr.strip() == "models_dev.json: the file has no date; say when it was taken"
