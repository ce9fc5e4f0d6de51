"""What changed between the rows to compare with and the audited ones, with the rate of false findings controlled.

1. Shares: of the texts that are decided for each class, of each warning, and of a class's texts that list a word.
2. Contributions: of a word in a class where it is listed, the share above its mean over both sides. The mean does not
   depend on the sides, so that the test is as exact as that of a share; a test of means would not be, for many words
   have the same contribution in nearly every text.

Each is Fisher's exact test (`chance_of_split`), and Benjamini-Yekutieli keeps the expected share of false ones among
all that are named at most at `level`, however the tests depend on each other. The tests take texts for independent:
copies of one text are not.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray
from scipy.stats import false_discovery_control

from lexical_sae.scale.audit.figures import chance_of_split, word_figures
from lexical_sae.scale.audit.scored import Scored
from lexical_sae.scale.audit.words import Columns

REFERENCE = "Benjamini and Yekutieli 2001, The Annals of Statistics 29(4)"
LEAST = 10
"""Rows of both sides together that must list a word, or have a warning, for a test."""


@dataclass(frozen=True)
class Drift:
    """Both sides beside each other."""

    before: int
    """Texts to compare with."""
    after: int
    shares: Columns
    """Of classes and warnings: `kind`, `name`, `before`, `after`, `p_value`, `q_value`, `is_found`."""
    words: Columns
    """Of each class and word: shares, means and contributions per text of both sides, and both tests."""
    tests: int

    @property
    def found(self) -> int:
        """How many classes, warnings and words have changed."""
        return int(self.shares["is_found"].sum() + self.words["is_found"].sum())


def drift(scored: Scored, level: float) -> Drift:
    """What changed; needs `count_words`."""
    totals = dict(scored.rows("select is_after, sum(texts)::bigint from counts where is_after is not null group by 1"))
    before, after = totals.get(False, 0), totals.get(True, 0)
    shares, words = _shares(scored), _words(scored)
    listed, texts = words["now"] + words["then"], words["texts_now"] + words["texts_then"]
    every, now = (np.full(len(shares["name"]), count) for count in (before + after, after))
    p_values = [
        chance_of_split(shares["after"], shares["after"] + shares["before"], now, every),
        chance_of_split(words["now"], listed, words["texts_now"], texts),
        chance_of_split(words["above_now"], words["above"], words["now"], listed),
    ]
    q_values = _adjusted(p_values)
    of_shares = {
        **{name: shares[name] for name in ("kind", "name")},
        "before": shares["before"] / max(1, before), "after": shares["after"] / max(1, after),
        "p_value": p_values[0], "q_value": q_values[0], "is_found": q_values[0] <= level,
    }  # fmt: skip
    of_words = {**_sides(words), **_tested(p_values[1:], q_values[1:], level)}
    order = np.lexsort((-np.abs(of_words["change"]), ~of_words["is_found"]))
    ordered = {name: values[order] for name, values in of_words.items()}
    return Drift(before, after, of_shares, ordered, sum(map(len, p_values)))


def _adjusted(p_values: list[ndarray]) -> list[ndarray]:
    """The smallest level at which each is named, of all tests together."""
    every = np.concatenate(p_values)
    q_values = false_discovery_control(every, method="by") if len(every) else every
    return np.split(q_values, np.cumsum([len(each) for each in p_values])[:-1])


def _shares(scored: Scored) -> dict[str, Any]:
    """How many texts of each side have each decision and each warning."""
    return scored.table(
        f"""
        select kind, name, sum(is_after::int)::bigint as after, sum((not is_after)::int)::bigint as before from (
            select is_after, 'class' as kind, prediction as name from rows where is_after is not null
            union all
            select is_after, 'warning', unnest(list_distinct(warnings)) from rows where is_after is not null
        ) group by all having count(*) >= {LEAST} order by kind, name
        """
    )


def _words(scored: Scored) -> dict[str, Any]:
    """Of every class and word that enough rows list: counts and sums on both sides."""
    scored.db.execute(
        f"""
        create temp table compared as
        select prediction, word,
            coalesce(sum(listed) filter (is_after), 0)::bigint as now,
            coalesce(sum(listed) filter (not is_after), 0)::bigint as then,
            coalesce(sum(total) filter (is_after), 0) as total_now,
            coalesce(sum(total) filter (not is_after), 0) as total_then,
            coalesce(sum(squares) filter (is_after), 0) as squares_now,
            coalesce(sum(squares) filter (not is_after), 0) as squares_then,
            sum(total) / sum(listed) as middle
        from cells group by all having sum(listed) >= {LEAST}
        """
    )
    return scored.table(
        """
        with above as (
            select each_word.prediction, w.word as word, count(*) as above, count(*) filter (is_after) as above_now
            from (select is_after, prediction, unnest(words) as w from rows where is_after is not null) as each_word
            join compared on compared.prediction = each_word.prediction and compared.word = w.word
            where w.contribution > middle group by all
        ),
        sides as (
            select prediction, coalesce(sum(texts) filter (is_after), 0)::bigint as texts_now,
                coalesce(sum(texts) filter (not is_after), 0)::bigint as texts_then
            from counts where is_after is not null group by all
        )
        select compared.*, texts_now, texts_then, coalesce(above, 0) as above, coalesce(above_now, 0) as above_now
        from compared join sides using (prediction) left join above using (prediction, word)
        order by prediction, word
        """
    )


def _sides(words: dict[str, Any]) -> Columns:
    """The words with shares, means and contributions per text on both sides."""
    then, now = (
        word_figures(*(words[f"{name}_{side}"] if name else words[side] for name in ("", "texts", "total", "squares")))
        for side in ("then", "now")
    )
    found = {"prediction": words["prediction"], "word": words["word"]}
    for name in ("listed", "share", "mean", "per_text"):
        found |= {f"{name}_before": then[name], f"{name}_after": now[name]}
    return {**found, "change": np.nan_to_num(now["per_text"]) - np.nan_to_num(then["per_text"])}


def _tested(p_values: list[ndarray], q_values: list[ndarray], level: float) -> Columns:
    found: Columns = {}
    for name, p, q in zip(("share", "mean"), p_values, q_values, strict=True):
        found |= {f"{name}_p_value": p, f"{name}_q_value": q}
    return {**found, "is_found": np.minimum(*q_values) <= level}
