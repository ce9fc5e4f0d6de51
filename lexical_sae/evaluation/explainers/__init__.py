"""Explainers of one model on common ground: who says what really happens, and at what price.

    case         one text as every explainer gets it: its decision, its words, the question asked
    explainer    what an explainer is: scores of active words, of words of the text, or of both
    line_up      who takes part, a file per family: `attribution`, `gradients`, `attention`, `shapley`, `chance`,
                 `occlusion`, `captum_ways`
    removal      ground 1: active words are taken away, and what then happens is known exactly
    deletion     ground 2: words of the text are masked, and the model reads what is left
    plausibility ground 3: words that people marked as the reason
    cost         milliseconds and megabytes of one explanation
    contest      every explainer on every text, on every ground; `results` is what it leaves

All explain the same number: the predicted class's logit minus the mean over classes. Every order is found, none chosen.
"""
