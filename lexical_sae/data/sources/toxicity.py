"""Folder layouts of the toxicity sets, each with the identities its texts mention."""

import ast
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lexical_sae.data.rows import as_float
from lexical_sae.data.sources.layouts import Tables, find_file, find_optional, one_hot
from lexical_sae.data.tables.columns import IDENTITY_PREFIX
from lexical_sae.data.tables.decoding import read_text
from lexical_sae.data.tables.formats import read_table
from lexical_sae.data.tables.table import Table, list_places, quoted
from lexical_sae.utils.errors import DataError

CIVIL_IDENTITIES = (
    "male",
    "female",
    "transgender",
    "other_gender",
    "heterosexual",
    "homosexual_gay_or_lesbian",
    "bisexual",
    "other_sexual_orientation",
    "christian",
    "jewish",
    "muslim",
    "hindu",
    "buddhist",
    "atheist",
    "other_religion",
    "black",
    "white",
    "asian",
    "latino",
    "other_race_or_ethnicity",
    "physical_disability",
    "intellectual_or_learning_disability",
    "psychiatric_or_mental_illness",
    "other_disability",
)
TOXIGEN_THRESHOLD = 3.0
"""Mean human rating on the 1-5 scale above which a text counts as toxic: the middle of the scale."""
HATEXPLAIN_LABELS = ("normal", "offensive", "hatespeech")


def open_civilcomments(folder: Path) -> Tables:
    """The Jigsaw CSVs: one file with a `split` column, or `train.csv` and the expanded public and private tests."""
    if whole := find_optional(folder, "all_data_with_identities.csv", "all_data.csv"):
        return _by_split_column(read_table(whole))
    train = read_table(find_file(folder, "train.csv"))
    public = find_optional(folder, "test_public_expanded.csv")
    private = find_optional(folder, "test_private_expanded.csv")
    if public and private:
        return Tables(
            train, read_table(public), read_table(private), ("the public test validates, the private one tests",)
        )
    test = public or private or find_optional(folder, "test.csv")
    return Tables(train, test=read_table(test) if test else None)


def _by_split_column(table: Table) -> Tables:
    rows: dict[str, list[int]] = {"train": [], "val": [], "test": []}
    for i, split in enumerate(table.column("split")):
        if split not in rows:
            raise DataError(f"{table.place(i)}: split {split!r:.60} is unknown; known are {', '.join(rows)}")
        rows[str(split)].append(i)
    if not rows["train"]:
        raise DataError(f"{table.source} has no row with split 'train'")
    train, validation, test = (table.take(chosen) if chosen else None for chosen in rows.values())
    assert train is not None
    return Tables(train, validation, test)


def prepare_civilcomments(table: Table) -> Table:
    """Toxicity of at least one half is positive; all 24 identity columns must be there, blanks stay unknown."""
    score = table.column("toxicity" if "toxicity" in table.columns else "target")
    labels = ["1" if as_float(value, table, i) >= 0.5 else "0" for i, value in enumerate(score)]
    missing = [name for name in CIVIL_IDENTITIES if name not in table.columns]
    if missing:
        raise DataError(
            f"{table.source} lacks {len(missing)} of the 24 identity columns ({', '.join(missing[:3])}, ...): a bias "
            f"audit is not possible. Columns seen: {quoted(table.columns)}. Use the Jigsaw CSV with identities"
        )
    identities = {f"{IDENTITY_PREFIX}{name}": table.column(name) for name in CIVIL_IDENTITIES}
    return Table(
        table.source,
        {"text": table.column("comment_text"), "label": labels, **identities},
        table.numbers,
        table.is_file,
    )


def open_toxigen(folder: Path) -> Tables:
    """`toxigen.csv`, or the official `annotated_train.csv` with or without `annotated_test.csv`."""
    test = find_optional(folder, "annotated_test.csv")
    train = read_table(find_file(folder, "annotated_train.csv", "toxigen.csv"))
    return Tables(train, test=read_table(test) if test else None)


def prepare_toxigen(table: Table) -> Table:
    """Human toxicity above `TOXIGEN_THRESHOLD` is positive; the target group is one identity out of 13."""
    ratings = [as_float(value, table, i) for i, value in enumerate(table.column("toxicity_human"))]
    labels = ["1" if rating > TOXIGEN_THRESHOLD else "0" for rating in ratings]
    texts = [_decode_bytes_literal(str(text)) for text in table.column("text")]
    groups = [str(group) for group in table.column("target_group")]
    return Table(table.source, {"text": texts, "label": labels, **one_hot(groups)}, table.numbers, table.is_file)


def _decode_bytes_literal(text: str) -> str:
    """The text behind a printed Python bytes object; any other text is itself.

    Example: "b'it\\\\'s'" -> "it's"
    """
    if text[:2] not in ("b'", 'b"'):
        return text
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else text


def open_hatexplain(folder: Path) -> Tables:
    """The official `dataset.json` with `post_id_divisions.json`, or `text_label_{train,val,test}.json`.

    The label is the majority of three annotators; posts without one are left out, as in the paper. With
    `text_split_label_target.json` beside the second layout, the target group comes along as an identity.
    """
    if official := find_optional(folder, "dataset.json"):
        return _open_hatexplain_official(
            _json(official), _json(find_file(folder, "post_id_divisions.json")), str(official)
        )
    target_file = find_optional(folder, "text_split_label_target.json")
    targets = {post["text"]: post["domain"] for post in _json(target_file)} if target_file else {}
    domains = sorted(set(targets.values()) - {"None"})
    tables = []
    for name in ("train", "val", "test"):
        path = find_file(folder, f"text_label_{name}.json")
        texts, labels = zip(*_json(path), strict=True)
        identities = {f"{IDENTITY_PREFIX}{d}": [float(targets.get(t) == d) for t in texts] for d in domains}
        tables.append(
            Table(str(path), {"text": texts, "label": labels, **identities}, range(len(texts)), is_file=False)
        )
    return Tables(*tables)


def _open_hatexplain_official(posts: Mapping[str, Any], divisions: Mapping[str, Any], source: str) -> Tables:
    targets = sorted({t for post in posts.values() for a in post["annotators"] for t in a["target"]} - {"None"})
    tables, ties = [], []
    for name in ("train", "val", "test"):
        columns: dict[str, list[object]] = {"text": [], "label": []} | {f"{IDENTITY_PREFIX}{t}": [] for t in targets}
        for post_id in divisions[name]:
            annotators = posts[post_id]["annotators"]
            label, votes = Counter(a["label"] for a in annotators).most_common(1)[0]
            if 2 * votes <= len(annotators):
                ties.append(post_id)
                continue
            columns["text"].append(" ".join(posts[post_id]["post_tokens"]))
            columns["label"].append(label)
            for target in targets:
                share = sum(target in a["target"] for a in annotators) / len(annotators)
                columns[f"{IDENTITY_PREFIX}{target}"].append(share)
        tables.append(Table(f"{source} ({name})", columns, range(len(columns["text"])), is_file=False))
    notes = (
        (f"left out {len(ties)} posts without a majority label: {list_places([repr(post_id) for post_id in ties])}",)
        if ties
        else ()
    )
    return Tables(*tables, notes=notes)


def _json(path: Path) -> Any:
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno} is not JSON ({error.msg}); fetch the file again") from error
