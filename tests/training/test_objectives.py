"""`bind`: each loss on the tables that hold what it asks, sums of losses term by term, and refusals that say why."""

from __future__ import annotations

import inspect
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close

from pcclab import encoders, losses, parameters
from pcclab.data import LabelledTexts, NLIPairs, ScoredPairs, Sentences, Triplets
from pcclab.encoders.heads import SiameseHead
from pcclab.training import bind, teachers

DIM = 4
GOLD = [0.0, 4.0, 5.0, 2.5, 1.0, 4.5]
TEXTS = tuple(f"text {i}" for i in range(6))
OTHERS = tuple(f"other {i}" for i in range(6))
PAIRS = ScoredPairs(TEXTS, OTHERS, GOLD)
TRIPLETS = Triplets(TEXTS, OTHERS, tuple(f"third {i}" for i in range(6)))
SENTENCES = Sentences(TEXTS)
TABLES = {"ScoredPairs": PAIRS, "Triplets": TRIPLETS, "Sentences": SENTENCES}
RATED = {"ScoredPairs"}
LISTED = {"Sentences"}
HOMES = {
    **dict.fromkeys(losses.CATALOGUE, RATED),
    "info_nce": {"ScoredPairs", "Triplets", "Sentences"},
    **dict.fromkeys(["ranking_consistency", "listnet", "listmle"], LISTED),
}
NODE = SiameseHead(DIM)
CLASSES = SiameseHead(DIM, levels=(0, 2.5, 5))


@pytest.fixture(scope="module")
def taught():
    return teachers.gather([encoders.load("tiny", seed=1)], TEXTS)


def head_for(name):
    asked = inspect.signature(losses.CATALOGUE[name]).parameters
    return NODE if "prediction" in asked else CLASSES if "logits" in asked else None


def vectors(sides, rows=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(sides * rows, DIM, generator=generator).requires_grad_()


@pytest.mark.parametrize("kind", sorted(TABLES))
@pytest.mark.parametrize("name", sorted(losses.CATALOGUE))
def test_every_loss_binds_where_its_quantities_are_and_nowhere_else(name, kind, taught):
    table, options = TABLES[kind], {"head": head_for(name), "teachers": taught}
    if kind in HOMES[name]:
        objective = bind(table, name, **options)
        assert objective.name == name and len(objective) == 6
        assert all(len(column) == 6 for column in objective.columns)
        embeddings = vectors(len(objective.columns))
        loss = objective.loss(range(6))(embeddings)
        loss.backward()
        assert torch.isfinite(loss) and torch.isfinite(embeddings.grad).all()
    else:
        homes = " or ".join(sorted(HOMES[name]))
        with pytest.raises(ValueError, match=rf"{name} takes \(.*\), which {kind} does not hold: give {homes}$"):
            bind(table, name, **options)


def test_the_loss_is_the_function_on_the_rows_asked_for():
    rows, embeddings = [4, 1, 3], vectors(2, 3)
    first, second = embeddings.split(3)
    gold = torch.tensor([GOLD[row] for row in rows])
    similarity = functional.cosine_similarity(first, second)
    for name in ("pearson", "cosent", "kendall", "soft_spearman"):
        assert_close(bind(PAIRS, name).loss(rows)(embeddings), losses.CATALOGUE[name](similarity, gold))
    assert_close(bind(PAIRS, "angle").loss(rows)(embeddings), losses.angle(first, second, gold))
    product = functional.normalize(first) * functional.normalize(second)
    assert_close(bind(PAIRS, "rank_n_contrast").loss(rows)(embeddings), losses.rank_n_contrast(product, gold))
    judged = bind(PAIRS, "mse", head=NODE).loss(rows)(embeddings)
    assert_close(judged, losses.mse(NODE(first, second), gold, label_range=(0, 5)))
    chosen = bind(PAIRS, "cross_entropy", head=CLASSES).loss(rows)(embeddings)
    assert_close(chosen, losses.cross_entropy(CLASSES(first, second), torch.tensor([0, 2, 1])))  # of 1, 4 and 2.5


def test_views_and_lists_are_those_of_the_sentences(taught):
    rows, embeddings = [5, 0, 2, 2], vectors(2, 4)
    first, second = (functional.normalize(side) for side in embeddings.split(4))
    one, other = first @ second.T, second @ first.T
    views = bind(SENTENCES, "ranking_consistency").loss(rows)(embeddings)
    assert_close(views, losses.ranking_consistency(one, other))
    for name in ("listnet", "listmle"):
        follows = bind(SENTENCES, name, teachers=taught).loss(rows)(embeddings)
        assert_close(follows, losses.CATALOGUE[name](one, taught.similarity(rows)))
    assert_close(bind(SENTENCES, "info_nce").loss(rows)(embeddings), losses.info_nce(first, second))
    assert bind(SENTENCES, "info_nce").columns == (TEXTS, TEXTS)


def test_a_sum_is_the_weighted_sum_of_its_parts_each_with_its_own_options(taught):
    embeddings = vectors(2)
    parts = [(1.0, "pearson", {}), (0.1, "info_nce", {"temperature": 0.2}), (2.0, "cosent", {"temperature": 0.5})]
    total = bind(PAIRS, "pearson + 0.1 * info_nce(temperature=0.2) + 2 * cosent(temperature=0.5)")
    assert total.name == "pearson + 0.1 * info_nce(temperature=0.2) + 2 * cosent(temperature=0.5)"
    alone = [w * bind(PAIRS, name, options).loss(range(6))(embeddings) for w, name, options in parts]
    assert_close(total.loss(range(6))(embeddings), sum(alone))
    ranking = "info_nce + 0.5 * ranking_consistency(temperature=0.1) + 0.25 * listnet(student_temperature=0.1)"
    whole = bind(SENTENCES, ranking, teachers=taught).loss(range(6))(embeddings)
    terms = losses.parse(ranking)
    bound = [bind(SENTENCES, t.name, dict(t.options), teachers=taught).loss(range(6))(embeddings) for t in terms]
    assert_close(whole, bound[0] + 0.5 * bound[1] + 0.25 * bound[2])


def test_a_sum_may_judge_by_head_and_by_cosine_at_once():
    embeddings = vectors(2)
    both = bind(PAIRS, "mse + 0.5 * pearson", head=NODE).loss(range(6))(embeddings)
    parts = [bind(PAIRS, name, head=NODE).loss(range(6))(embeddings) for name in ("mse", "pearson")]
    assert_close(both, parts[0] + 0.5 * parts[1])


def test_a_sum_of_one_term_left_is_that_term():
    assert bind(PAIRS, "pearson + 0 * info_nce").name == "pearson"
    assert bind(PAIRS, "cosent + 0 * pearson", {"temperature": 0.5}).terms[0][0] == 1


def test_options_beside_a_sum_are_refused():
    for loss in ("cosent + kendall", "pearson + 0.1 * info_nce"):  # whether every term knows the option or not
        with pytest.raises(
            ValueError, match=r"options \['temperature'\] beside a sum of losses: write each loss's own"
        ):
            bind(PAIRS, loss, {"temperature": 0.1})


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ("pearson + 0.1 * infonce", "unknown loss 'infonce': did you mean info_nce"),
        ("pearson + cosent(temprature=0.1)", "cosent has no option 'temprature': it takes temperature"),
        ("pearson + ranking_consistency", "ranking_consistency takes .* does not hold: give Sentences$"),
        ("pearson + mse", "mse judges pairs by a head with one output, and no head was given"),
        ("pearson -", "cannot be read"),
    ],
)
def test_a_bad_term_of_a_sum_is_told(loss, message):
    with pytest.raises(ValueError, match=message):
        bind(PAIRS, loss)


def test_labels_without_ratings_are_sent_to_rated():
    nli = NLIPairs(TEXTS, OTHERS, ("entailment", "neutral", "contradiction") * 2)
    with pytest.raises(ValueError, match=r"give table.rated\(\), which maps them to 0, 1 and 2"):
        bind(nli, "mse", head=NODE)
    assert bind(nli.rated(), "mse", head=NODE).least == 1
    with pytest.raises(ValueError, match="LabelledTexts cannot be trained on: give ScoredPairs, Triplets or Sentences"):
        bind(LabelledTexts(TEXTS, None, [0] * 6, ("a",)), "pearson")


@pytest.mark.parametrize("name", ["l1", "mse", "translated_relu", "smooth_k2"])
def test_the_ends_of_the_labels_are_the_tables(name):
    def far(table):
        with torch.no_grad():
            head = SiameseHead(DIM)
            head.linear.weight.zero_()
            head.linear.bias.fill_(9.0)
        return bind(table, name, head=head).loss([0, 1])(vectors(2, 2)).item()

    top = ScoredPairs(TEXTS[:2], OTHERS[:2], [2.0, 2.0], scale=(0, 2))
    assert far(top) == 0  # beyond the last label of 0..2 all is forgiven
    assert far(ScoredPairs(TEXTS[:2], OTHERS[:2], [2.0, 2.0])) > 1  # on 0..5 a 2 is not the last


@pytest.mark.parametrize("name", ["ccc", "cosine_mse"])
def test_a_cosine_of_one_stands_for_the_tables_highest_rating(name):
    embeddings = vectors(2)
    on_five = bind(PAIRS, name).loss(range(6))(embeddings)
    on_one = bind(PAIRS.rescaled(0, 1), name).loss(range(6))(embeddings)
    assert_close(on_one, on_five)
    told = bind(PAIRS, name, {"scale": 2.0}).loss(range(6))(embeddings)  # said aloud, it beats the table
    assert not torch.allclose(told, on_five)


def test_contrast_on_rated_pairs_takes_those_of_four_of_five_and_more():
    embeddings = vectors(2)
    first, second = embeddings.split(6)
    kept = [1, 2, 5]
    expected = losses.info_nce(first[kept], second[kept])
    assert_close(bind(PAIRS, "info_nce").loss(range(6))(embeddings), expected)
    assert_close(bind(PAIRS.rescaled(1, 2), "info_nce").loss(range(6))(embeddings), expected)  # from 1.8 on


@pytest.mark.parametrize("loss", ["info_nce", "cosent + 0.1 * info_nce"])
@pytest.mark.parametrize("rows", [[0, 3, 4], [0, 1, 3]], ids=["no positive", "one positive"])
def test_a_batch_without_two_positives_teaches_no_contrast(loss, rows):
    embeddings = vectors(2, 3)
    value = bind(PAIRS, loss).loss(rows)(embeddings)
    value.backward()
    rest = bind(PAIRS, "cosent").loss(rows)(embeddings).detach() if "cosent" in loss else torch.tensor(0.0)
    assert_close(value.detach(), rest)
    assert embeddings.grad is not None and embeddings.grad.any() == ("cosent" in loss)


@pytest.mark.parametrize("loss", ["info_nce", "pearson + 0.1 * info_nce"])
def test_a_table_without_two_positives_is_refused(loss):
    with pytest.raises(ValueError, match="fewer than 2 pairs are rated 4 or higher: info_nce has no positives"):
        bind(PAIRS.select([0, 1, 3, 4]), loss)
    assert bind(PAIRS.select([0, 1, 2]), loss)


@pytest.mark.parametrize(
    ("name", "head", "told"),
    [
        ("mse", None, "a head with one output, and no head was given"),
        ("smooth_k2", CLASSES, r"a head with one output, and this head has 3 output\(s\)"),
        ("cross_entropy", None, "one output a class and its levels, and no head was given"),
        ("cross_entropy", NODE, r"one output a class and its levels, and this head has 1 output\(s\)"),
    ],
)
def test_a_head_that_is_missing_or_does_not_fit_is_refused(name, head, told):
    with pytest.raises(ValueError, match=rf"{name} judges pairs by .*{told}: give head=SiameseHead"):
        bind(PAIRS, name, head=head)


def test_teachers_that_are_missing_or_know_other_texts_are_refused(taught):
    for name in ("listnet", "listmle"):
        with pytest.raises(ValueError, match=f"{name} follows a teacher: give teachers="):
            bind(SENTENCES, name)
    with pytest.raises(ValueError, match="teacher has 6 texts, the table has 5"):
        bind(SENTENCES.select(range(5)), "listnet", teachers=taught)
    with pytest.raises(ValueError, match="text 0 is 'text 0' to the teacher and 'text 1' in the table"):
        bind(SENTENCES.select([1, 0, 2, 3, 4, 5]), "listnet", teachers=taught)


def test_constant_gold_is_refused_where_rows_are_compared_and_fine_for_a_head():
    constant = ScoredPairs(TEXTS, OTHERS, np.full(6, 3.0))
    for name in ("pearson", "ccc", "kendall", "angle", "rank_n_contrast", "mse + pearson"):
        with pytest.raises(ValueError, match="all 6 gold ratings are 3: there is no order to learn"):
            bind(constant, name, head=NODE)
    for name in ("l1", "mse", "translated_relu", "smooth_k2", "cross_entropy"):
        assert torch.isfinite(bind(constant, name, head=head_for(name)).loss(range(6))(vectors(2)))
    assert bind(ScoredPairs(TEXTS, OTHERS, np.full(6, 5.0)), "info_nce")  # it reads no order


def test_one_row_is_enough_for_a_head_only(taught):
    for table, name in ((PAIRS, "pearson"), (TRIPLETS, "info_nce"), (SENTENCES, "ranking_consistency")):
        with pytest.raises(ValueError, match=rf"1 row\(s\): {name} compares the rows of a batch, give at least 2"):
            bind(table.select([1]), name)
        assert bind(table, name).least == 2
    with pytest.raises(ValueError, match=r"1 row\(s\): pearson compares the rows"):
        bind(PAIRS.select([1]), "mse + pearson", head=NODE)  # the term that needs them is named
    alone = bind(PAIRS.select([1]), "mse", head=NODE)
    assert alone.least == 1 and torch.isfinite(alone.loss([0])(vectors(2, 1)))


def test_a_loss_of_ones_own_takes_what_its_arguments_name():
    def gap(gold, similarity, *, width=5.0):
        return (similarity - gold / width).square().mean()

    embeddings = vectors(2)
    assert_close(bind(PAIRS, gap).loss(range(6))(embeddings), bind(PAIRS, "cosine_mse").loss(range(6))(embeddings))
    assert bind(PAIRS, gap, {"width": 3.0}).name == "gap"
    with pytest.raises(ValueError, match="gap has no option 'with': it takes width"):
        bind(PAIRS, gap, {"with": 3.0})
    with pytest.raises(ValueError, match=r"gap takes \(gold, similarity\), which Sentences .* give ScoredPairs$"):
        bind(SENTENCES, gap)

    def swapped(second, first):
        return (first @ second).sum()

    with pytest.raises(ValueError, match="which ScoredPairs does not hold: give Sentences"):
        bind(PAIRS, swapped)  # without ratings these are lists, in any order
    with pytest.raises(ValueError, match="name its arguments as pcclab.losses does"):
        bind(PAIRS, lambda *everything: everything[0].sum())


def test_a_partial_keeps_its_own_options():
    embeddings = vectors(2)
    for own, named in (
        (partial(losses.cosent, temperature=0.3), ("cosent", {"temperature": 0.3})),
        (partial(losses.ccc, scale=2.0), ("ccc", {"scale": 2.0})),
        (partial(losses.l1, label_range=(-9.0, 9.0)), ("l1", {"label_range": (-9.0, 9.0)})),
    ):
        bound, expected = bind(PAIRS, own, head=NODE), bind(PAIRS, *named, head=NODE)
        assert bound.name == named[0]
        assert_close(bound.loss(range(6))(embeddings), expected.loss(range(6))(embeddings))


def test_half_precision_embeddings_are_judged_in_float32():
    embeddings = vectors(2)
    half = embeddings.detach().bfloat16()
    for loss in ("pearson", "mse", "pearson + 0.1 * info_nce", "rank_n_contrast"):
        objective = bind(PAIRS, loss, head=NODE)
        value = objective.loss(range(6))(half)
        assert value.dtype == torch.float32
        assert_close(value, objective.loss(range(6))(half.float()))


def test_notebook_03_offers_every_loss_of_pairs_that_asks_for_no_head():
    offered = parameters.Stage2Parameters.model_fields["loss"].annotation.__args__
    assert set(offered) == {name for name, homes in HOMES.items() if homes >= RATED and head_for(name) is None}
