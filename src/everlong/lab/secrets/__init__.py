"""The measure of hiding: how many made-up secrets leave a text, and how many ordinary lines are taken for one.

`vendors` and `forms` make secrets by their published formats, `surroundings` puts them where secrets stand in real work,
`ordinary` writes lines that only look like them, `corpus` draws all of it from a seed and holds a third of the kinds out,
`measure` counts. No secret here is real.
"""
