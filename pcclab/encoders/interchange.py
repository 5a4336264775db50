"""Folders that sentence-transformers reads and writes: what one declares, and how to make one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import snapshot_download, try_to_load_from_cache
from transformers import AutoTokenizer

from pcclab import files
from pcclab.encoders import projection
from pcclab.encoders.pooling import Pooling

MODES: dict[str, Pooling] = {"cls": "cls", "mean": "mean", "lasttoken": "last"}
"""Their names of the poolings that both know. `first-last` is ours alone."""
PROBES = ("It rained.", 'quotes "and" lines\nof two', "?!")
_FLAGS = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens", "lasttoken": "pooling_mode_lasttoken"}
_DECLARATIONS = ("modules.json", "sentence_bert_config.json", "tokenizer_config.json", "[0-9]_*/*")
_ORDER = ("Transformer", "Pooling", "Dense", "Normalize")
_OTHERS = ("pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens")


def declared(folder: Path, *, pooling: Pooling | None = None) -> dict[str, Any]:
    """Pooling, length and dense layers that a sentence-transformers folder declares, as far as it has its files.

    Args:
        folder: with `modules.json` or `1_Pooling`.
        pooling: what will be used instead of the folder's own, which then need not be one of ours.

    Raises: ValueError for a pooling this lab does not have, or modules in another order than trunk, pooling, dense
        layers, normalisation; the last one changes no cosine.
    """
    found: dict[str, Any] = {}
    modules = _read(folder / "modules.json") or []
    kinds = [module["type"].rsplit(".", 1)[-1] for module in modules]
    if strange := sorted(set(kinds) - {"Transformer", "Pooling", "Dense", "Normalize"}):
        raise ValueError(
            f"{folder} adds {', '.join(strange)}: only trunk, pooling, dense layers, normalisation are read"
        )
    if "Dense" in kinds and kinds != sorted(kinds, key=_ORDER.index):
        told = f"{folder} has {', '.join(kinds)} in this order"
        raise ValueError(f"{told}: dense layers are read between the pooling and the normalisation")
    found["dense"] = tuple(
        folder / str(module.get("path", "2_Dense"))
        for module, kind in zip(modules, kinds, strict=True)
        if kind == "Dense"
    )
    place = next(
        (module["path"] for module, kind in zip(modules, kinds, strict=True) if kind == "Pooling"), "1_Pooling"
    )
    config = _read(folder / place / "config.json")
    if config is not None and pooling is None:
        found["pooling"] = _pooling(folder, config)
    length = (_read(folder / "sentence_bert_config.json") or {}).get("max_seq_length")
    if length is None and modules:
        # Newer versions leave the length to the tokenizer, which says 1e30 where it knows none.
        length = (_read(folder / "tokenizer_config.json") or {}).get("model_max_length")
        length = length if isinstance(length, int) and length < 10**6 else None
    if length is not None:
        found["max_tokens"] = length
    return found


def of_hub(name: str, revision: str | None) -> Path:
    """A folder with what a hub model declares beside its weights: modules, pooling, length, dense layers.

    Raises: ValueError where neither the hub nor the cache tells.
    """
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=list(_DECLARATIONS)))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"what {name} declares beside its weights, such as its pooling, cannot be read "
            f"({str(error).splitlines()[0]}): load it once with a network, or name a folder"
        ) from error


def commit(name: str, revision: str | None) -> str:
    """The commit at which a hub model lies in the cache; "local" for a folder."""
    file = None if Path(name).is_dir() else try_to_load_from_cache(name, "config.json", revision=revision or "main")
    return Path(file).parent.name if isinstance(file, str) else "local"


def refuse(settings: Any) -> None:
    """Raise ValueError where an encoder of these settings would embed otherwise in sentence-transformers."""
    if settings.pooling not in MODES.values():
        raise ValueError(
            f"{settings.pooling} pooling is unknown to sentence-transformers: export an encoder with cls, mean or last"
        )
    if getattr(settings, "adapter", None):
        raise ValueError(f"{settings.name} has an adapter, which an export would leave out: merge it first (`merged`)")


def verify(folder: Path, ids: Sequence[Sequence[int]]) -> None:
    """Raise ValueError where the tokenizer that others read from a folder gives not `ids` for `PROBES`."""
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    read = tokenizer(list(PROBES), verbose=False)["input_ids"]
    for text, ours, theirs in zip(PROBES, ids, read, strict=True):
        if list(ours) != theirs:
            raise ValueError(
                f"{type(tokenizer).__name__}, which others take for this model, reads {text!r} as "
                f"{tokenizer.decode(theirs)!r}: keep the model in this lab's own form (`save`)"
            )


def write(
    folder: Path, *, pooling: Pooling, dim: int, max_tokens: int, card: str, dense: Sequence[projection.Dense] = ()
) -> None:
    """Add to a folder with trunk and tokenizer the files that make it a sentence-transformers model.

    The files are of the older form, which every version reads.

    Args:
        folder: exists.
        pooling, max_tokens: of the encoder.
        dim: length of the pooled vectors, before any dense layer.
        card: text of its README.md.
        dense: layers behind the pooling.
    """
    theirs = next(name for name, ours in MODES.items() if ours == pooling)
    places = [f"{place}_Dense" for place in range(2, 2 + len(dense))]
    last = f"{2 + len(dense)}_Normalize"
    modules = [
        ("", "Transformer"),
        ("1_Pooling", "Pooling"),
        *((place, "Dense") for place in places),
        (last, "Normalize"),
    ]
    rows = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (path, kind) in enumerate(modules)
    ]
    files.write_json(folder / "modules.json", rows)
    files.write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_tokens, "do_lower_case": False})
    (folder / "1_Pooling").mkdir()
    (folder / last).mkdir()
    for place, layer in zip(places, dense, strict=True):
        projection.write(folder / place, layer)
    flags = dict.fromkeys((*_FLAGS.values(), *_OTHERS), False) | {_FLAGS[theirs]: True}
    files.write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": dim, **flags})
    files.write_json(folder / last / "config.json", {})
    files.write_json(folder / "config_sentence_transformers.json", {"similarity_fn_name": "cosine"})
    files.write_text(folder / "README.md", card)


def model_card(name: str, facts: Mapping[str, Any]) -> str:
    """A model card: what was trained from what, on what, how, and what it scored.

    Args:
        name: of the model.
        facts: a heading for each fact, such as "base model", "data", "leakage", "objective", "seeds", "command"; a
            mapping, such as scores by task, becomes a table. A fact that is not there is not made up.

    >>> print(model_card("mine", {"base model": "minilm", "Spearman x 100": {"STS-B": "82.03 [80.1, 83.8]"}}))
    ---
    library_name: sentence-transformers
    pipeline_tag: sentence-similarity
    tags:
    - sentence-transformers
    - semantic-textual-similarity
    ---
    <BLANKLINE>
    # mine
    <BLANKLINE>
    Made with pcclab.
    <BLANKLINE>
    - **base model**: minilm
    <BLANKLINE>
    | Spearman x 100 | |
    |:---|---:|
    | STS-B | 82.03 [80.1, 83.8] |
    <BLANKLINE>
    """
    head: dict[str, Any] = {"library_name": "sentence-transformers", "pipeline_tag": "sentence-similarity"}
    head["tags"] = ["sentence-transformers", "semantic-textual-similarity"]
    parts = [f"---\n{yaml.safe_dump(head, sort_keys=False)}---", f"# {name}", "Made with pcclab."]
    lines = [f"- **{fact}**: {value}" for fact, value in facts.items() if not isinstance(value, Mapping)]
    parts += ["\n".join(lines)] if lines else []
    for fact, value in facts.items():
        if isinstance(value, Mapping):
            rows = [f"| {row} | {_shown(figure)} |" for row, figure in value.items()]
            parts.append("\n".join([f"| {fact} | |", "|:---|---:|", *rows]))
    return "\n\n".join(parts) + "\n"


def _pooling(folder: Path, config: Mapping[str, Any]) -> Pooling:
    modes = config.get("pooling_mode")
    if modes is None:
        known = {flag: name for name, flag in _FLAGS.items()} | {flag: flag for flag in _OTHERS}
        modes = [name for flag, name in known.items() if config.get(flag)]
    modes = [modes] if isinstance(modes, str) else list(modes)
    if len(modes) != 1 or modes[0] not in MODES:
        raise ValueError(f"{folder} pools by {' and '.join(modes) or 'nothing'}: this lab has {', '.join(MODES)}; "
                         "give pooling= to read it another way")  # fmt: skip
    return MODES[modes[0]]


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf8")) if path.is_file() else None


def _shown(figure: Any) -> str:
    return f"{figure:.2f}" if isinstance(figure, float) else str(figure)
