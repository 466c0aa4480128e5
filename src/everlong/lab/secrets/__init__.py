"""The measure of hiding: how many made-up secrets are removed from a text, and how many ordinary lines are changed.

`vendors` and `forms` make secrets in their published formats, `surroundings` puts them where secrets occur in real
work, `ordinary` writes lines that only look like secrets, `corpus` draws everything from a seed and holds out a third
of the kinds, `measure` counts. No secret here is real.
"""
