"""`parse` reads sums of losses, runs nothing, and refuses all else with a ValueError that says what to write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcclab import losses
from pcclab.losses import Term, parse

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5)
)
TERMS = st.builds(
    Term,
    st.sampled_from(sorted(losses.CATALOGUE)),
    st.floats(min_value=0, exclude_min=True, allow_infinity=False),
    st.dictionaries(st.sampled_from(["temperature", "method", "scale"]), VALUES, max_size=3),
)


@given(st.lists(TERMS, min_size=1, max_size=5))
def test_terms_come_back_from_their_text(terms):
    assert parse(" + ".join(map(str, terms))) == tuple(terms)


@given(st.text(max_size=30))
def test_any_text_gives_terms_or_a_value_error(text):
    try:
        terms = parse(text)
    except ValueError as error:
        terms = str(error).startswith("loss ") and ()
    assert isinstance(terms, tuple) and all(isinstance(term, Term) for term in terms)


def test_order_and_options_are_kept():
    assert parse("0.5*angle(cosine_weight=1.0, positive_from=-1) + 2 * mse + (pearson + l1)") == (
        Term("angle", 0.5, {"cosine_weight": 1.0, "positive_from": -1}),
        Term("mse", 2.0),
        Term("pearson"),
        Term("l1"),
    )


def test_a_weight_of_zero_leaves_the_term_out():
    assert parse("pearson + 0 * info_nce") == (Term("pearson"),)
    with pytest.raises(ValueError, match="no term of a weight above 0"):
        parse("0.0 * pearson")


def test_a_long_sum_is_read():
    assert len(parse("+".join(["pearson"] * 400))) == 400


@pytest.mark.parametrize("deep", ["+".join(["mse"] * 100_000), "-" * 100_000 + "mse", "(" * 9999 + "mse" + ")" * 9999])
def test_what_is_nested_too_deeply_is_refused(deep):
    with pytest.raises(ValueError, match="loss"):
        parse(deep)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "cannot be read: write names"),
        ("pearson +", "cannot be read"),
        ("pearson; mse", "cannot be read"),
        ("\ud800", "cannot be read"),
        ("pearson\0", "cannot be read"),
        ("-pearson", "-pearson has a minus; losses are added"),
        ("pearson - 0.1 * mse", "has a minus; losses are added"),
        ("-0.1 * pearson", "the factor -0.1 must be at least 0 and finite"),
        ("1e999 * pearson", "must be at least 0 and finite"),
        ("1" + "0" * 400 + " * pearson", "must be at least 0 and finite"),
        ("'2' * pearson", "'2' is no number"),
        ("True * pearson", "True is no number"),
        ("pearson * 0.1", "pearson is no number; write names"),
        ("mse * pearson", "mse is no number"),
        ("0.1 * (pearson + mse)", "pearson + mse is no loss"),
        ("pearson / 2", "pearson / 2 is no loss"),
        ("losses.pearson", "losses.pearson is no loss"),
        ("3", "3 is no loss"),
        ("cosent(0.05)", "cosent(0.05) is no loss"),
        ("cosent(**{'temperature': 1})", "is no loss"),
        ("cosent(temperature=0.1, temperature=0.2)", "temperature is given twice; give it once"),
        ("cosent(temperature=1/20)", "options are plain values"),
        ("cosent(temperature=t)", "options are plain values"),
        ("cosent(temperature={[]: 1})", "options are plain values"),
        ("cosent(temperature=print(1))", "options are plain values"),
    ],
)
def test_all_else_is_refused(expression, message):
    with pytest.raises(ValueError, match="loss") as caught:
        parse(expression)
    assert message in str(caught.value)
