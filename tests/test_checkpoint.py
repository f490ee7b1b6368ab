"""Checkpoints: what was saved is what is loaded, and nothing else is."""

import json
import pickle
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

import proxlearn as pl
from proxlearn.errors import InputError
from proxlearn.methods.checkpoint import FORMAT, Learned, build, describe, weights
from proxlearn.methods.rules import CompactRule
from training_worker import CONFIG, FAMILY


@pytest.fixture(scope="module")
def trained():
    return pl.train(FAMILY, replace(CONFIG, steps=2))


@pytest.mark.parametrize("rule", ["pa", "p", "a", "pba", "pba1", "pba2", "pba12", "compact"])
def test_save_load_solve_gives_the_same_bits(rule, tmp_path):
    learned = Learned(replace(CONFIG, rule=rule).new_rule(), {"note": "untrained"})
    learned.save(tmp_path / "rule.safetensors")
    again = pl.load(tmp_path / "rule.safetensors")
    assert again.card["note"] == "untrained"
    problem = FAMILY.sample(4, 3)
    one, two = (pl.solve(problem, o, tol=0, max_iter=7).x for o in (learned, again))
    assert torch.equal(one, two)


def test_the_card_says_how_to_make_it_again(trained, tmp_path):
    trained.save(tmp_path / "rule.safetensors")
    card = pl.load(tmp_path / "rule.safetensors").card
    assert card["format"] == FORMAT
    assert card["family"] == {"name": "GaussianLasso", "m": 10, "n": 20, "nonzeros": 2, "lam": 0.1}
    assert card["config"]["seed"] == 0
    assert card["config"]["lr"] == 0.01
    assert card["rule"] == describe(trained.rule)
    assert set(card["versions"]) == {"proxlearn", "torch", "python"}
    assert card["licence"] == "BSD-3-Clause"


def tensors_and_card(trained):
    card = {**trained.card, "format": FORMAT, "rule": describe(trained.rule)}
    return weights(trained.rule), card


def change_tensors(change):
    def make(trained, file):
        tensors, card = tensors_and_card(trained)
        change(tensors)
        save_file(tensors, file, {"proxlearn": json.dumps(card)})

    return make


def change_card(**change):
    def make(trained, file):
        tensors, card = tensors_and_card(trained)
        save_file(tensors, file, {"proxlearn": json.dumps({**card, **change})})

    return make


def truncated(trained, file):
    trained.save(file)
    file.write_bytes(file.read_bytes()[:-100])


def header_only(trained, file):
    trained.save(file)
    file.write_bytes(file.read_bytes()[:20])


HOSTILE = {
    "empty": (lambda t, f: f.write_bytes(b""), "not a readable safetensors"),
    "text": (lambda t, f: f.write_text("hello world, not tensors"), "not a readable safetensors"),
    "pickled": (lambda t, f: f.write_bytes(pickle.dumps({"a": 1})), "not a readable safetensors"),
    "torch.save": (lambda t, f: torch.save(weights(t.rule), f), "not a readable safetensors"),
    "truncated": (truncated, "not a readable safetensors"),
    "header only": (header_only, "not a readable safetensors"),
    "no card": (lambda t, f: save_file(weights(t.rule), f), "without a proxlearn card"),
    "card not JSON": (lambda t, f: save_file(weights(t.rule), f, {"proxlearn": "{"}), "card"),
    "card a list": (lambda t, f: save_file(weights(t.rule), f, {"proxlearn": "[1]"}), "card"),
    "newer format": (change_card(format=FORMAT + 1), "upgrade"),
    "no rule": (change_card(rule=None), "which rule"),
    "unknown kind": (change_card(rule={"kind": "magic", "settings": {}}), "unknown kind"),
    "wrong settings": (
        change_card(rule={"kind": "recurrent", "settings": {"depth": 3}}),
        "do not fit",
    ),
    "settings not a dictionary": (
        change_card(rule={"kind": "recurrent", "settings": 3}),
        "settings",
    ),
    "absurd size": (
        change_card(rule={"kind": "recurrent", "settings": {"hidden": 10**9}}),
        "setting hidden is",
    ),
    "kind a list": (change_card(rule={"kind": ["compact"]}), "unknown kind of rule"),
    "kind a dictionary": (change_card(rule={"kind": {"a": 1}}), "unknown kind of rule"),
    "kind missing": (change_card(rule={}), "unknown kind of rule None"),
    "rule a list": (change_card(rule=["compact"]), "which rule"),
    "a boolean size": (
        change_card(rule={"kind": "recurrent", "settings": {"hidden": True}}),
        "setting hidden is True; expected the like of 20",
    ),
    "a fraction for a size": (
        change_card(rule={"kind": "recurrent", "settings": {"layers": 1.5}}),
        "setting layers is 1.5",
    ),
    "a boolean number": (
        change_card(rule={"kind": "compact", "settings": {"largest_log_p": True}}),
        "setting largest_log_p is True",
    ),
    "a number that is none": (
        change_card(rule={"kind": "compact", "settings": {"largest_log_p": float("nan")}}),
        "setting largest_log_p is nan",
    ),
    "an infinite number": (
        change_card(rule={"kind": "compact", "settings": {"largest_log_p": 10**400}}),
        "setting largest_log_p is 1000",
    ),
    "a list for a word": (
        change_card(rule={"kind": "recurrent", "settings": {"learns": ["p", "a"]}}),
        "setting learns is",
    ),
    "looks nowhere": (
        change_card(rule={"kind": "recurrent", "settings": {"looks_at": ""}}),
        "unknown looks_at ''",
    ),
    "looks at both": (
        change_card(rule={"kind": "recurrent", "settings": {"looks_at": "xy"}}),
        "unknown looks_at 'xy'",
    ),
    "a seed beyond 64 bits": (
        change_card(rule={"kind": "recurrent", "settings": {"start_seed": 10**30}}),
        "seed is 1000",
    ),
    "settings null": (change_card(rule={"kind": "compact", "settings": None}), "do not fit"),
    "format a boolean": (change_card(format=True), "without a proxlearn card"),
    "format infinite": (change_card(format=float("inf")), "without a proxlearn card"),
    "format negative": (change_card(format=-1), "without a proxlearn card"),
    "nested card": (
        lambda t, f: save_file(weights(t.rule), f, {"proxlearn": "[" * 10**5}),
        "without a proxlearn card",
    ),
    "missing tensor": (change_tensors(lambda t: t.pop("head_bias")), "missing or extra head_bias"),
    "extra tensor": (
        change_tensors(lambda t: t.update(extra=torch.zeros(1))),
        "missing or extra extra",
    ),
    "misshapen": (change_tensors(lambda t: t.update(head_bias=torch.zeros(7))), "head_bias as"),
    "another dtype": (
        change_tensors(lambda t: t.update(head_bias=t["head_bias"].double())),
        "float64",
    ),
    "NaN": (change_tensors(lambda t: t["head_bias"].fill_(float("nan"))), "NaN or infinite"),
    "infinite": (change_tensors(lambda t: t["head_bias"].fill_(float("inf"))), "NaN or infinite"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line(name, trained, tmp_path):
    make, words = HOSTILE[name]
    file = tmp_path / "hostile.safetensors"
    make(Learned(build(describe(trained.rule)), trained.card), file)
    with pytest.raises(InputError, match=words) as error:
        pl.load(file)
    assert "\n" not in str(error.value)


def test_a_missing_file_names_the_shipped_models():
    with pytest.raises(InputError, match="neither a file nor a shipped model"):
        pl.load("no-such-model")


def test_nothing_half_written_is_left_where_saving_fails(trained, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        trained.save(tmp_path / "file" / "rule.safetensors")
    (tmp_path / "folder.safetensors").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        trained.save(tmp_path / "folder.safetensors")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder.safetensors"]


class Unregistered(CompactRule):
    """A rule of a user's own, under a name that no file of weights can refer to."""


def test_a_rule_without_a_registered_kind_says_how_to_register_it(tmp_path, monkeypatch):
    learned = Learned(Unregistered(CompactRule.Settings(), torch.Generator().manual_seed(0)))
    words = "Unregistered has no registered kind.*KINDS\\['my-rule'\\] = Unregistered"
    with pytest.raises(InputError, match=words) as error:
        learned.save(tmp_path / "rule.safetensors")
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setitem(pl.optimizers.KINDS, "my-rule", Unregistered)
    learned.save(tmp_path / "rule.safetensors")
    assert type(pl.load(tmp_path / "rule.safetensors").rule) is Unregistered


def test_a_card_that_is_not_json_is_refused(trained, tmp_path):
    with pytest.raises(InputError, match="the card cannot be written as JSON"):
        Learned(trained.rule, {"note": torch.ones(1)}).save(tmp_path / "rule.safetensors")
    with pytest.raises(InputError, match="the card cannot be written as JSON"):
        Learned(trained.rule, {"a": 1, 2: 3}).save(tmp_path / "rule.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_too_long_is_no_checkpoint():
    with pytest.raises(InputError, match="neither a file nor a shipped model") as error:
        pl.load("x" * 5000)
    assert len(str(error.value)) < 500
