"""Models behind HTTP: `lexical-sae serve`.

    request > protocol (slow clients) > guard (host, origin, token, headers) > route (schema) > question > lane > answer

1. The event loop parses requests and joins answers, and does nothing else.
2. Each model is owned by a thread, its lane. It takes the oldest question, and every other that waits and asks the same
   of other texts: they are one batch.
3. What a model says is checked before it is sent: no answer has an identity error above the tolerance.
4. With several workers, each is a process of its own on the same socket, with the weights mapped into memory once.

Modules that are imported when a worker starts, before its models are loaded, import no torch.
"""
