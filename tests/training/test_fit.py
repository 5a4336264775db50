"""`fit`: it learns, selects on development pairs only, resumes to the bit, and refuses before it works."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from pcclab import data, encoders, evaluation, files, losses, training
from pcclab.data import ScoredPairs
from pcclab.encoders.heads import SiameseHead
from pcclab.training import checkpoints

FAST = {"batch_size": 16, "learning_rate": 1e-3, "max_steps": 6, "evaluate_every": 2}


class Folder:
    """A run, as `fit` sees one."""

    def __init__(self, path: Path) -> None:
        self.checkpoints, self.logged = path, []
        path.mkdir(exist_ok=True)

    def log(self, step, **metrics):
        self.logged.append((step, metrics))


@pytest.fixture(scope="module")
def pairs():
    return data.load("stsb", split="train", source="synthetic").select(np.arange(96))


@pytest.fixture(scope="module")
def dev():
    return data.dev_pairs(source="synthetic").select(np.arange(60))


def weights(encoder):
    return {name: value.clone() for name, value in encoder.trunk.state_dict().items()}


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


def test_pearson_lifts_the_development_score(pairs, dev):
    encoder = encoders.load("tiny")
    history = training.fit(
        encoder, pairs, "pearson", parameters={**FAST, "max_steps": 40, "evaluate_every": 10}, dev=dev
    )
    frame = history.to_frame()
    assert frame.loss.iloc[-5:].mean() < frame.loss.dropna().iloc[:5].mean() - 0.1
    assert history.best_dev > frame.dev_spearman[0]
    # The encoder is left with the weights of the best look, not with the last ones.
    reached = evaluation.sts_pairs(encoder, {"dev": dev}).scores["dev"]
    assert reached == pytest.approx(history.best_dev, abs=0.01)
    assert history.best_dev == frame.dev_spearman.iloc[1:].max()


def test_live_is_given_every_step_and_may_end_the_training_after_a_look(pairs, dev, tmp_path):
    lines = []

    def live(line):
        lines.append(line)
        return line["step"] < 3

    whole, ended = encoders.load("tiny"), encoders.load("tiny")
    training.fit(whole, pairs, "pearson", parameters=FAST, dev=dev, live=lambda line: True)
    plain = encoders.load("tiny")
    training.fit(plain, pairs, "pearson", parameters=FAST, dev=dev)
    assert same(weights(whole), weights(plain))  # who looks on changes nothing
    history = training.fit(ended, pairs, "pearson", parameters=FAST, dev=dev, live=live)
    frame = history.to_frame()
    assert frame.index.tolist() == [0, 1, 2, 3]
    assert frame.dev_spearman.dropna().index.tolist() == [0, 2, 3]
    assert [line["step"] for line in lines] == [0, 1, 2, 2, 3, 3]
    assert lines[-1] == history.steps[-1]
    assert history.best_step in (2, 3)
    reached = evaluation.sts_pairs(ended, {"dev": dev}).scores["dev"]
    assert reached == pytest.approx(history.best_dev, abs=0.01)
    with pytest.raises(ValueError, match="live may end a training early, and .* keeps a whole one"):
        training.fit(ended, pairs, "pearson", parameters=FAST, run=Folder(tmp_path / "run"), live=live)


def test_watched_tables_are_told_at_every_look_and_choose_nothing(pairs, dev, tmp_path):
    tests = {name: table.select(np.arange(40)) for name, table in list(data.sts_tests(source="synthetic").items())[:2]}
    plain, watching = encoders.load("tiny"), encoders.load("tiny")
    first = training.fit(plain, pairs, "pearson", parameters=FAST, dev=dev)
    run = Folder(tmp_path / "run")
    second = training.fit(watching, pairs, "pearson", parameters=FAST, dev=dev, run=run, watched=tests)
    assert same(weights(plain), weights(watching)) and first.best_step == second.best_step
    told = second.to_frame().dropna(subset=["dev_spearman"])
    assert told.index.tolist() == [0, 2, 4, 6]
    assert told["dev_spearman"].tolist() == first.to_frame()["dev_spearman"].dropna().tolist()
    reached = evaluation.sts_pairs(watching, tests).scores
    for name, score in reached.items():
        assert told.loc[second.best_step, f"{name}_spearman"] == pytest.approx(score, abs=0.01)
    # The same tables again read the history, others are another training.
    again = training.fit(encoders.load("tiny"), pairs, "pearson", parameters=FAST, dev=dev, run=run, watched=tests)
    assert again.steps == second.steps
    with pytest.raises(ValueError, match="holds a training with watched"):
        training.fit(encoders.load("tiny"), pairs, "pearson", parameters=FAST, dev=dev, run=run,
                     watched={"sts12": tests["sts12"]})  # fmt: skip


def test_a_watched_table_without_an_order_is_refused(pairs, dev):
    flat = ScoredPairs(("a", "b"), ("c", "d"), [2.0, 2.0])
    with pytest.raises(ValueError, match="all 2 flat ratings are 2: there is no order"):
        training.fit(encoders.load("tiny"), pairs, "pearson", parameters=FAST, dev=dev, watched={"flat": flat})


def test_info_nce_pulls_entailments_closer_than_contradictions():
    triplets = data.nli_triplets(source="synthetic")
    encoder = encoders.load("tiny")

    def margin():
        a, p, n = (
            encoder.encode(side, normalize=True) for side in (triplets.anchor, triplets.positive, triplets.negative)
        )
        return float(((a * p).sum(1) - (a * n).sum(1)).mean())

    before = margin()
    parameters = {"batch_size": 32, "learning_rate": 1e-3, "max_steps": 60}
    history = training.fit(encoder, triplets, "info_nce", parameters=parameters, options={"temperature": 0.1})
    assert margin() > before + 0.05
    assert history.best_dev is None and history.best_step == 60


def test_the_same_seed_gives_the_same_weights_and_another_gives_others(pairs):
    trained = []
    for seed in (0, 0, 1):
        encoder = encoders.load("tiny")
        training.fit(encoder, pairs, "pearson", parameters={**FAST, "seed": seed})
        trained.append(weights(encoder))
    assert same(trained[0], trained[1]) and not same(trained[0], trained[2])


def test_bounded_memory_does_not_change_the_training(pairs):
    trained = []
    for keep in (0, 10**6):
        encoder = encoders.load("tiny")
        parameters = {**FAST, "micro_tokens": 200, "keep_tokens": keep}
        training.fit(encoder, pairs, "pearson", parameters=parameters)
        trained.append(weights(encoder))
    for name in trained[0]:
        torch.testing.assert_close(trained[0][name], trained[1][name], atol=1e-5, rtol=1e-4)


def test_a_finished_training_is_loaded_not_repeated(pairs, dev, tmp_path, monkeypatch):
    run, encoder = Folder(tmp_path / "run"), encoders.load("tiny")
    history = training.fit(encoder, pairs, "pearson", parameters=FAST, run=run, dev=dev)
    assert sorted(p.name for p in run.checkpoints.iterdir()) == ["final", "history.json", "training.json"]
    assert {step for step, _ in run.logged} == set(range(7))
    monkeypatch.setattr(training.loop.cached, "backward", lambda *a, **k: pytest.fail("trained again"))
    again = encoders.load("tiny")
    assert training.fit(again, pairs, "pearson", parameters=FAST, run=run, dev=dev) == history
    assert same(weights(encoder), weights(again))
    assert np.array_equal(encoders.load(run.checkpoints / "final").encode(["rain"]), again.encode(["rain"]))


def test_a_damaged_result_is_told(pairs, tmp_path):
    run = Folder(tmp_path / "run")
    training.fit(encoders.load("tiny"), pairs, "pearson", parameters=FAST, run=run)
    weights = run.checkpoints / "final" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ValueError, match="model.safetensors cannot be read .* move .*final away to train it again"):
        training.fit(encoders.load("tiny"), pairs, "pearson", parameters=FAST, run=run)


def test_another_training_in_the_folder_is_refused(pairs, tmp_path):
    run = Folder(tmp_path / "run")
    training.fit(encoders.load("tiny"), pairs, "pearson", parameters=FAST, run=run)
    with pytest.raises(ValueError, match="holds a training with table .* move that folder away"):
        training.fit(encoders.load("tiny"), pairs.select(np.arange(90)), "pearson", parameters=FAST, run=run)
    with pytest.raises(ValueError, match="holds a training with encoder"):
        training.fit(encoders.load("tiny", seed=1), pairs, "pearson", parameters=FAST, run=run)


KILLED = """
import sys
from pathlib import Path
import numpy as np
from pcclab import data, encoders, training
folder = Path(sys.argv[1])
class Run:
    checkpoints = folder
    def log(self, step, **metrics):
        print(step, flush=True)
folder.mkdir(exist_ok=True)
pairs = data.load("stsb", split="train", source="synthetic").select(np.arange(200))
dev = data.dev_pairs(source="synthetic").select(np.arange(60))
encoder = encoders.load("tiny")
settings = training.FitSettings(
    batch_size=16, learning_rate=1e-3, epochs=3, evaluate_every=5, checkpoint_seconds=0.0, micro_tokens=300,
    keep_tokens=0,
)
history = training.fit(encoder, pairs, "pearson", parameters=settings, run=Run(), dev=dev)
print("resumed from", history.resumed_from, "best", history.best_step, history.best_dev)
"""


def test_kill_minus_nine_and_again_gives_the_same_weights(tmp_path):
    def start(name):
        command = [sys.executable, "-c", KILLED, str(tmp_path / name)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    with start("whole") as process:
        whole = process.communicate()[0]
    for until in (9, 20):  # killed twice: in the first epoch and in the second, of three
        with start("killed") as process:
            for line in process.stdout:
                if line.strip().isdigit() and int(line) >= until:
                    break
            process.send_signal(signal.SIGKILL)
        assert not files.is_complete(tmp_path / "killed" / "final"), f"ended before it was killed at step {until}"
    with start("killed") as process:
        resumed = process.communicate()[0]
    # Step 39 ends both; only the step the last part went on from differs.
    assert "resumed from 0 best" in whole and "resumed from 0 best" not in resumed, f"{whole}\n{resumed}"
    assert whole.split("best")[1] == resumed.split("best")[1]
    first, second = (load_file(tmp_path / name / "final" / "model.safetensors") for name in ("whole", "killed"))
    assert same(first, second)
    lines = [json.loads((tmp_path / name / "history.json").read_text())["steps"] for name in ("whole", "killed")]
    assert lines[0] == lines[1]


def interrupted(tmp_path, pairs, loss="pearson", **options):
    """A run with whole checkpoints, as a kill between the third and the end leaves it."""
    run = Folder(tmp_path / "run")

    class Stop(Exception):
        pass

    class Dies(Folder):
        def log(self, step, **metrics):
            if step == 4:
                raise Stop

    often = {**FAST, "checkpoint_seconds": 0.0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "keep_only", lambda folder, steps: None)
        with pytest.raises(Stop):
            training.fit(encoders.load("tiny"), pairs, loss, parameters=often, run=Dies(run.checkpoints), **options)
    return run


def test_half_written_checkpoints_do_not_count_and_damaged_ones_are_set_aside(pairs, tmp_path):
    run = interrupted(tmp_path, pairs)
    assert checkpoints.newest(run.checkpoints).name == "checkpoint-3"
    half = run.checkpoints / "checkpoint-9"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"only the beginn")
    assert checkpoints.newest(run.checkpoints).name == "checkpoint-3" and not half.exists()
    broken = run.checkpoints / "checkpoint-3" / "model.safetensors"
    broken.write_bytes(broken.read_bytes()[:500])
    with pytest.warns(UserWarning, match="checkpoint-3 is damaged .* set aside as damaged-checkpoint-3"):
        history = training.fit(
            encoders.load("tiny"), pairs, "pearson", parameters={**FAST, "checkpoint_seconds": 0.0}, run=run
        )
    assert history.resumed_from == 2


def node():
    return SiameseHead(encoders.load("tiny").dim, seed=4)


def test_a_head_is_trained_saved_and_loaded_with_its_encoder(pairs, dev, tmp_path, monkeypatch):
    run, encoder, head = Folder(tmp_path / "run"), encoders.load("tiny"), node()
    started = head.fingerprint
    history = training.fit(encoder, pairs, "smooth_k2", parameters=FAST, run=run, dev=dev, head=head)
    assert head.fingerprint != started
    assert sorted(p.name for p in run.checkpoints.iterdir()) == ["final", "head", "history.json", "training.json"]
    assert SiameseHead.load(run.checkpoints / "head").fingerprint == head.fingerprint
    monkeypatch.setattr(training.loop.cached, "backward", lambda *a, **k: pytest.fail("trained again"))
    again, other = encoders.load("tiny"), node()
    assert training.fit(again, pairs, "smooth_k2", parameters=FAST, run=run, dev=dev, head=other) == history
    assert other.fingerprint == head.fingerprint and same(weights(encoder), weights(again))
    another = SiameseHead(encoder.dim, seed=5)
    with pytest.raises(ValueError, match="holds a training with head"):
        training.fit(encoders.load("tiny"), pairs, "smooth_k2", parameters=FAST, run=run, dev=dev, head=another)


def test_the_best_look_brings_back_its_head_too(pairs, dev, tmp_path, monkeypatch):
    scores, heads, head = iter([10.0, 60.0, 50.0, 40.0]), [], node()

    def score(self):
        heads.append(head.fingerprint)
        return next(scores)

    monkeypatch.setattr("pcclab.training.selection.Development.score", score)
    history = training.fit(encoders.load("tiny"), pairs, "mse", parameters=FAST, dev=dev, head=head)
    assert history.best_step == 2 and len(set(heads)) == 4
    assert head.fingerprint == heads[1]


@pytest.mark.parametrize("keep", [0, 8192], ids=["embedded twice", "graph kept"])
def test_an_interrupted_training_with_a_head_goes_on_to_the_bit(pairs, tmp_path, keep):
    settings = {"keep_tokens": keep, "micro_tokens": 300, "layer_decay": 0.8, "warmup_share": 0.4, "weight_decay": 0.1}
    loss, parameters = "mse + 0.5 * pearson", {**FAST, "checkpoint_seconds": 0.0, **settings}
    whole, whole_head = encoders.load("tiny"), node()
    history = training.fit(whole, pairs, loss, parameters=parameters, head=whole_head)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "FAST", parameters)
        run = interrupted(tmp_path, pairs, loss, head=node())
    rest, rest_head = encoders.load("tiny"), node()
    resumed = training.fit(rest, pairs, loss, parameters=parameters, run=run, head=rest_head)
    assert resumed.resumed_from == 3 and resumed.steps == history.steps
    assert same(weights(whole), weights(rest)) and rest_head.fingerprint == whole_head.fingerprint


def test_a_checkpoint_with_a_damaged_head_is_set_aside(pairs, tmp_path):
    run = interrupted(tmp_path, pairs, "mse", head=node())
    broken = run.checkpoints / "checkpoint-3" / "head.safetensors"
    broken.write_bytes(broken.read_bytes()[:40])
    with pytest.warns(UserWarning, match="checkpoint-3 is damaged .* set aside"):
        assert checkpoints.newest(run.checkpoints).name == "checkpoint-2"


def test_options_that_come_back_as_lists_are_the_same_training(pairs, tmp_path):
    run, given = Folder(tmp_path / "run"), {"parameters": FAST, "options": {"label_range": (0.0, 5.0)}}
    first = training.fit(encoders.load("tiny"), pairs, "l1", run=run, head=node(), **given)
    assert training.fit(encoders.load("tiny"), pairs, "l1", run=run, head=node(), **given) == first


def test_lower_layers_move_less_with_layer_decay(pairs):
    moved = []
    for decay in (1.0, 0.1):
        encoder = encoders.load("tiny")
        before = weights(encoder)
        history = training.fit(encoder, pairs, "pearson", parameters={**FAST, "layer_decay": decay})
        after = weights(encoder)
        part = {name: float((after[name] - before[name]).abs().max()) for name in after if "query.weight" in name}
        moved.append(
            [*part.values(), float((after[name := "embeddings.word_embeddings.weight"] - before[name]).abs().max())]
        )
        # What is logged is the rate of the top, the one that was asked for.
        assert history.steps[0]["learning_rate"] == pytest.approx(FAST["learning_rate"])
    assert moved[1][1] == pytest.approx(moved[0][1], rel=0.5)
    assert moved[1][0] < 0.3 * moved[0][0] and moved[1][2] < 0.1 * moved[0][2]


def test_warm_up_may_be_a_share_of_all_steps(pairs):
    def rates(**change):
        return [
            line["learning_rate"]
            for line in training.fit(encoders.load("tiny"), pairs, "pearson", parameters={**FAST, **change}).steps
        ]

    assert rates(warmup_share=0.5) == rates(warmup_steps=3) != rates()
    assert rates(max_steps=-1, epochs=1.0, warmup_share=1 / 3) == rates(warmup_steps=2)  # 6 steps an epoch


def test_sentences_are_their_own_positives_by_dropout():
    sentences = data.sentences(source="synthetic", limit=48)
    encoder, seen = encoders.load("tiny"), []

    def contrast(anchor, positive):
        seen.append(float(torch.nn.functional.cosine_similarity(anchor, positive).detach().mean()))
        return losses.info_nce(anchor, positive)

    history = training.fit(encoder, sentences, "info_nce", parameters={**FAST, "max_steps": 12})
    assert history.steps[-1]["loss"] < history.steps[0]["loss"]
    training.fit(encoders.load("tiny"), sentences, contrast, parameters=FAST)
    assert 0.5 < seen[0] < 0.999  # two masks, two views


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 1}, "batch_size is 1: give a number at least 2"),
        ({"learning_rate": 0}, "learning_rate is 0"),
        ({"learning_rate": "1e-4"}, "learning_rate is '1e-4'"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"dtype": "float16"}, "dtype is 'float16'"),
        ({"warmup_share": 1.0}, "warmup_share is 1.0 and warmup_steps 0: give one of them, a share below 1"),
        ({"warmup_share": 0.1, "warmup_steps": 2}, "warmup_share is 0.1 and warmup_steps 2: give one of them"),
        ({"warmup_share": -0.1}, "warmup_share is -0.1: give a number from 0 to below 1"),
        ({"warmup_share": float("nan")}, "warmup_share is nan"),
        ({"layer_decay": 0}, "layer_decay is 0: give a number above 0, at most 1"),
        ({"layer_decay": 1.5}, "layer_decay is 1.5: give at most 1, lower layers learn more slowly"),
        ({"layer_decay": "0.9"}, "layer_decay is '0.9'"),
        ({"learnig_rate": 1e-4}, "unknown training parameter 'learnig_rate'"),
    ],
)
def test_bad_settings_are_told(pairs, change, message):
    with pytest.raises(ValueError, match=message):
        training.fit(encoders.load("tiny"), pairs, "pearson", parameters={**FAST, **change})


def test_tables_and_losses_must_fit(pairs):
    encoder, triplets = encoders.load("tiny"), data.nli_triplets(source="synthetic")
    with pytest.raises(ValueError, match="pearson takes .* Triplets does not hold: give ScoredPairs"):
        training.fit(encoder, triplets, "pearson", parameters=FAST)
    with pytest.raises(ValueError, match="unknown loss 'infonce': did you mean info_nce"):
        training.fit(encoder, triplets, "infonce", parameters=FAST)
    with pytest.raises(ValueError, match="pearson has no option 'temperature': it takes none"):
        training.fit(encoder, pairs, "pearson", parameters=FAST, options={"temperature": 1})
    with pytest.raises(ValueError, match=r"<lambda> takes \(x\), which ScoredPairs does not hold: name its arguments"):
        training.fit(encoder, pairs, lambda x: x.sum(), parameters=FAST)
    constant = ScoredPairs(pairs.first, pairs.second, np.full(len(pairs), 3.0))
    with pytest.raises(ValueError, match="gold ratings are 3: there is no order to learn"):
        training.fit(encoder, constant, "pearson", parameters=FAST)
    with pytest.raises(ValueError, match="no order to select by"):
        training.fit(encoder, pairs, "pearson", parameters=FAST, dev=constant)
    with pytest.raises(ValueError, match=r"1 row\(s\): pearson compares the rows"):
        training.fit(encoder, pairs.select([0]), "pearson", parameters=FAST)


def test_a_loss_of_ones_own_trains(pairs):
    def squared(similarity, gold, *, width=5.0):
        return (similarity - gold / width).square().mean()

    history = training.fit(
        encoders.load("tiny"), pairs, squared, parameters={**FAST, "max_steps": 20}, options={"width": 5.0}
    )
    assert history.steps[-1]["loss"] < history.steps[0]["loss"]


def test_a_last_batch_of_one_is_left_out_and_said(pairs):
    parameters = {"batch_size": 19, "learning_rate": 1e-4}  # 96 = 5 x 19 + 1
    history = training.fit(encoders.load("tiny"), pairs, "pearson", parameters=parameters)
    assert history.left_out == 1 and len(history.steps) == 5


def test_a_full_disk_is_told_before_the_first_step(pairs, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=10))
    with pytest.raises(OSError, match=r"training needs \d+ MB for checkpoints"):
        training.fit(encoders.load("tiny"), pairs, "pearson", parameters=FAST, run=Folder(tmp_path / "run"))


def test_a_collapsed_model_is_told_not_scored(pairs, dev, monkeypatch):
    monkeypatch.setattr(encoders.Encoder, "encode", lambda self, texts, **options: np.ones((len(texts), 4), np.float32))
    with pytest.raises(ValueError, match="undefined at every look: the embeddings collapsed"):
        training.fit(encoders.load("tiny"), pairs, "pearson", parameters=FAST, dev=dev)


def test_a_loss_that_is_not_finite_stops_at_once(pairs):
    def broken(similarity, gold):
        return losses.pearson(similarity, gold) * float("inf")

    with pytest.raises(ValueError, match="the loss is inf"):
        training.fit(encoders.load("tiny"), pairs, broken, parameters=FAST)


def test_warm_up_longer_than_the_training_is_told(pairs):
    with pytest.warns(UserWarning, match="warmup_steps is 50 and the training has 6 steps"):
        training.fit(encoders.load("tiny"), pairs, "pearson", parameters={**FAST, "warmup_steps": 50})


def test_bfloat16_activations_keep_float32_weights(pairs):
    encoder = encoders.load("tiny")
    history = training.fit(encoder, pairs, "pearson", parameters={**FAST, "dtype": "bfloat16"})
    assert next(encoder.trunk.parameters()).dtype == torch.float32
    assert all(np.isfinite(line["loss"]) for line in history.steps)
