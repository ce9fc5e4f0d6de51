"""What the texts are like: how they are decided and which of them are unusual, by group and over time."""

import numpy as np

from lexical_sae.scale.audit.figures import wilson
from lexical_sae.scale.audit.scored import Scored
from lexical_sae.scale.audit.words import Columns

ANY, CUT = "any", "cut"
"""Any warning; not read to the end."""


def decisions(scored: Scored, by: str, where: str) -> Columns:
    """The share of each class among the texts of each group (`by` is `grp`) or period."""
    found = scored.table(
        f"""
        with own as (select * from counts where {where}),
        cut as (select {by}, sum(texts)::bigint as texts from own group by all)
        select cut.{by}, prediction, coalesce(sum(own.texts), 0)::bigint as count, any_value(cut.texts) as texts
        from cut cross join (select distinct prediction from own) left join own using ({by}, prediction)
        group by all order by {by}, prediction
        """
    )
    return _with_limits(found, (by, "prediction"))


def unusual(scored: Scored, by: str, where: str) -> Columns:
    """The share of each warning among the texts of each group or period."""
    found = scored.table(
        f"""
        with flags as (
            select {by}, list_distinct(warnings) || case when len(warnings) > 0 then ['{ANY}'] else [] end
                || case when tokens_cut > 0 then ['{CUT}'] else [] end as kinds
            from rows where {where}
        ),
        cut as (select {by}, count(*) as texts from flags group by all),
        marks as (select {by}, unnest(kinds) as kind from flags)
        select cut.{by}, kind, count(marks.kind) as count, any_value(cut.texts) as texts
        from cut cross join (select distinct kind from marks) as known left join marks using ({by}, kind)
        group by all order by {by}, kind
        """
    )
    return _with_limits(found, (by, "kind"))


def _with_limits(found: Columns, names: tuple[str, str]) -> Columns:
    count, texts = np.asarray(found["count"]), np.asarray(found["texts"])
    low, high = wilson(count, texts)
    share = count / np.maximum(1, texts)
    return {
        **{name: found[name] for name in names},
        "count": count,
        "texts": texts,
        "share": share,
        "share_low": low,
        "share_high": high,
    }
