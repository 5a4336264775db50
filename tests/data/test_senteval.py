"""SentEval's files as messy as they come: every rated row is kept and every damage is told by file and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pcclab.data import catalogue, senteval
from pcclab.data.pairs import LabelledTexts, NLIPairs, ScoredPairs

Write = Callable[[str, bytes | str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes one file below the test's folder and returns the folder."""

    def write_one(path: str, content: bytes | str) -> Path:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path

    return write_one


SICK_HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
MRPC_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"


def read(name: str, split: str, folder: Path) -> ScoredPairs | LabelledTexts | NLIPairs:
    table = senteval.read(catalogue.get(name), split, folder)
    assert isinstance(table, (ScoredPairs, LabelledTexts, NLIPairs))
    return table


def write_sts13(write: Write, texts: str = "my kite\tyour kite\n", ratings: str = "4.0\n") -> Path:
    for subset in ("headlines", "OnWN"):
        write(f"STS/STS13-en-test/STS.input.{subset}.txt", f"the {subset} kite\ta boat\n")
        write(f"STS/STS13-en-test/STS.gs.{subset}.txt", "1\n")
    write("STS/STS13-en-test/STS.gs.FNWN.txt", ratings)
    return write("STS/STS13-en-test/STS.input.FNWN.txt", texts)


def test_subsets_are_pooled_in_sentevals_order_and_smt_is_left_alone(write: Write) -> None:
    write("STS/STS13-en-test/STS.input.SMT.txt", "not\tread\n")
    pairs = read("sts13", "test", write_sts13(write))
    assert isinstance(pairs, ScoredPairs)
    assert pairs.subset == ("FNWN", "headlines", "OnWN")
    assert pairs.first == ("my kite", "the headlines kite", "the OnWN kite")


def test_lines_without_a_rating_are_skipped_and_counted(write: Write) -> None:
    folder = write_sts13(write, "a\tb\nc\td\ne\tf\n", "3.5\n\n0\n")
    pairs = read("sts13", "test", folder)
    assert isinstance(pairs, ScoredPairs)
    assert pairs.subsets()["FNWN"].first == ("a", "e")
    assert pairs.subsets()["FNWN"].gold.tolist() == [3.5, 0.0]
    assert pairs.provenance[0].note == "1 lines without a rating skipped"


def test_quotes_and_odd_line_breaks_are_text(write: Write) -> None:
    folder = write_sts13(write, 'say "ah\tno quote ends here\n"b\u2028c\x0bd"\te, "f"\x85g\n', "2\n3\n")
    pairs = read("sts13", "test", folder)
    assert isinstance(pairs, ScoredPairs)
    part = pairs.subsets()["FNWN"]
    assert part.first == ('say "ah', '"b\u2028c\x0bd"')
    assert part.second == ("no quote ends here", 'e, "f"\x85g')


@pytest.mark.parametrize(
    ("texts", "ratings", "message"),
    [
        ("a\tb\nc\td\n", "1\n", r"STS.input.FNWN.txt has 2 lines and .*STS.gs.FNWN.txt has 1"),
        ("a\tb\nc d\n", "1\n2\n", r"STS.input.FNWN.txt line 2 has 1 tab-separated columns, and 2 are needed"),
        ("a\tb\n", "high\n", r"STS.gs.FNWN.txt line 1: the rating 'high' is not a number"),
        ("a\tb\nc\td\n", "1\nnan\n", r"STS.gs.FNWN.txt line 2: the rating is nan, and a finite number is needed"),
        ("a\tb\n\t \n", "1\n2\n", r"STS.input.FNWN.txt line 2: the text is empty"),
        ("a\tb\n", "6\n", r"gold of row 0 is 6, outside the scale 0\.\.5"),
    ],
)
def test_damage_is_told_by_file_and_line(write: Write, texts: str, ratings: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read("sts13", "test", write_sts13(write, texts, ratings))


def test_a_missing_file_names_it_and_the_mend(write: Write, tmp_path: Path) -> None:
    write_sts13(write)
    (tmp_path / "STS/STS13-en-test/STS.gs.OnWN.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"no file .*STS\.gs\.OnWN\.txt, which sts13 needs: .*data fetch"):
        read("sts13", "test", tmp_path)


def test_bytes_that_are_not_text_are_told_by_position(write: Write, tmp_path: Path) -> None:
    write_sts13(write)
    write("STS/STS13-en-test/STS.input.FNWN.txt", b"caf\xe9\tbar\n")
    with pytest.raises(ValueError, match=r"STS\.input\.FNWN\.txt is not UTF-8 at byte 3"):
        read("sts13", "test", tmp_path)


def test_the_benchmark_keeps_rows_with_extra_columns(write: Write) -> None:
    rows = (
        'main-news\tMINE\t2012test\t0001\t3.800\ta "red kite\tthe kite\tsource one\tsource two\n'
        "main-forums\tMINE\t2013\t0002\t0.000\ta boat\ta tree\n"
    )
    pairs = read("stsb", "dev", write("STS/STSBenchmark/sts-dev.csv", rows))
    assert isinstance(pairs, ScoredPairs)
    assert pairs.first == ('a "red kite', "a boat")
    assert pairs.second == ("the kite", "a tree")
    assert pairs.gold.tolist() == [3.8, 0.0]
    assert pairs.subset == ("main-news", "main-forums")


def test_sick_loses_its_carriage_returns_and_its_scale(write: Write) -> None:
    rows = f"{SICK_HEADER}\r\n1\tA kite flies\tA boat sinks\t1\tNEUTRAL\r\n2\tA kite\tThe kite\t4.6\tENTAILMENT\r\n"
    pairs = read("sickr", "test", write("SICK/SICK_test_annotated.txt", rows))
    assert isinstance(pairs, ScoredPairs)
    assert pairs.second == ("A boat sinks", "The kite")
    assert pairs.gold.tolist() == pytest.approx([0.0, 4.5])
    assert pairs.scale == (0.0, 5.0)
    assert pairs.provenance[0].note == "1..5 mapped to 0..5"


def test_sicks_columns_are_found_by_name(write: Write) -> None:
    header = SICK_HEADER.replace(
        "sentence_A\tsentence_B\trelatedness_score", "relatedness_score\tsentence_B\tsentence_A"
    )
    pairs = read("sickr", "dev", write("SICK/SICK_trial.txt", f"{header}\n1\t5\tright\tleft\tNEUTRAL\n"))
    assert isinstance(pairs, ScoredPairs)
    assert (pairs.first, pairs.second) == (("left",), ("right",))
    write("SICK/SICK_train.txt", f"{SICK_HEADER.replace('relatedness_score', 'score')}\n1\ta\tb\t5\tNEUTRAL\n")
    folder = write("SICK/SICK_trial.txt", "x\n")
    with pytest.raises(
        ValueError, match="no column 'relatedness_score': its header has pair_ID, sentence_A, sentence_B, sc"
    ):
        read("sickr", "train", folder)


def test_mrpc_starts_with_a_byte_order_mark(write: Write) -> None:
    rows = f'\ufeff{MRPC_HEADER}\n1\t7\t8\tHe said " yes .\tYes , he said .\n0\t9\t10\tA kite .\tA boat .\n'
    table = read("mrpc", "train", write("MRPC/msr_paraphrase_train.txt", rows))
    assert isinstance(table, LabelledTexts)
    assert table.text == ('He said " yes .', "A kite .")
    assert table.second == ("Yes , he said .", "A boat .")
    assert table.label.tolist() == [1, 0]


def test_trec_train_is_latin_1_and_trec_test_is_not(write: Write) -> None:
    write("TREC/TREC_10.label", "LOC:other Where is my kite ?\n")
    folder = write("TREC/train_5500.label", "HUM:ind Who is Andr\xe9 ?\nNUM:count How many kites ?\n".encode("latin-1"))
    train = read("trec", "train", folder)
    assert isinstance(train, LabelledTexts)
    assert train.text == ("Who is André ?", "How many kites ?")
    assert [train.classes[label] for label in train.label] == ["HUM", "NUM"]
    assert len(read("trec", "test", folder)) == 1
    with pytest.raises(ValueError, match=r"TREC_10\.label line 1: the label is 'WHO', not one of ABBR, DESC"):
        read("trec", "test", write("TREC/TREC_10.label", "WHO:other Where ?\n"))


def test_sst_labels_stand_behind_the_text(write: Write) -> None:
    table = read("sst2", "dev", write("SST/binary/sentiment-dev", "a fine kite . \t1\na poor kite\t0\n"))
    assert isinstance(table, LabelledTexts)
    assert table.text == ("a fine kite .", "a poor kite")
    assert table.label.tolist() == [1, 0]
    with pytest.raises(ValueError, match="sentiment-test line 1: the label is '2', not one of 0, 1"):
        read("sst2", "test", write("SST/binary/sentiment-test", "a kite\t2\n"))


def test_known_blank_lines_become_a_full_stop_and_more_are_refused(write: Write) -> None:
    write("CR/custrev.neg", "the kite broke\n\n")
    folder = write("CR/custrev.pos", "\nit flies\n")
    table = read("cr", "all", folder)
    assert isinstance(table, LabelledTexts)
    assert table.text == ("the kite broke", ".", ".", "it flies")
    assert table.label.tolist() == [0, 0, 1, 1]
    assert table.provenance[0].note == "2 blank lines read as '.', as SentEval evaluates them"
    write("CR/custrev.pos", "\n\n\n\nit flies\n")
    with pytest.raises(
        ValueError, match=r"cr all: 5 empty texts \(the first in row 1\), and the distributed files have 4"
    ):
        read("cr", "all", folder)


def test_inference_pairs_stand_in_three_files(write: Write) -> None:
    write("SNLI/s1.dev", "a kite flies\na kite flies\n")
    write("SNLI/s2.dev", "a thing flies\nnothing flies\n")
    folder = write("SNLI/labels.dev", "entailment\ncontradiction\n")
    table = read("nli", "dev", folder)
    assert isinstance(table, NLIPairs)
    assert table.hypothesis == ("a thing flies", "nothing flies")
    write("SNLI/labels.dev", "entailment\n")
    with pytest.raises(
        ValueError, match=r"different numbers of lines: SNLI/s1\.dev 2, SNLI/s2\.dev 2, SNLI/labels\.dev 1"
    ):
        read("nli", "dev", folder)


def test_the_revision_is_a_hash_of_the_files_read(write: Write) -> None:
    folder = write_sts13(write)
    revisions = [read("sts13", "test", folder).provenance[0].revision for _ in range(2)]
    assert revisions[0] == revisions[1]
    write_sts13(write, "my kite\tyour kitE\n")
    assert read("sts13", "test", folder).provenance[0].revision != revisions[0]


def test_what_senteval_does_not_have_says_where_it_is(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="wiki1m is not among SentEval's files: load it with source='hub'"):
        senteval.read(catalogue.get("wiki1m"), "train", tmp_path)
