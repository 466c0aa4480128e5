"""How much each message of a talk is worth for a question: who said it, on which day, what was asked."""
