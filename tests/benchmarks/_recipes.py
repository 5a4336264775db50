"""One training step of a prompted language model, twice: as this lab makes it, and as the published code does.

The published recipe: one left-padded batch of all texts, the language model with its head over the vocabulary and all
hidden states, the last position of the last of them; a batch too large for the card is accumulated, so that the loss
sees only a part of it at once.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, LlamaConfig, MistralConfig

from pcclab import encoders, losses
from pcclab.encoders import CausalEncoder, LoRA, tiny_causal
from pcclab.training import cached, rhythm

LENGTHS = json.loads((Path(__file__).parent / "lengths.json").read_text(encoding="utf8"))
CONFIGS: dict[str, Callable[[], Any]] = {
    "tiny": lambda: LlamaConfig(vocab_size=2000, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                                num_attention_heads=4, max_position_embeddings=512),
    "LLaMA-50M": lambda: LlamaConfig(vocab_size=32_000, hidden_size=512, intermediate_size=1376, num_hidden_layers=10,
                                     num_attention_heads=8, max_position_embeddings=512),
    "Mistral-7B": lambda: MistralConfig(),
}  # fmt: skip
Rows = list[list[int]]
ALL = 2**31
"""More tokens than any batch has."""


@dataclass(frozen=True)
class Task:
    """What one step trains on.

    Args:
        kind: triplets (InfoNCE with hard negatives, temperature 0.05) or pairs (Pearson).
        rows: of a batch.
        limit: tokens a sentence is cut at.
    """

    kind: str
    rows: int
    limit: int

    def draw(self, vocabulary: int, seed: int) -> tuple[list[Rows], Tensor]:
        """Random tokens in the template, in lengths as they are in the data: a list a side; and random gold."""
        random = np.random.default_rng(seed)
        sides = [
            texts(counts, self.rows, self.limit, vocabulary, random) for counts in LENGTHS[self.kind].values()
        ]  # fmt: skip
        return sides, torch.from_numpy(random.uniform(0, 5, self.rows)).float()


def texts(counts: list[int], rows: int, limit: int, vocabulary: int, random: np.random.Generator) -> Rows:
    """Token ids of so many texts of random words between the template's, lengths drawn by their counts."""
    lengths = random.choice(len(counts), rows, p=np.array(counts) / sum(counts)).clip(1, limit)
    before, after = ([*range(10, 10 + LENGTHS[side])] for side in ("before", "after"))
    return [[*before, *random.integers(30, vocabulary, length).tolist(), *after] for length in lengths]


def save_random(name: str, folder: Path, device: str = "cpu", dtype: torch.dtype = torch.float32) -> None:
    """A model with random weights, its vocabulary head among them, as a folder that both sides load."""
    torch.manual_seed(0)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(CONFIGS[name](), dtype=dtype)
    model.save_pretrained(folder)
    tiny_causal.tokenizer("tiny-llama").save_pretrained(folder)


class Ours:
    """The base model without its head, texts by length, the gradient of the whole batch, bfloat16 where quantised.

    Args:
        folder: of `save_random`.
        adapter: on every linear layer.
        quantization: nf4 or none.
        micro_tokens, keep_tokens: as in training.
        recompute: the layers' activations a second time on the way back.
    """

    def __init__(self, folder: Path, adapter: LoRA, quantization: Any, *, device: str = "cpu", **path: Any) -> None:
        loaded = encoders.load(folder, adapter=adapter, quantization=quantization, device=device)
        assert isinstance(loaded, CausalEncoder)
        self.encoder, self.quantized = loaded, quantization != "none"
        self.model = loaded.trunk.train()
        self.take(**path)
        self.optimizer = torch.optim.AdamW(loaded.weights, lr=1e-6, fused=True)

    def take(self, *, micro_tokens: int = ALL, keep_tokens: int = ALL, recompute: bool = False) -> None:
        """The path of the next steps; without a word, the whole batch in one graph."""
        self.micro_tokens, self.keep_tokens = micro_tokens, keep_tokens
        rhythm.recompute(self.model, recompute)

    def weights(self) -> dict[str, torch.nn.Parameter]:
        return _by_layer(self.model)

    def gradients(self, task: Task, sides: list[Rows], gold: Tensor) -> float:
        device = self.encoder.device

        def embed(ids: Tensor, mask: Tensor) -> Tensor:
            with torch.autocast(device.type, torch.bfloat16, enabled=self.quantized):
                return self.encoder.embed(ids, mask)

        def objective(embeddings: Tensor) -> Tensor:
            parts = embeddings.split(task.rows)
            if task.kind == "triplets":
                return losses.info_nce(*parts, temperature=0.05)
            return losses.pearson(functional.cosine_similarity(*parts), gold.to(device))

        loss = cached.backward(
            embed, [row for side in sides for row in side], objective, pad_id=0, device=device,
            micro_tokens=self.micro_tokens, keep_tokens=self.keep_tokens,
        )  # fmt: skip
        return float(loss)

    def step(self, task: Task, sides: list[Rows], gold: Tensor) -> float:
        loss = self.gradients(task, sides, gold)
        torch.nn.utils.clip_grad_norm_(self.encoder.weights, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss


class Published:
    """The recipe as it is published.

    Args:
        folder, adapter, quantization: as `Ours`; the products with 4-bit weights are computed in float32, under
            autocast to float16.
        parts: accumulated parts of a batch, each with a loss of its own; 1 for a batch in one graph.
        recompute: as `Ours`.
    """

    def __init__(self, folder: Path, adapter: LoRA, quantization: Any, *, device: str = "cpu", **path: Any) -> None:
        from peft import LoraConfig, get_peft_model

        stored = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
                                    bnb_4bit_compute_dtype=torch.float32)  # fmt: skip
        more: dict[str, Any] = {"dtype": torch.float32}
        if quantization == "nf4":
            more = {"quantization_config": stored, "dtype": torch.float16}
        model = AutoModelForCausalLM.from_pretrained(folder, device_map={"": device}, **more)
        linear = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
        config = LoraConfig(r=adapter.rank, lora_alpha=int(adapter.alpha), lora_dropout=adapter.dropout,
                            target_modules=linear, bias="none", task_type="CAUSAL_LM")  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers by an old name
            self.model = get_peft_model(model, config).train()
        self.base, self.half, self.device = model, device != "cpu", torch.device(device)
        self.take(**path)
        self.trained = [weights for weights in self.model.parameters() if weights.requires_grad]
        self.optimizer = torch.optim.AdamW(self.trained, lr=1e-6)
        self.scaler = torch.amp.GradScaler(enabled=self.half)

    def take(self, *, parts: int = 1, recompute: bool = False) -> None:
        self.parts = parts
        rhythm.recompute(self.base, recompute)

    def weights(self) -> dict[str, torch.nn.Parameter]:
        return _by_layer(self.model)

    def gradients(self, task: Task, sides: list[Rows], gold: Tensor) -> float:
        total = 0.0
        for rows in np.array_split(np.arange(task.rows), self.parts):
            batch = [side[row] for side in sides for row in rows]
            width = max(map(len, batch))
            ids = torch.tensor([[0] * (width - len(row)) + row for row in batch], device=self.device)
            mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in batch], device=self.device)
            with torch.autocast(self.device.type, torch.float16, enabled=self.half):
                output = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=True, return_dict=True)
                parts = output.hidden_states[-1][:, -1, :].split(len(rows))
                loss = _infonce(*parts) if task.kind == "triplets" else _pearson(*parts, gold[rows].to(self.device))
            self.scaler.scale(loss / self.parts).backward()
            total += float(loss.detach()) / self.parts
        return total

    def step(self, task: Task, sides: list[Rows], gold: Tensor) -> float:
        loss = self.gradients(task, sides, gold)
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.trained, 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        return loss


def _infonce(anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    scores = [functional.cosine_similarity(anchor[:, None], other[None], dim=-1) for other in (positive, negative)]
    return functional.cross_entropy(torch.cat(scores, 1) / 0.05, torch.arange(len(anchor), device=anchor.device))


def _pearson(first: Tensor, second: Tensor, gold: Tensor) -> Tensor:
    similarity = functional.cosine_similarity(first.float(), second.float())
    return 1 - functional.cosine_similarity(similarity - similarity.mean(), gold - gold.mean(), dim=0)


def _by_layer(model: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """The trained weights, named from the list of layers on, where both sides' names agree."""
    return {name[name.index("layers.") :]: w for name, w in model.named_parameters() if w.requires_grad}


def same_start(first: Ours | Published, second: Ours | Published) -> None:
    """Give both the same random adapter, one that changes what the model says."""
    torch.manual_seed(1)
    ours, theirs = first.weights(), second.weights()
    assert set(ours) == set(theirs) and ours, sorted(set(ours) ^ set(theirs))[:2]
    with torch.no_grad():
        for name, weights in ours.items():
            weights.copy_(torch.randn(weights.shape) * 0.02)
            theirs[name].copy_(weights)


def difference(first: Ours | Published, second: Ours | Published, task: Task, vocabulary: int) -> dict[str, float]:
    """How far the two are from doing the same job, without dropout: of the losses; of the gradients, to their size."""
    sides, gold = task.draw(vocabulary, 0)
    told = []
    for side in (first, second):
        random = [module for module in side.model.modules() if isinstance(module, torch.nn.Dropout)]
        shares = [module.p for module in random]
        for module in random:
            module.p = 0.0
        loss = side.gradients(task, sides, gold)
        told.append((loss, {name: w.grad.detach().float().cpu() for name, w in side.weights().items()}))
        side.optimizer.zero_grad()
        for module, share in zip(random, shares, strict=True):
            module.p = share
    size = max(float(gradient.abs().max()) for gradient in told[0][1].values())
    worst = max(float((gradient - told[1][1][name]).abs().max()) for name, gradient in told[0][1].items())
    return {"losses": abs(told[0][0] - told[1][0]), "gradients": worst / size}
