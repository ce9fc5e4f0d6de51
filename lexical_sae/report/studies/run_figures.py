"""The figures of one experiment, all its seeds together, as tables of several experiments show them."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RunFigures:
    """What came of one experiment."""

    active_words: float
    """Per test text, on average over texts and seeds."""
    accuracy: float
    """On the test texts, on average over seeds."""
    accuracy_low: float | None
    """Lower end of the 95 % confidence interval over seeds; None with one seed."""
    accuracy_high: float | None
    delete: float | None
    """Share that passes the deletion test, on average over seeds; None where no word is active."""
    delete_low: float | None = None
    """Lower end of its 95 % confidence interval over seeds, as that of accuracy."""
    delete_high: float | None = None
    follow: float | None
    follow_low: float | None = None
    follow_high: float | None = None
    function_words: float | None
    lexical_neighbours: float | None
    presence: float | None = None
    """AUC of a word's activation for detecting texts with the word, over words and seeds."""
    presence_shuffled: float | None = None
    """The same with names in each other's place: what chance gives."""
    context_free: float | None = None
    """Accuracy with every word at its default, on average over seeds; None where it was not measured."""
    leakage: float | None = None
    """Accuracy that neutral words add through what they activate."""
    shifts: float | None = None
    """Words per text that are not at their default."""
    negated_positive: float | None = None
    """Share of sentences such as "not good" that are right; None but for sentiment."""
    negated_negative: float | None = None
    independence: float | None = None
    """Change in the other words' contributions when one is masked, per contribution that it carried."""
    circuit: float | None = None
    """Share of texts whose label stays the same with the strongest tenth of their words alone; None if not measured."""
    random_circuit: float | None = None
    """The same with as many random words."""
    seconds: float
    """Time to train, all seeds together."""
    peak_megabytes: float | None = None
    """Memory that the run of a seed took at its peak, the most of all seeds; None if not measured."""
    texts: int
    """Test texts."""
    folder: str
    """Where the runs are, from the folder of all experiments."""


def percent(share: float | None) -> str:
    """A share for people; a share over nothing is a dash. Example: `0.8125 -> 81.2%`"""
    return "–" if share is None else f"{share:.1%}"


def presence_beside_chance(figures: RunFigures) -> str:
    """Example: `0.87 (0.51)`; a dash where no word could be tried."""
    if figures.presence is None:
        return "–"
    shuffled = figures.presence_shuffled
    return f"{figures.presence:.2f}" + ("" if shuffled is None else f" ({shuffled:.2f})")


CONTEXT_COLUMNS = ("context-free", "leakage", "shifts", "negation", "independence")


def context_cells(figures: RunFigures) -> tuple[str, ...]:
    """The context measures in the order of `CONTEXT_COLUMNS`. Example: `75.8%, 14.9, 12.1, 77% / 6%, 0.73`"""
    leakage, shifts, independence = figures.leakage, figures.shifts, figures.independence
    negation = [figures.negated_positive, figures.negated_negative]
    return (
        percent(figures.context_free),
        "–" if leakage is None else f"{100 * leakage:.1f}",
        "–" if shifts is None else f"{shifts:.1f}",
        "–" if None in negation else " / ".join(f"{share:.0%}" for share in negation),
        "–" if independence is None else f"{independence:.2f}",
    )


def percent_over_seeds(figures: RunFigures, name: str) -> str:
    """A share of that name with its interval over seeds, where there is one. Example: `81.2% (80.1% to 82.3%)`"""
    share, low, high = (getattr(figures, f"{name}{end}") for end in ("", "_low", "_high"))
    return percent(share) if low is None else f"{percent(share)} ({percent(low)} to {percent(high)})"
