"""How well a model tags, and whether its explanations are true."""
