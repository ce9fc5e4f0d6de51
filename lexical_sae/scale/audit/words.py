"""The words that drive each class: of all rows, of each group, and of each period."""

from typing import Any

import numpy as np

from lexical_sae.scale.audit.figures import word_figures
from lexical_sae.scale.audit.scored import Scored

LEAST = 5
"""Texts that must list a word for it to be shown: of fewer, no interval says much."""
STRONGEST, IN_A_GROUP, OVER_TIME = 1000, 100, 10
"""Words of a class that are written, each way; of a class in a group; and of those that are followed over time."""

Columns = dict[str, Any]
"""Arrays of equal length by name: what a CSV holds."""


def count_words(scored: Scored) -> None:
    """Make the tables that the questions start from: `counts` of the rows, and `group_cells` and `cells`, which say how
    many rows list each word, with its sums."""
    scored.db.execute(
        """
        create temp table group_cells as
        select is_after, prediction, grp, w.word as word, count(*) as listed,
            sum(w.contribution::double) as total, sum(w.contribution::double * w.contribution) as squares
        from (select is_after, prediction, grp, unnest(words) as w from rows where is_after is not null)
        group by all
        """
    )
    scored.db.execute(
        """
        create temp table cells as
        select is_after, prediction, word, sum(listed)::bigint as listed, sum(total) as total, sum(squares) as squares
        from group_cells group by all
        """
    )
    scored.db.execute(
        """
        create temp table counts as
        select is_after, own, prediction, grp, period, count(*) as texts from rows group by all
        """
    )


def class_words(scored: Scored) -> Columns:
    """The words of each class that contribute most to it or against it, per text of the class, the strongest first."""
    found = scored.table(
        f"""
        select prediction, word, listed, texts, total, squares
        from cells join (select prediction, sum(texts)::bigint as texts from counts where is_after group by all)
            using (prediction)
        where is_after and listed >= {LEAST}
        qualify least(row_number() over (partition by prediction order by total desc, word),
                      row_number() over (partition by prediction order by total, word)) <= {STRONGEST}
        order by prediction, total desc, word
        """
    )
    return _with_figures(found, ("prediction", "word"))


def group_words(scored: Scored) -> Columns:
    """The same of each group; a word that is among the strongest of all is there for every group that lists it."""
    found = scored.table(
        f"""
        select prediction, grp, word, g.listed, texts, g.total, g.squares
        from group_cells g
        join (select prediction, grp, sum(texts)::bigint as texts from counts where is_after group by all)
            using (prediction, grp)
        left join ({_strongest(IN_A_GROUP)}) as strong using (prediction, word)
        where g.is_after and (g.listed >= {LEAST} or strong.rank is not null)
        qualify strong.rank is not null or
            least(row_number() over (partition by prediction, grp order by g.total desc, word),
                  row_number() over (partition by prediction, grp order by g.total, word)) <= {IN_A_GROUP}
        order by prediction, grp, g.total desc, word
        """
    )
    return _with_figures(found, ("prediction", "grp", "word"))


def words_over_time(scored: Scored) -> Columns:
    """The strongest words of each class, in every period of the whole table."""
    found = scored.table(
        f"""
        with strong as ({_strongest(OVER_TIME)}),
        spans as (
            select prediction, period, sum(texts)::bigint as texts from counts
            where own and period is not null group by all
        ),
        per as (
            select prediction, period, w.word as word, count(*) as listed,
                sum(w.contribution::double) as total, sum(w.contribution::double * w.contribution) as squares
            from (select prediction, period, unnest(words) as w from rows where own and period is not null) as each_word
            semi join strong on strong.prediction = each_word.prediction and strong.word = w.word
            group by all
        )
        select spans.prediction, spans.period, strong.word, strong.rank, coalesce(listed, 0) as listed, texts,
            coalesce(per.total, 0) as total, coalesce(squares, 0) as squares
        from spans join strong using (prediction) left join per using (prediction, period, word)
        order by prediction, rank, word, period
        """
    )
    return _with_figures(found, ("prediction", "period", "word", "rank"))


def _strongest(count: int) -> str:
    """Query of the words of each class that contribute most to it, with their ranks."""
    return f"""
        select prediction, word, row_number() over (partition by prediction order by total desc, word) as rank
        from cells where is_after and listed >= {LEAST} qualify rank <= {count}"""


def _with_figures(found: Columns, names: tuple[str, ...]) -> Columns:
    figures = word_figures(*(np.asarray(found[name]) for name in ("listed", "texts", "total", "squares")))
    return {**{name: found[name] for name in names}, **figures}
