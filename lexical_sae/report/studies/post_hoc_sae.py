"""The comparison of words with post-hoc features, for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from lexical_sae.report.interval_text import NOT_MEASURED, number_text, share_text
from lexical_sae.report.tables import FigureTable, TablesPage

LIMITS = (
    "All figures are on test texts; dictionaries, decoders and probes were fitted on train texts. Autoencoders were "
    "asked for as many active features as the lexical model has active words on the texts they are fitted on; where "
    "test texts are longer or shorter than these, the numbers of active features differ.",
    "Words have no decoder back to the hidden state: their reconstruction is that of ridge regression. A feature of an "
    "autoencoder has no name; what it stands for has to be guessed from texts, and that is not measured here.",
    "The probe's decisions on words are not the model's own, which are in the last table. Intervals are over test "
    "texts, not over training runs.",
)


def sae_page(results: Mapping[str, Any]) -> TablesPage:
    """Everything that `sae.json` holds."""
    codes, own = results["codes"], results["model"]
    counts = [flips["features"] for flips in codes[0]["flips"]]
    rows = [
        (
            code["name"],
            share_text(code["reconstruction"]),
            number_text(code["active"], 1),
            f"{code['features_used']:,} of {code['features']:,}",
            share_text(code["accuracy"]),
            *_cost_cells(results.get("fitting", {}).get(code["name"], {})),
        )
        for code in codes
    ]
    read = share_text(results["dense"])
    rows.append(("hidden state itself", "100.0%", str(results["width"]), NOT_MEASURED, read, *_cost_cells({})))
    removals = [(code["name"], share_text(code["top_effect"]), *_flip_cells(code["flips"])) for code in codes]
    headings = [heading for n in counts for heading in (f"top {n}", f"random {n}")]
    return TablesPage(
        title="Words and post-hoc features",
        summary=[
            f"On {results['test_texts']} test texts; fitted on {results['train_texts']} train texts, "
            f"{results['state']} state of the encoder, {results['width']} wide."
        ],
        tables=[
            FigureTable(
                "What the codes hold",
                (
                    "code",
                    "variance rebuilt",
                    "active per text",
                    "features used",
                    "probe accuracy",
                    "seconds",
                    "peak MB",
                ),
                rows,
                "A linear probe reads the label from each code; on the hidden state it shows what there is to read. "
                "Seconds and memory are those of fitting the dictionary.",
            ),
            FigureTable(
                "What removing features does to the probe's decision",
                ("code", "probability lost, top 1", *headings),
                removals,
                "Labels that change without the top-attributed features, and without as many sampled at random.",
            ),
            FigureTable(
                "The lexical model's own decision without its top words",
                ("words removed", "labels changed", "random words"),
                [
                    (str(rate["words"]), share_text(rate["orders"]["direct"]), share_text(rate["orders"]["random"]))
                    for rate in own["removed"]
                ],
            ),
        ],
        limits=LIMITS,
    )


def _cost_cells(cost: Mapping[str, Any]) -> tuple[str, str]:
    values = cost.get("seconds"), cost.get("peak_megabytes")
    seconds, megabytes = (NOT_MEASURED if value is None else f"{value:,.0f}" for value in values)
    return seconds, megabytes


def _flip_cells(flips: Sequence[Mapping[str, Any]]) -> list[str]:
    return [share_text(rate[order]) for rate in flips for order in ("strongest", "random")]
