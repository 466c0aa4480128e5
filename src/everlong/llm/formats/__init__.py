"""How each wire format is asked and answers: one module each, all of the shape in `shape`."""
