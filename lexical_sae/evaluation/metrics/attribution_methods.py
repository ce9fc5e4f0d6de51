"""Attribution methods compared on a few texts; the study with more of everything is `lexical-sae faithfulness`."""

from lexical_sae.data.batches import tokenize
from lexical_sae.evaluation.explainers.benchmark import NoActiveWordError, compare_explainers
from lexical_sae.evaluation.explainers.explainer import ArenaSettings
from lexical_sae.evaluation.explainers.results import ArenaResults
from lexical_sae.evaluation.metrics.metric import Subject, sampled


def compare_methods(of: Subject) -> ArenaResults | None:
    """A small comparison: one seed, few steps and samples, no memory; None where no short text can be explained."""
    model, sample, settings = of.model, of.sample, of.settings
    tokens = tokenize(model.tokenizer, sample.texts, model.max_length).ids
    short = [text for text, ids in zip(sample.texts, tokens, strict=True) if len(ids) <= settings.explainer_tokens]
    if not (settings.explainer_texts and short):
        return None
    sizes = ArenaSettings(
        texts=settings.explainer_texts,
        seeds=1,
        path_steps=20,
        shapley_orders=5,
        captum_steps=10,
        lime_samples=50,
        memory_texts=0,
        seed=settings.seed,
    )
    try:
        return compare_explainers(model, short, settings=sizes, on_step=of.on_step)
    except NoActiveWordError:
        return None


ATTRIBUTION_METHODS = sampled("explainers", ArenaResults | None, compare_methods)
