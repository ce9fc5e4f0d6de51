"""Given labels that are probably wrong: the model is sure of another class, and the words say why.

A row is suspected if the model's class is at least as probable as it is, on average, for rows labelled with it
(confident learning, Northcutt et al. 2021). A model that was trained on these very labels has learnt some of the wrong
ones, and finds fewer: `lexical-sae audit-labels` trains models that never saw them.
"""

from dataclasses import dataclass

from lexical_sae.scale.audit.scored import Scored

REFERENCE = "Northcutt et al. 2021, arXiv:1911.00068"
MOST_ROWS, MOST_WORDS = 1000, 5
"""Rows that are listed, and words of each."""


@dataclass(frozen=True)
class Suspect:
    """A row whose label is doubted."""

    row_id: int
    source: str
    source_row: int
    label: str
    prediction: str
    probability_of_label: float
    probability: float
    words: tuple[tuple[str, float], ...]
    """The words that contribute most to the prediction."""


@dataclass(frozen=True)
class Labels:
    """What is found of the audited rows that have a label."""

    labelled: int
    unknown: int
    """Rows whose label the model does not have; they are not judged."""
    disagree: int
    """Rows with another prediction than label."""
    pairs: tuple[tuple[str, str, int], ...]
    """Label, prediction and number of suspected rows, the most frequent first."""
    rows: tuple[Suspect, ...]
    """The most doubtful ones, first those whose label is least probable."""

    @property
    def known(self) -> int:
        """Rows whose label can be judged."""
        return self.labelled - self.unknown

    @property
    def suspected(self) -> int:
        return sum(count for _, _, count in self.pairs)


def suspected_labels(scored: Scored) -> Labels | None:
    """The rows whose labels are doubted; None where no row has a label."""
    scored.db.execute("create temp table classes (name varchar, place integer)")
    scored.db.executemany("insert into classes values (?, ?)", [[n, i] for i, n in enumerate(scored.about.labels, 1)])
    labelled, unknown, disagree = scored.rows(
        """
        select count(*), count(*) filter (name is null), count(*) filter (name is not null and label != prediction)
        from rows left join classes on name = label where is_after and label is not null
        """
    )[0]
    if not labelled:
        return None
    scored.db.execute(
        """
        create temp table suspects as
        with given as (
            select row_id, label, prediction, probability, probabilities[place] as own
            from rows join classes on name = label where is_after
        ),
        usual as (select label as prediction, avg(own) as usual from given group by all)
        select row_id, label, prediction, own from given join usual using (prediction)
        where label != prediction and probability >= usual
        """
    )
    pairs = scored.rows("select label, prediction, count(*) as n from suspects group by all order by n desc, 1, 2")
    found = scored.rows(
        f"""
        with worst as (select row_id, own from suspects order by own, row_id limit {MOST_ROWS})
        select row_id, source, source_row, label, prediction, worst.own, probability, words
        from rows join worst using (row_id) where is_after order by worst.own, row_id
        """
    )
    listed = tuple(Suspect(*row[:-1], words=_reasons(row[-1])) for row in found)
    return Labels(labelled, unknown, disagree, tuple(pairs), listed)


def _reasons(words: list[dict]) -> tuple[tuple[str, float], ...]:
    for_it = sorted((w for w in words if w["contribution"] > 0), key=lambda w: -w["contribution"])
    return tuple((w["word"], w["contribution"]) for w in for_it[:MOST_WORDS])
