"""Every explainer on every text, on every ground.

1. Texts are sampled at random and read one by one; each explainer scores each text, once per seed where it draws.
2. The scores meet the grounds: known effects of removal, deletion from the text, marks that people made.
3. What each explanation cost is kept beside, without what the prediction had cost already.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lexical_sae.data.encoding import encode
from lexical_sae.data.sampling import sample_rows
from lexical_sae.data.sources.rationales import Rationale, RationaleTexts
from lexical_sae.data.tables.cell_values import repair_text
from lexical_sae.data.words import layout_of, word_spans
from lexical_sae.evaluation.explainers.attribution import DIRECT, Chance
from lexical_sae.evaluation.explainers.case import Case, Scores, read_case
from lexical_sae.evaluation.explainers.deletion import DeletionGround
from lexical_sae.evaluation.explainers.erasure import Figures
from lexical_sae.evaluation.explainers.explainer import Answer, ArenaSettings, Explainer
from lexical_sae.evaluation.explainers.gradients import GRADIENT
from lexical_sae.evaluation.explainers.methods import line_up
from lexical_sae.evaluation.explainers.plausibility import PlausibilityGround, marked_words
from lexical_sae.evaluation.explainers.removal import RemovalGround
from lexical_sae.evaluation.explainers.results import ArenaResults, Card, Cost, RationaleResult, check
from lexical_sae.inference.labels import labels_of
from lexical_sae.mechanistic.attribution import worst_gap
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.word_views import cut_to_window
from lexical_sae.utils.cost import peak_megabytes, timed
from lexical_sae.utils.errors import DataError, SettingsError
from lexical_sae.utils.progress import OnStep, Step, silent

CONTROL = Chance().name
PREDICTION = "prediction"


class NoActiveWordError(DataError):
    """There is nothing to explain: every text is decided by the bias alone."""


def compare_explainers(
    model: LexicalSAE,
    texts: Sequence[str],
    rationales: Sequence[RationaleTexts] = (),
    settings: ArenaSettings = ArenaSettings(),
    on_step: OnStep = silent,
) -> ArenaResults:
    """All explainers on texts that nothing was chosen on, and beside the rationales of other texts if some are given.

    Of a long text all of them, and the model, get the first window: gradients and attention are those of one pass.

    Example: `compare_explainers(model, load_text_dataset("sst2").test.texts).removal["shapley"].spearman`
    """
    started = time.perf_counter()
    model.eval()
    model = cut_to_window(model)
    labels = labels_of(model)
    explainers, left_out = line_up(model, settings)
    panel = _Panel(explainers, settings)
    removal = RemovalGround(settings.fractions, CONTROL, settings.seed)
    deletion = DeletionGround(settings.fractions, CONTROL, settings.seed)
    in_logits = {explainer.name: explainer.is_in_logits for explainer in explainers}
    rows, count, widest = sample_rows(len(texts), settings.texts, settings.seed), 0, 0.0
    for done, row in enumerate(rows, start=1):
        case, milliseconds = timed(lambda row=row: read_case(model, row, texts[row]))
        if case.num_active and case.num_written:
            panel.costs.add(row, {PREDICTION: [{"ms": milliseconds}]})
            told = panel.ask(case, with_memory=count < settings.memory_texts)
            removal.update(case, _active(told), in_logits)
            deletion.update(case, _written(case, told))
            widest = worst_gap(widest, gradient_gap(case, told))
            count += 1
        on_step(Step("explaining texts", done, len(rows)))
    if not count:
        raise NoActiveWordError(
            f"none of {len(rows)} texts has a word that is active; give other texts or another model"
        )
    scores = removal.result()
    return ArenaResults(
        texts=count,
        texts_without_words=len(rows) - count,
        labels=labels,
        seed=settings.seed,
        seeds=settings.seeds,
        explainers={one.name: Card(one.about, one.is_drawn) for one in explainers},
        left_out=left_out,
        removal=scores,
        deletion=deletion.result(),
        rationales={one.name: _beside_people(model, one, panel, settings, on_step) for one in rationales},
        cost={one.name: panel.cost(one.name) for one in explainers},
        prediction_milliseconds=panel.costs.mean(PREDICTION, "ms"),
        checks=check(scores, CONTROL, widest),
        seconds=round(time.perf_counter() - started, 1),
    )


class _Panel:
    """The explainers, and what asking them has cost."""

    def __init__(self, explainers: Sequence[Explainer], settings: ArenaSettings) -> None:
        self.explainers, self.settings = explainers, settings
        self.costs = Figures(settings.seed)

    def ask(self, case: Case, *, with_memory: bool = False) -> dict[str, list[Answer]]:
        """What each says of a text, once per seed; the cost is kept."""
        told, costs = {}, {}
        for one in self.explainers:
            answers = [timed(lambda one=one, seed=seed: one.explain(case, seed)) for seed in self._seeds(one)]
            told[one.name] = [answer for answer, _ in answers]
            megabytes = peak_megabytes(lambda one=one: one.explain(case, self.settings.seed)) if with_memory else None
            costs[one.name] = [{"ms": ms, "MB": math.nan if megabytes is None else megabytes} for _, ms in answers]
        self.costs.add(case.row, costs)
        return told

    def asked_only(self, case: Case) -> dict[str, list[Answer]]:
        """What each says of a text whose cost is not counted."""
        return {one.name: [one.explain(case, seed) for seed in self._seeds(one)] for one in self.explainers}

    def cost(self, name: str) -> Cost:
        """Of one explanation, over texts and seeds."""
        return Cost(self.costs.mean(name, "ms"), self.costs.mean(name, "MB"))

    def _seeds(self, explainer: Explainer) -> range:
        first = self.settings.seed
        return range(first, first + (self.settings.seeds if explainer.is_drawn else 1))


def gradient_gap(case: Case, told: Mapping[str, Sequence[Answer]]) -> float:
    """How far direct attribution is from gradient x activation, relative to the sum of |contributions|."""
    direct, slopes = told[DIRECT.name][0].active, told[GRADIENT.name][0].active
    assert direct is not None
    assert slopes is not None
    gap = (direct - slopes * case.state.code.values).abs().max()
    return float(gap / direct.abs().sum().clamp(min=1))


def _active(told: Mapping[str, Sequence[Answer]]) -> dict[str, list[Scores]]:
    """Scores of active words, of those who have some."""
    found = {name: [one.active for one in answers if one.active is not None] for name, answers in told.items()}
    return {name: scores for name, scores in found.items() if scores}


def _written(case: Case, told: Mapping[str, Sequence[Answer]]) -> dict[str, list[Scores]]:
    """Scores of the text's words, of everybody."""
    return {name: [one.at_input(case).cpu() for one in answers] for name, answers in told.items()}


@dataclass(frozen=True)
class _Marked:
    """A text, the words of it that people marked, and how much of the marks the model saw."""

    row: int
    text: str
    words: frozenset[int]
    num_seen: int
    """Words of the text that the model saw."""
    num_marked: int
    """Marked words of the whole text, seen or not."""

    @property
    def share(self) -> float:
        """Of the words that the model saw."""
        return len(self.words) / max(1, self.num_seen)


def _beside_people(
    model: LexicalSAE, given: RationaleTexts, panel: _Panel, settings: ArenaSettings, on_step: OnStep
) -> RationaleResult:
    rows = sample_rows(len(given), settings.rationale_texts, settings.seed)
    every = [_mark(model, row, given.rationales[row]) for row in rows]
    marked = [one for one in every if 0 < len(one.words) < one.num_seen]
    if not marked:
        raise SettingsError(
            f"of {len(rows)} texts of {given.name} the model saw none with marked and unmarked words; "
            "take a model that reads longer texts (model.max_length)"
        )
    share = sum(one.share for one in marked) / len(marked)
    ground = PlausibilityGround(share, CONTROL, settings.seed)
    count = 0
    for done, one in enumerate(marked, start=1):
        case = read_case(model, one.row, one.text)
        if case.num_active:
            ground.update(case, one.words, _written(case, panel.asked_only(case)))
            count += 1
        on_step(Step(f"comparing with people ({given.name})", done, len(marked)))
    # Of all texts: those whose marks all lie beyond the limit are left out above, but not here.
    seen = sum(len(one.words) for one in every) / sum(one.num_marked for one in every)
    return RationaleResult(count, len(rows) - count, share, seen, ground.result())


def _mark(model: LexicalSAE, row: int, rationale: Rationale) -> _Marked:
    text = rationale.text
    (encoded,) = encode(model.tokenizer, [repair_text(text)], model.max_length)
    spans = layout_of(text, encoded).word_spans
    whole = marked_words(list(word_spans(text)), rationale)
    return _Marked(row, text, marked_words(spans, rationale), len(spans), len(whole))
