"""The recall tool: offered to the model, answered by the gateway, hidden from the client."""
