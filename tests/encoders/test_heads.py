"""A head judges as its formula says, is the same after saving, and leaves the caller's random numbers alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.testing import assert_close

from pcclab.encoders.heads import FILE, PARTS, SiameseHead, nearest

KINDS = sorted(PARTS)


def sides(pairs=5, dim=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, pairs, dim, generator=generator).unbind()


def by_hand(head, u, v):
    """The formula, one pair at a time."""
    rows = []
    for a, b in zip(u.tolist(), v.tolist(), strict=True):
        apart = [abs(x - y) for x, y in zip(a, b, strict=True)]
        parts = {"u,v": a + b, "|u-v|": apart, "u,v,|u-v|": a + b + apart}[head.features]
        weights, bias = head.linear.weight.tolist(), head.linear.bias.tolist()
        rows.append(
            [sum(w * x for w, x in zip(row, parts, strict=True)) + c for row, c in zip(weights, bias, strict=True)]
        )
    return torch.tensor(rows)


@pytest.mark.parametrize("levels", [None, (0.0, 1.0, 2.5)])
@pytest.mark.parametrize("features", KINDS)
def test_output_is_the_formula(features, levels):
    head = SiameseHead(4, features=features, levels=levels)
    u, v = sides()
    judged = head(u, v)
    expected = by_hand(head, u, v)
    assert judged.shape == ((5,) if levels is None else (5, 3)) and head.outputs == (1 if levels is None else 3)
    assert_close(judged, expected[:, 0] if levels is None else expected)


@pytest.mark.parametrize("levels", [None, (0, 2, 5)])
def test_only_the_distance_alone_is_free_of_order(levels):
    u, v = sides()
    for features in KINDS:
        head = SiameseHead(4, features=features, levels=levels)
        assert torch.equal(head(u, v), head(v, u)) == (features == "|u-v|"), features


def test_one_pair_and_no_pair_keep_their_shape():
    for levels, tail in ((None, ()), ((0, 1), (2,))):
        head = SiameseHead(3, levels=levels)
        assert head(torch.ones(1, 3), torch.ones(1, 3)).shape == (1, *tail)
        assert head(torch.ones(0, 3), torch.ones(0, 3)).shape == (0, *tail)
        assert head.score(np.ones((0, 3)), np.ones((0, 3))).shape == (0,)


def test_score_is_the_rating_in_float64():
    head = SiameseHead(4)
    u, v = sides()
    score = head.score(u.numpy().astype(np.float64), v.numpy())
    assert isinstance(score, np.ndarray) and score.dtype == np.float64 and score.shape == (5,)
    assert_close(torch.from_numpy(score), head(u, v).detach().double())


def test_score_of_a_classifier_is_the_expected_level():
    head = SiameseHead(4, levels=(0, 1, 5))
    u, v = sides()
    logits = head(u, v).detach().double().numpy()
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    score = head.score(u.numpy(), v.numpy())
    assert score.dtype == np.float64
    np.testing.assert_allclose(score, chances @ [0, 1, 5], rtol=1e-12)


def test_scoring_leaves_no_graph_and_no_gradient():
    head = SiameseHead(4)
    head.score(np.ones((2, 4)), np.zeros((2, 4)))
    assert head.linear.weight.requires_grad and head.linear.weight.grad is None


@pytest.mark.parametrize("levels", [None, (0.0, 0.1, 2.0)])
@pytest.mark.parametrize("features", KINDS)
def test_saved_and_loaded_is_the_same_to_the_bit(features, levels, tmp_path):
    head = SiameseHead(4, features=features, levels=levels, seed=3)
    path = head.save(tmp_path / "new folder")
    assert path == tmp_path / "new folder" / FILE and [p.name for p in path.parent.iterdir()] == [FILE]
    again = SiameseHead.load(path.parent)
    assert (again.dim, again.features, again.levels, again.outputs) == (4, features, levels, head.outputs)
    assert all(torch.equal(a, b) for a, b in zip(head.parameters(), again.parameters(), strict=True))
    assert again.fingerprint == head.fingerprint
    assert torch.equal(again(*sides()), head(*sides()))


def test_fingerprint_tells_weights_features_and_levels_apart():
    heads = [
        SiameseHead(4),
        SiameseHead(4, seed=1),
        SiameseHead(6, features="u,v"),  # as many weights as the first
        SiameseHead(4, levels=(0, 1)),
        SiameseHead(4, levels=(0, 2)),
    ]
    assert len({head.fingerprint for head in heads}) == len(heads)
    with torch.no_grad():
        heads[0].linear.bias += 1e-3
    assert heads[0].fingerprint != SiameseHead(4).fingerprint


def test_the_seed_alone_makes_the_weights():
    torch.manual_seed(1)
    one = SiameseHead(4, seed=5)
    torch.manual_seed(2)
    two = SiameseHead(4, seed=5)
    assert one.fingerprint == two.fingerprint != SiameseHead(4, seed=6).fingerprint
    bound = 1 / np.sqrt(12)
    assert all(weights.abs().max() <= bound and weights.std() > 0 for weights in [one.linear.weight])


def test_the_callers_random_state_is_left_alone(tmp_path):
    before = torch.get_rng_state()
    SiameseHead.load(SiameseHead(4, levels=(0, 1)).save(tmp_path).parent)
    assert torch.equal(torch.get_rng_state(), before)


def write(path, tensors, told):
    save_file(tensors, path, metadata=told)


DAMAGE = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-8]),
    "no metadata": lambda path: write(path, SiameseHead(4).state_dict(), None),
    "metadata that is no JSON": lambda path: write(
        path, SiameseHead(4).state_dict(), {"features": "u,v", "levels": "[", "dim": "4"}
    ),
    "other features": lambda path: write(
        path, SiameseHead(4).state_dict(), {"features": "nonsense", "levels": "null", "dim": "4"}
    ),
    "weights of another shape": lambda path: write(
        path, SiameseHead(5).state_dict(), {"features": "u,v", "levels": "null", "dim": "4"}
    ),
}


@pytest.mark.parametrize("damage", sorted(DAMAGE))
def test_a_damaged_file_is_told(damage, tmp_path):
    path = SiameseHead(4).save(tmp_path)
    DAMAGE[damage](path)
    with pytest.raises(ValueError, match="head.safetensors cannot be read .*: save the head again"):
        SiameseHead.load(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"features": "u*v"}, r"unknown features 'u\*v': choose one of 'u,v', '\|u-v\|', 'u,v,\|u-v\|'"),
        ({"dim": 0}, "dim is 0: give the length of an embedding, at least 1"),
        ({"levels": [1]}, r"levels are \(1.0,\): give at least 2 ratings, each above the one before"),
        ({"levels": []}, r"levels are \(\): give at least 2"),
        ({"levels": [0, 2, 2]}, "each above the one before"),
        ({"levels": [1, 0]}, "each above the one before"),
        ({"levels": [0, float("nan")]}, "each above the one before"),
    ],
)
def test_bad_heads_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        SiameseHead(**{"dim": 4, **wrong})


@pytest.mark.parametrize(("first", "second"), [((2, 4), (3, 4)), ((2, 5), (2, 5)), ((2, 3), (2, 4))])
def test_sides_that_do_not_fit_are_refused(first, second):
    with pytest.raises(ValueError, match=r"shapes .* this head takes two of \(pairs, 4\)"):
        SiameseHead(4)(torch.ones(first), torch.ones(second))
    with pytest.raises(ValueError, match="shapes"):
        SiameseHead(4).score(np.ones(first), np.ones(second))


def test_nearest_is_the_slow_search_and_the_lower_of_two_as_near():
    levels = [0.0, 1.0, 2.5]
    prediction = np.array([-3.0, 0.0, 0.49, 0.5, 0.51, 1.75, 1.76, 9.0])
    slow = [min(range(3), key=lambda i, p=p: (abs(p - levels[i]), i)) for p in prediction]
    assert nearest(prediction, levels).tolist() == slow == [0, 0, 0, 0, 1, 1, 2, 2]
    assert nearest(np.array([]), levels).shape == (0,)


def test_a_node_begins_at_its_start_and_classes_do_not():
    zeros = torch.zeros(1, 4)
    plain, moved = SiameseHead(4, seed=3), SiameseHead(4, start=3.2, seed=3)
    assert (moved(zeros, zeros) - plain(zeros, zeros)).item() == pytest.approx(3.2, abs=1e-6)
    assert torch.equal(moved.linear.weight, plain.linear.weight)
    classes = [SiameseHead(4, levels=[0, 1, 2], start=start, seed=3)(zeros, zeros) for start in (0.0, 3.2)]
    assert torch.equal(*classes)
