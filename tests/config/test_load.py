import pytest
import yaml

from lexical_sae.config.load import build_config, load_config, merge, parse_config
from lexical_sae.config.schema import ExperimentConfig
from lexical_sae.recipes import RECIPES, recipe_by_name

PROMISED = """
experiment_name: "paper_imdb"
output_dir: "results/paper/imdb"
recipe: cajt
seed: 7
data:
  dataset_name: "imdb"
  train_samples: -1
  test_samples: 500
model:
  name: "answerdotai/ModernBERT-base"
vpe:
  enabled: true
  token_ids: [2924, 2143]
  num_senses: 3
training:
  pooling: "attention"
  target_accuracy: 0.9
  sparsity_target: 0.2
  warmup_fraction: 0.3
  batch_size: null
  gradient_accumulation_steps: 4
  learning_rate: 3.0e-4
mechanistic:
  circuit_fraction: 0.25
  sae_comparison: true
"""


def test_the_promised_keys_load():
    config = parse_config(PROMISED)
    assert config.experiment_name == "paper_imdb"
    assert config.output_dir == "results/paper/imdb"
    assert config.evaluation.seeds == (7,)
    assert (config.data.dataset_name, config.data.train_samples, config.data.test_samples) == ("imdb", -1, 500)
    assert config.model.name == "answerdotai/ModernBERT-base"
    assert config.model.pool.kind == "attention"
    assert config.model.expander is not None
    assert config.model.expander.token_ids == (2924, 2143)
    assert config.model.expander.num_senses == 3
    training = config.training
    assert (training.target_accuracy, training.sparsity_target, training.warmup_fraction) == (0.9, 0.2, 0.3)
    assert (training.batch_size, training.gradient_accumulation_steps, training.learning_rate) == (None, 4, 3e-4)
    assert (config.mechanistic.circuit_fraction, config.mechanistic.sae_comparison) == (0.25, True)
    several = parse_config(PROMISED.replace("seed: 7", "evaluation: {seeds: [7, 8]}"))
    assert several.evaluation.seeds == (7, 8)


def test_an_empty_file_is_the_default_recipe():
    config = parse_config("")
    assert config.recipe == "anchored"
    assert config.model == recipe_by_name("anchored").model


def test_a_task_may_have_a_default_recipe_of_its_own(tmp_path):
    assert parse_config("", default_recipe="neighbours") == build_config({"recipe": "neighbours"})
    path = tmp_path / "named.yaml"
    path.write_text("recipe: cis\n")
    assert load_config(path, default_recipe="neighbours").recipe == "cis", "what the file says comes first"


@pytest.mark.parametrize("unknown_then", [(), ("literal", "context")], ids=["null", "absent"])
def test_the_settings_of_a_run_from_when_neighbours_was_called_anchored_load(unknown_then):
    """Every part is in `resolved_config.yaml`, less those that its version did not know."""
    saved = build_config({"recipe": "neighbours", "seed": 3}).model_dump(mode="json")
    old = {**saved, "recipe": "anchored", "model": {k: v for k, v in saved["model"].items() if k not in unknown_then}}
    assert build_config(old).model_dump(mode="json") == saved
    by_hand = "recipe: anchored\nmodel: {neighbourhood: {words_per_token: 8}}"
    with pytest.raises(ValueError, match="neither neighbourhood nor vpe nor shapes.*recipe: neighbours"):
        parse_config(by_hand)


@pytest.mark.parametrize("name", RECIPES)
def test_a_resolved_config_loads_back_as_itself(name):
    vpe = {} if name == "anchored" else {"vpe": {"enabled": True, "token_ids": [7]}}
    config = build_config({"recipe": name, "seed": 3, **vpe})
    again = parse_config(yaml.safe_dump(config.model_dump(mode="json")))
    assert again == config


def test_a_seed_list_makes_several_runs():
    assert parse_config("evaluation: {seeds: [1, 2, 3]}").evaluation.seeds == (1, 2, 3)


def test_recipes_fix_the_parts_of_their_generation():
    parts = {name: recipe_by_name(name).model for name in RECIPES}
    gates = {name: model.gate.kind for name, model in parts.items()}
    saturations = {name: model.saturation.kind for name, model in parts.items()}
    assert gates == {
        "neighbours": "jumprelu",
        "cajt": "jumprelu",
        "cis": "drelu",
        "lexical_sae": "drelu",
        "transcoder": "gated_jumprelu",
        "anchored": "presence",
    }
    assert saturations == {
        "neighbours": "log1p",
        "cajt": "identity",
        "cis": "log1p",
        "lexical_sae": "log1p",
        "transcoder": "identity",
        "anchored": "identity",
    }
    assert parts["neighbours"].masking is not None


def test_cajt_learns_at_its_rate_with_a_tenth_of_it_as_decay():
    training = recipe_by_name("cajt").training
    assert training.learning_rate == 3e-4
    assert training.optimizer.model_dump()["relative_weight_decay"] == 0.1


def test_an_override_of_the_same_kind_keeps_the_recipes_other_fields():
    gate = parse_config("recipe: cajt\nmodel: {gate: {bandwidth: 0.4}}").model.gate
    assert gate.bandwidth == 0.4
    assert gate.offset is True


def test_a_bare_kind_that_is_the_recipes_keeps_the_recipes_fields():
    parts = "training: {optimiser: adamw, controller: relative_geco}\nmodel: {gate: jumprelu}"
    training = parse_config(f"recipe: neighbours\n{parts}")
    assert training == parse_config("recipe: neighbours")
    assert training.training.optimizer.model_dump()["schedule"] == "linear"
    assert merge({"a": {"kind": "x", "p": 1}, "b": "x"}, {"a": "x", "b": "y"}) == {"a": {"kind": "x", "p": 1}, "b": "y"}
    assert merge({"a": {"p": 1}}, {"a": "x"}) == {"a": "x"}, "a section without kinds has no short form"


def test_a_part_of_another_kind_replaces_the_recipes_part_whole():
    assert parse_config(
        "recipe: cajt\nmodel: {gate: drelu}\ntraining: {calibrated_start: null}"
    ).model.gate.model_dump() == {
        "kind": "drelu",
        "initial_threshold": 0.0,
        "offset": False,
    }
    assert merge({"a": {"kind": "x", "p": 1}}, {"a": {"kind": "y"}}) == {"a": {"kind": "y"}}
    assert merge({"a": {"kind": "x", "p": 1}}, {"a": {"q": 2}}) == {"a": {"kind": "x", "p": 1, "q": 2}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: {gat: drelu}", r"model\.gat is unknown; did you mean 'gate'\? Known keys: .* \(here\.yaml\)"),
        ("model: {gate: {kind: drelu, offst: true}}", r"model\.gate\.offst is unknown; did you mean 'offset'\?"),
        ("data: {dataset: imdb}", r"data\.dataset is unknown; did you mean 'dataset_name'\?"),
        ("vpe: {enabld: true}", r"vpe\.enabld is unknown; did you mean 'enabled'\?"),
        ("sead: 3", r"sead is unknown; did you mean"),
        ("model: {pool: mean}", r"model\.pool\.kind 'mean' is unknown; choose from 'max', 'attention'"),
        ("recipe: anchord", r"recipe 'anchord' is unknown; did you mean 'anchored'\?"),
        ("model: {max_length: long}", r"model\.max_length is 'long': .*integer"),
        ("model: 3", r"model is 3"),
        ("data: reviews.csv", r"data is 'reviews\.csv': .* section .*, as in data: \{dataset_name: reviews\.csv\}"),
        ("model: bundled:minilm", r"model is .* section .*, as in model: \{name: 'bundled:minilm'\}"),
        ("vpe: true", r"vpe is True: .* section .*, as in vpe: \{enabled: true\}"),
        ("data: [1]", r"data is \[1\]: .* section .*, as in data: \{dataset_name: movie_snippets\}"),
        ("training: 3", r"training is 3: .* section .*, as in training: \{batch_size: 3\}"),
        ("model: {gate: 3}", r"model\.gate is 3: .* section .*, as in model\.gate: \{kind: drelu\}"),
        ("variants: {small: 3}", r"variants\.small is 3: .* section .*, as in variants\.small: \{key: value\}"),
        ("evaluation: {seeds: 3}", r"evaluation\.seeds is 3: it is a list, as in evaluation\.seeds: \[3\]"),
        ("datasets:", r"datasets is None: it is a list, as in datasets: \[\]"),
        ("seed: [0, 1]", r"seed is one number; several seeds go to evaluation\.seeds: \[0, 1\] \(here\.yaml\)"),
        (
            "training: {objective: {terms: [{kind: gate_l0, weigth: 1}]}}",
            r"training\.objective\.terms\.0\.weigth is unknown; did you mean 'weight'\?",
        ),
        ("data: {train_samples: -2}", r"data\.train_samples is -2"),
        ("- a list", "an experiment is a mapping"),
        ("model: [", "not valid YAML"),
        ("seed: 1\nseed: 2", "'seed' is given twice"),
        ("1: 2", "key 1 is not a name"),
        ("x: !!python/object/apply:os.system ['true']", "not valid YAML"),
        ("seed: 1\nevaluation: {seeds: [2]}", "seed and evaluation.seeds are both given and differ"),
        ("seed: many", r"evaluation\.seeds\.0 is 'many'"),
        ("training: {pooling: max}\nmodel: {pool: attention}", "both given and differ"),
        ("vpe: {enabled: true}", "vpe.token_ids is empty"),
        ("recipe: cajt\nvpe: {enabled: true, token_ids: [1, 1]}", "twice"),
        ("vpe: {enabled: true, token_ids: [1]}", "literal words are not; set recipe: neighbours"),
        ("evaluation: {seeds: [1, 1]}", "names a seed twice"),
        ("evaluation: {seeds: []}", r"evaluation\.seeds is \[\]: give at least 1"),
        ("seed: -1", r"evaluation\.seeds\.0 is -1"),
        ("seed: true", r"evaluation\.seeds\.0 is True"),
        ("data: {train_samples: yes}", r"data\.train_samples is True"),
        ("model: {max_length: '64'}", r"model\.max_length is '64'"),
        ("model: {gate: {kind: drelu, initial_threshold: .nan}}", r"initial_threshold .*finite"),
        ("recipe: [anchored]", "recipe .* is unknown"),
        ("training: {max_epoch: 3}", r"training\.max_epoch is unknown; did you mean 'max_epochs'"),
        ("a: &x [1]\nb: *x", "aliases are not allowed"),
        ("model: " + "[" * 3000, "nested too deeply"),
        (
            "recipe: cajt\ntraining: {objective: {terms: [completeness_kl, {kind: gate_l0, weight: 0.5}]}}",
            r"training\.objective is .*: balance 'sum' takes no weights, got \[1\.0, 0\.5\]; use balance 'weighted'",
        ),
        (
            "recipe: neighbours\nmodel: {gate: drelu}",
            r"^training\.calibrated_start 1\.0 shifts .* model\.gate 'drelu' has none; "
            r"set model\.gate: \{kind: drelu, offset: true\}, or training\.calibrated_start: null \(here\.yaml\)",
        ),
    ],
)
def test_a_slip_is_refused_with_place_and_remedy(text, message):
    with pytest.raises(ValueError, match=message):
        parse_config(text, "here.yaml")


@pytest.mark.parametrize("text", ["seed: many", "seed:", "evaluation: {seeds: [a]}"])
def test_a_slip_is_told_once(text):
    with pytest.raises(ValueError, match=r"evaluation\.seeds\.0 is") as caught:
        parse_config(text)
    assert "\n" not in str(caught.value)


def test_two_slips_are_both_told():
    with pytest.raises(ValueError, match=r"data is 3.*\n.*seeds\.1 is 'a'"):
        parse_config("data: 3\nevaluation: {seeds: [0, a]}")


@pytest.mark.parametrize("section", ["data", "evaluation", "mechanistic", "model", "training", "variants", "vpe"])
def test_an_empty_section_is_one_that_was_left_out(section):
    assert parse_config(f"{section}:") == parse_config("")


def test_an_empty_variant_changes_nothing():
    assert parse_config("variants: {as_it_is: }").variants == {"as_it_is": {}}


def test_null_still_takes_a_part_out():
    assert parse_config("recipe: neighbours").model.masking is not None
    assert parse_config("recipe: neighbours\nmodel: {masking: }").model.masking is None


def test_numbers_in_scientific_notation_are_numbers():
    assert parse_config("recipe: cajt\nmodel: {gate: {bandwidth: 3e-4}}").model.gate.bandwidth == pytest.approx(0.0003)


def test_a_huge_value_is_shown_shortened():
    with pytest.raises(ValueError, match="seeds") as caught:
        parse_config("seed: '" + "x" * 100_000 + "'")
    assert len(str(caught.value)) < 500


def test_missing_and_undecodable_files_are_named(tmp_path):
    with pytest.raises(ValueError, match="there is no experiment file"):
        load_config(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes("experiment_name: größe".encode("latin-1"))
    with pytest.raises(ValueError, match=r"cannot read.*latin\.yaml"):
        load_config(tmp_path / "latin.yaml")


def test_byte_order_mark_and_path_with_spaces_are_fine(tmp_path):
    path = tmp_path / "my experiment.yaml"
    path.write_text("recipe: cis\n", encoding="utf-8-sig")
    assert load_config(path).recipe == "cis"


def test_every_key_is_documented():
    undocumented = []

    def walk(model, prefix):
        for name, field in model.model_fields.items():
            if name != "kind" and not field.description:
                undocumented.append(f"{prefix}{name}")
            for inner in _models(field.annotation):
                walk(inner, f"{prefix}{name}.")

    walk(ExperimentConfig, "")
    assert undocumented == []


def _models(annotation):
    from typing import get_args

    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models(argument)]


def test_keys_of_earlier_versions_still_open():
    earlier = {"recipe": "cajt", "training": {"optimiser": {"kind": "adamw"}, "tutor": {"weight": 2.0}}}
    now = {"recipe": "cajt", "training": {"optimizer": {"kind": "adamw"}, "auxiliary": {"weight": 2.0}}}
    assert build_config(earlier) == build_config(now) != build_config({"recipe": "cajt"})
