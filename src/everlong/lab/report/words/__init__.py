"""Every word of the lab's pages: one table per language. To add a language, add its table and a row here."""

from everlong.lab.report.words import en, zh

__all__ = ["TABLES"]

TABLES: dict[str, dict[str, str]] = {"en": en.TEXTS, "zh": zh.TEXTS}
