"""Real, unmodified clients in conversations that outgrow the window: through the gateway, or directly to the model.

The model is scripted: it makes each client read large files with the client's own tool until no window is large enough.
"""
