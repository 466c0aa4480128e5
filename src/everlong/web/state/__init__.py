"""What the app knows: settings, sources, models, agents, threads as the page shows them, usage. Knows no HTTP."""
