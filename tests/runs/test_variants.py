import pytest

from lexical_sae.config.load import build_config
from lexical_sae.recipes import RECIPES
from lexical_sae.runs.comparing.variants import (
    bcos_heads,
    load_datasets,
    load_variants,
    other_recipes,
    term_ablations,
    with_changes,
)

TERMS = "training.objective.terms"
NEIGHBOURS = {"recipe": "neighbours"}
PLAIN = "experiment_name: films\noutput_dir: out\ndata: {dataset_name: sst2}\n"


def kinds(config) -> list[str]:
    return [term.kind for term in config.training.objective.terms]


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "films.yaml"
        path.write_text(PLAIN + text)
        return path

    return write


def variants_of(path, standard=term_ablations, **how):
    study = load_variants(path, standard, kind="ablation", **how)
    return study, {variant.name: variant.config for variant in study.variants}


def test_a_key_may_lead_through_a_list_or_to_a_part_that_is_off():
    config = build_config(NEIGHBOURS)
    assert with_changes(config, {f"{TERMS}.1.weight": 0.7}).training.objective.terms[1].weight == 0.7
    assert with_changes(config, {"training.target_accuracy": 0.9}).training.target_accuracy == 0.9


def test_parts_of_a_list_have_names_and_go_with_null():
    config = build_config(NEIGHBOURS)
    assert kinds(config) == ["own_words", "completeness_kl", "separation_contrastive"]
    assert kinds(with_changes(config, {f"{TERMS}.completeness_kl": None})) == ["own_words", "separation_contrastive"]
    replaced = with_changes(config, {f"{TERMS}.completeness_kl": "completeness_ce", f"{TERMS}.own_words.weight": 0.5})
    assert kinds(replaced) == ["own_words", "completeness_ce", "separation_contrastive"]
    assert replaced.training.objective.terms[0].weight == 0.5


def test_short_names_are_changed_as_what_they_stand_for():
    config = build_config(NEIGHBOURS)
    assert with_changes(config, {"training.pooling": "attention"}).model.pool.kind == "attention"
    assert with_changes(config, {"training.pooling.kind": "attention"}).model.pool.kind == "attention"
    assert with_changes(config, {"seed": 7}).evaluation.seeds == (7,)
    with pytest.raises(ValueError, match="evaluation.seeds is given twice"):
        with_changes(config, {"seed": 1, "evaluation.seeds": [2, 3]})
    with pytest.raises(ValueError, match="seed is one number; several seeds go to evaluation.seeds"):
        with_changes(config, {"seed": [1, 2]})


def test_another_kind_leaves_the_fields_of_the_first_behind_and_the_same_keeps_them():
    training = {"optimizer": {"kind": "adamw", "weight_decay": 0.5}, "calibrated_start": None}
    config = build_config({"recipe": "cajt", "training": training})
    assert config.model.gate.kind != "drelu"
    assert with_changes(config, {"model.gate.kind": "drelu"}).model.gate.kind == "drelu"
    assert with_changes(config, {"model.gate.kind": config.model.gate.kind}) == config
    for changes in (
        {"model.gate.offset": True, "model.gate.kind": "drelu"},
        {"model.gate": {"kind": "drelu", "offset": True}},
    ):
        assert with_changes(config, changes).model.gate.offset
    optimizer = with_changes(config, {"training.optimizer": {"kind": "adamw", "ema": 0.9}}).training.optimizer
    assert (optimizer.ema, optimizer.weight_decay) == (0.9, 0.5)


def test_a_term_of_another_kind_keeps_what_both_have():
    kl = f"{TERMS}.completeness_kl"
    changed = with_changes(build_config(NEIGHBOURS), {f"{kl}.weight": 5.0, f"{kl}.kind": "completeness_ce"})
    (term,) = (term for term in changed.training.objective.terms if term.kind == "completeness_ce")
    assert term.weight == 5.0


def test_sense_slots_follow_the_vpe_section():
    config = build_config({**NEIGHBOURS, "vpe": {"enabled": True, "token_ids": [2000], "num_senses": 2}})
    assert with_changes(config, {"vpe.num_senses": 5}).model.expander.num_senses == 5


def test_variants_change_what_they_say_and_nothing_else(written):
    path = written(
        "recipe: neighbours\ntraining: {max_epochs: 3}\n"
        f"variants: {{z last: {{{TERMS}: []}}, a gate: {{model.gate: {{kind: drelu, offset: true}}}}}}\n"
    )
    study, configs = variants_of(path)
    assert list(configs) == ["base", "z last", "a gate"], "in the order of the file"
    assert study.is_paired
    assert kinds(configs["z last"]) == []
    assert configs["a gate"].model.gate.kind == "drelu"
    assert [config.output_dir for config in configs.values()] == ["out/base", "out/z-last", "out/a-gate"]
    own = {"output_dir", "experiment_name"}
    base, other = (configs[name].model_dump(exclude=own) for name in ("base", "a gate"))
    assert base["training"]["max_epochs"] == 3
    other["model"]["gate"] = base["model"]["gate"]
    assert other == base
    assert not any(config.variants for config in configs.values())


def test_another_recipe_is_laid_under_the_file_not_over_it(written):
    path = written("training: {max_epochs: 3}\nvariants: {first: {recipe: cis, training.head_rate: 4.0}}\n")
    _, configs = variants_of(path)
    expected = build_config({"recipe": "cis", "training": {"max_epochs": 3, "head_rate": 4.0}})
    assert configs["first"].training == expected.training
    assert configs["first"].model == expected.model
    assert configs["first"].recipe == "cis"


def test_a_file_without_variants_gets_the_standard_ones_beside_its_run(written):
    study, configs = variants_of(written(""))
    assert study.config.output_dir == "out/ablation"
    assert configs["base"].output_dir == "out/ablation/base"
    assert variants_of(written(""), out="there")[1]["base"].output_dir == "there/base"
    assert variants_of(written("variants: {one: {}}\n"))[1]["one"].output_dir == "out/one"


def test_the_standard_ablation_of_literal_words_is_to_leave_context_out(written):
    _, configs = variants_of(written("recipe: anchored\n"))
    base, other = configs.pop("base"), configs.pop("without context")
    assert configs == {}
    assert base.model.context is not None
    assert other.model == base.model.model_copy(update={"context": None})


@pytest.mark.parametrize("recipe", sorted(set(RECIPES) - {"anchored"}))
def test_standard_ablations_take_out_each_term_and_try_each_gate_and_completeness(written, recipe):
    path = written(f"recipe: {recipe}\n")
    _, configs = variants_of(path)
    base = configs.pop("base")
    for term in kinds(base):
        assert kinds(configs.pop(f"without {term}")) == [kind for kind in kinds(base) if kind != term]
    assert kinds(configs.pop("nothing asked")) == []
    assert configs.pop("fixed weights").training.controller.clamp < 1e-5
    tried = {base.model.gate.kind}
    for kind in ("drelu", "gated_jumprelu", "jumprelu"):
        if f"gate {kind}" in configs:
            gate = configs.pop(f"gate {kind}").model.gate
            assert gate.offset == base.model.gate.offset
            tried.add(gate.kind)
    assert tried == {"drelu", "gated_jumprelu", "jumprelu"}
    ((name, other),) = configs.items()
    assert {name, *kinds(base)} >= {"completeness_ce", "completeness_kl"}
    own, theirs = (
        next(term for term in config.training.objective.terms if term.kind.startswith("completeness"))
        for config in (base, other)
    )
    assert (own.weight, own.centered, own.fraction) == (theirs.weight, theirs.centered, theirs.fraction)


def test_heads_and_recipes_are_standard_too(written):
    _, heads = variants_of(written("recipe: neighbours\nmodel: {head: {kind: relu, hidden_units: 64}}\n"), bcos_heads)
    base, *bcos = (config.model.head for config in heads.values())
    assert (base.kind, {(head.kind, head.hidden_units) for head in bcos}) == ("relu", {("bcos", 64)})
    depths = {name: (config.model.head.layers, config.model.head.exponent) for name, config in list(heads.items())[1:]}
    assert depths == {"B-cos-2": (2, 2), "B-cos-3": (3, 2), "B-cos-2, exponent 3": (2, 3)}
    _, recipes = variants_of(written(""), other_recipes, base=lambda config: config.recipe)
    assert sorted(recipes) == sorted(RECIPES)
    assert all(config.recipe == name for name, config in recipes.items())
    with pytest.raises(ValueError, match="model.head is 'table'.*as in recipe: neighbours"):
        variants_of(written(""), bcos_heads)
    with pytest.raises(ValueError, match="model.head is 'bcos'"):
        variants_of(written("recipe: neighbours\nmodel: {head: bcos}\n"), bcos_heads)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"recipe: neighbours\nvariants: {{one: {{{TERMS}.hoyer: null}}}}",
            "terms.hoyer is unknown: there is no 'hoyer' in .'own_words'",
        ),
        ("variants: {one: {trainig.count: null}}", "trainig is unknown; did you mean 'training'.*'one'"),
        ("variants: {one: {recipe: sic}}", "recipe 'sic' is unknown"),
        ("variants: {base: {}}", "variants.base is taken"),
        ("variants: {one: {data.train_samples: 5}}", "variants.one changes data.train_samples, so it could not be"),
        ("variants: {one: {evaluation.seeds: [5]}}", "variants.one changes evaluation.seeds"),
        ("variants: {a b: {}, a-b: {}}", "'a b' and another would share a folder"),
        ("variants: {../..: {}}", "cannot name a folder"),
        ("variants: {one: 3}", "variants.one is 3"),
        ("datasets: [sst2, imdb]", "names several data sets; run it with `lexical-sae multi-dataset`"),
        ("variants: {one: {datasets: [sst2, imdb]}}", "datasets is for the file as a whole.*'one'"),
    ],
    ids=["term", "key", "recipe", "base", "data", "seeds", "folder", "path", "number", "datasets", "nested"],
)
def test_slips_are_told_before_anything_is_trained(written, text, message):
    with pytest.raises(ValueError, match=message):
        variants_of(written(text + "\n"))


def test_each_data_set_is_an_experiment_with_what_is_particular_to_it(written):
    path = written("datasets: [sst2, my/reviews.csv]\nvariants: {sst2: {model.max_length: 32}}\n")
    study = load_datasets(path, out="there")
    first, second = (variant.config for variant in study.variants)
    assert not study.is_paired
    assert (first.data.dataset_name, first.model.max_length, first.output_dir) == ("sst2", 32, "there/sst2")
    assert (second.data.dataset_name, second.output_dir) == ("my/reviews.csv", "there/reviews")
    assert second.model.max_length != 32
    assert not first.datasets


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("a.csv", "a"),
        ("data/a.tsv", "a"),
        ("My reviews.JSONL", "My-reviews"),
        ("a.v2.csv.gz", "a.v2"),
        ("data/films-1.5", "films-1.5"),
        ("sst2", "sst2"),
    ],
)
def test_a_data_file_has_a_folder_of_its_stem_wherever_it_lies(written, name, folder):
    (variant,) = load_datasets(written(f"datasets: ['{name}']\n"), out="there").variants
    assert variant.config.output_dir == f"there/{folder}"


def test_a_dot_in_a_variants_name_is_no_ending(written):
    _, configs = variants_of(written("variants: {exponent 1.5: {}, exponent 1.7: {}}\n"))
    assert [config.output_dir for config in configs.values()] == ["out/base", "out/exponent-1.5", "out/exponent-1.7"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no data sets; list them"),
        ("datasets: [sst2]\nvariants: {sst: {}}", "variants.sst is no data set of .*did you mean 'sst2'"),
        ("datasets: [sst2, sst2]", "datasets .*names sst2 twice"),
        ("datasets: [a/x.csv, b/x.csv]", "would share a folder"),
        ("datasets: [x.csv, x.tsv]", "would share a folder"),
        ("datasets: [sst2]\nvariants: {sst2: {output_dir: there}}", "output_dir is for the file as a whole"),
    ],
    ids=["none", "variant", "twice", "folder", "ending", "output"],
)
def test_slips_with_data_sets_are_told(written, text, message):
    with pytest.raises(ValueError, match=message):
        load_datasets(written(text + "\n"))
