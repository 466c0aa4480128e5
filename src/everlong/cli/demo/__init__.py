"""`everlong demo`: the sample conversation held again with a scripted model, and its drawing on a terminal."""
