"""Public dialogue data sets in the lab's format: one converter each, from a folder that the user has cloned.

`table` lists the data sets, `dialogue` is their common format, `checkout` reads clones. `assistant_words` makes
additional questions. Nothing is downloaded, and no data is part of everlong.
"""
