"""Objectives on pairs of pairs: of two rated pairs, the one rated higher should be the closer one."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from pcclab.losses.batches import above_zero, by_rows, rated


def cosent(
    similarity: Float[Tensor, " pairs"], gold: Float[Tensor, " pairs"], *, temperature: float = 0.05
) -> Float[Tensor, ""]:
    r"""A smooth maximum of how far any lower rated pair lies above a higher rated one.

    .. math:: \log\Big(1 + \sum_{g_i > g_j} e^{(s_j - s_i) / t}\Big)

    Args:
        similarity: cosines of the pairs.
        gold: human ratings of the same pairs; only their order counts.
        temperature: t, which the differences are divided by; above 0.

    Returns:
        A scalar of at least 0, never narrower than float32; 0 with a zero gradient where all ratings are equal, and
        log(1 + number of unequal pairs) where all similarities are.

    Source: Su 2022; Huang et al. 2024, doi 10.1109/TASLP.2024.3402087.
    Relations: blind to any monotone map of the gold and to a shift of the similarities. A sum, where `kendall` is a
        mean: it grows with the logarithm of the batch, and its gradient with the worst inversions.
    Raises: ValueError when the shapes differ, when fewer than two pairs are given, when a rating is not finite, or
        when the temperature is not above 0.

    >>> round(float(cosent(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 4.0]))), 4)    # log 2
    0.6931
    """
    above_zero(temperature, "temperature", usual=0.05)
    similarity, gold = rated(similarity, gold)
    scaled = similarity / temperature
    nothing = -1e30  # its exponential is 0 and, unlike minus infinity's, it has a gradient where a whole row is empty

    def block(part: slice) -> Tensor:
        above = scaled - scaled[part, None]
        return above.masked_fill(gold[part, None] <= gold, nothing).logsumexp(1)

    return functional.pad(by_rows(block, len(gold)), (1, 0)).logsumexp(0)


def angle(
    first: Float[Tensor, "pairs dim"],
    second: Float[Tensor, "pairs dim"],
    gold: Float[Tensor, " pairs"],
    *,
    temperature: float = 0.05,
    cosine_weight: float = 0.0,
    contrast_weight: float = 0.0,
    other_temperature: float = 0.05,
    positive_from: float = 4.0,
) -> Float[Tensor, ""]:
    r"""CoSENT on the angle between embeddings read as complex numbers, with CoSENT and InfoNCE on cosines if weighted.

    .. math:: \mathrm{cosent}(|\mathrm{Re}\, q + \mathrm{Im}\, q|) + w_2\, \mathrm{cosent}(\cos) + w_3\,
        \mathrm{InfoNCE}, \quad q = \sum_k z_k \bar w_k / (\|z\| \|w\|)

    The first half of an embedding holds the real parts of z or w, the second half the imaginary parts.

    Args:
        first: embeddings of the pairs' first sides; they need not be normalised. An odd dimension is padded by a 0.
        second: of their second sides.
        gold: human ratings of the pairs.
        temperature: of the angle's term.
        cosine_weight: w2; 0 leaves the term out.
        contrast_weight: w3, of finding the second side of each positive pair among all second sides; 0 leaves the
            term out, and so does a batch without a positive.
        other_temperature: of both terms on cosines.
        positive_from: pairs of at least this rating are positives of the contrast.

    Returns:
        A scalar of at least 0, never narrower than float32. Where all ratings are equal, the two ordering terms are
        0 with a zero gradient.

    Source: Li and Li 2023, arXiv 2309.12871.
    Departs: by default it is sentence-transformers' AnglELoss, the angle's term alone at temperature 0.05; weights of
        1 give the paper's sum of three. The paper takes an angle of z / w, the published code and
        sentence-transformers this sum of real and imaginary part, whose absolute value is 1 for equal embeddings and
        reaches sqrt(2) at 45 degrees. The paper leaves open which graded pairs are positives.
    Relations: `cosent` is its second term alone. The angle sees a swap of the two sides, the cosine does not. Blind to
        the length of every embedding.
    Raises: ValueError when shapes differ, when fewer than two pairs are given, when a rating is not finite, when a
        temperature is not above 0, or when a weight is below 0.

    >>> one, gold = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([5.0, 0.0])
    >>> round(float(angle(one, torch.tensor([[1.0, 0.0], [-1.0, 1.0]]), gold)), 4)    # log(1 + e^((1.4142 - 1) / 0.05))
    8.2845
    """
    above_zero(temperature, "temperature", usual=0.05)
    above_zero(other_temperature, "other_temperature", usual=0.05)
    if not (0 <= cosine_weight < float("inf") and 0 <= contrast_weight < float("inf")):
        raise ValueError(f"weights are {cosine_weight} and {contrast_weight}: give finite numbers of at least 0")
    if first.shape != second.shape:
        raise ValueError(f"shapes {tuple(first.shape)} and {tuple(second.shape)}: both sides need one row a pair")
    z, gold = rated(first, gold, what="row on each side")
    w = functional.normalize(second.to(z.dtype), dim=-1)
    z = functional.normalize(z, dim=-1)
    odd = (0, z.shape[1] % 2)
    a, b = functional.pad(z, odd).chunk(2, dim=-1)
    c, d = functional.pad(w, odd).chunk(2, dim=-1)
    loss = cosent((a * c + b * d + b * c - a * d).sum(-1).abs(), gold, temperature=temperature)
    if cosine_weight > 0:
        loss = loss + cosine_weight * cosent((z * w).sum(-1), gold, temperature=other_temperature)
    positives = (gold >= positive_from).nonzero().squeeze(1)
    if contrast_weight > 0 and len(positives):
        with torch.autocast(z.device.type, enabled=False):  # it would round the cosines to 8 bits
            logits = z[positives] @ w.T / other_temperature
        loss = loss + contrast_weight * functional.cross_entropy(logits, positives)
    return loss


def kendall(
    similarity: Float[Tensor, " pairs"], gold: Float[Tensor, " pairs"], *, temperature: float = 0.2
) -> Float[Tensor, ""]:
    r"""One minus the share of pairs of unequal rating in the right order less those in the wrong one, by degrees.

    .. math:: 1 - \frac1{|P|} \sum_{(i,j) \in P} \tanh\frac{s_i - s_j}{t}, \quad P = \{(i, j): g_i > g_j\}

    Args:
        similarity: cosines of the pairs.
        gold: human ratings of the same pairs; only their order counts.
        temperature: t, in units of the similarity. Cosines of MiniLM on STS-B dev spread by 0.3, so that at 0.2 most
            pairs lie on the slope of the curve; being a mean, it serves every batch size.

    Returns:
        A scalar in [0, 2], never narrower than float32; 1 with a zero gradient where all ratings are equal.

    Source: the sign in Kendall's tau made smooth; tied ratings are left out as in tau-b.
    Departs: as the temperature falls it becomes one minus Somers' D of the similarities given the gold. Without tied
        similarities tau-b is D times the square root of the share of pairs in P, a constant of the batch, so both have
        the same order and the same gradient but for that factor; with untied gold they are equal.
    Relations: blind to any monotone map of the gold and to a shift of the similarities, in the limit to any monotone
        map of them. `cosent` sums over the same pairs and heeds the worst; here a gross inversion hardly counts more
        than a plain one. As the temperature rises it becomes linear in the similarities.
    Raises: ValueError when the shapes differ, when fewer than two pairs are given, when a rating is not finite, or
        when the temperature is not above 0.

    >>> round(float(kendall(torch.tensor([0.3, 0.1, 0.2]), torch.tensor([5.0, 1.0, 1.0]), temperature=0.001)), 4)
    0.0
    """
    above_zero(temperature, "temperature", usual=0.2)
    similarity, gold = rated(similarity, gold)

    def block(part: slice) -> Tensor:
        agreement = ((similarity[part, None] - similarity) / temperature).tanh()
        return agreement.masked_fill(gold[part, None] <= gold, 0).sum(1)

    _, tied = torch.unique(gold, return_counts=True)
    pairs = (len(gold) ** 2 - int(tied.square().sum())) // 2
    return 1 - by_rows(block, len(gold)).sum() / max(pairs, 1)


def rank_n_contrast(
    features: Float[Tensor, "pairs dim"], gold: Float[Tensor, " pairs"], *, temperature: float = 0.01
) -> Float[Tensor, ""]:
    r"""Mean cross-entropy of finding each other row j among the rows rated at least as far from row i as j is.

    .. math:: -\frac1{n (n-1)} \sum_{i \ne j} \log \frac{e^{-\|f_i - f_j\| / t}}
        {\sum_{k \ne i,\; |g_i - g_k| \ge |g_i - g_j|} e^{-\|f_i - f_k\| / t}}

    Args:
        features: one vector a pair, the same for both orders of its sides, such as the product of the normalised ones.
        gold: human ratings of the pairs. Only the order of their distances counts; distances that differ by less than
            about 1e-5 of the ratings' range are equal, for float32 tells 0.6 - 0.4 from 0.4 - 0.2.
        temperature: t, in units of the features' distance. Products of normalised embeddings lie one to two times
            1 / sqrt(dim) apart; those of MiniLM (384 dimensions) on STS-B dev 0.087, give or take 0.009. At 0.01
            such differences are about one unit; at the paper's 2, made for longer features, all candidates look alike.

    Returns:
        A scalar of at least 0, never narrower than float32. It is the mean of log(number of candidates) where all
        features are equal; equal ratings draw all rows together.

    Source: Zha et al. 2023, arXiv 2210.01189, on features of pairs instead of single inputs.
    Departs: the paper's similarity is the negative distance too, at temperature 2.
    Relations: it orders neighbours in the space of pairs and never looks at a cosine, so a cosine follows only as far
        as the features do; `info_nce` is the case of one near class against the rest. Blind to a shift or a turn of
        the features, and to a shift or a scale of the gold.
    Raises: ValueError when the shapes differ, when fewer than two pairs are given, when a rating is not finite, or
        when the temperature is not above 0.

    >>> near = torch.tensor([[0.0], [0.01], [0.5]])
    >>> gold = torch.tensor([0.0, 1.0, 5.0])
    >>> bool(rank_n_contrast(near, gold) < rank_n_contrast(near, gold.flip(0)[[1, 0, 2]]))
    True
    """
    above_zero(temperature, "temperature", usual=0.01)
    features, gold = rated(features, gold, what="row of features")
    size = len(gold)
    grid = 2**-17 * (gold.max() - gold.min()).double().clamp(min=torch.finfo(torch.float32).tiny)

    def block(part: slice) -> Tensor:
        # Not by matrix product: that loses the digits of small distances. A distance of 0 has a gradient of 0.
        exact = "donot_use_mm_for_euclid_dist"
        close = -torch.cdist(features[part], features, compute_mode=exact) / temperature
        apart = ((gold[part, None].double() - gold).abs() / grid).round()
        itself = torch.arange(size, device=gold.device)[part, None] == torch.arange(size, device=gold.device)
        # Each row's candidates are a tail of the list sorted by distance in rating; itself comes before all tails.
        apart, order = apart.masked_fill(itself, -1).sort(dim=1)
        close = close.gather(1, order)
        tails = close.flip(1).logcumsumexp(1).flip(1)
        start = torch.searchsorted(apart, apart)  # equal distances share the tail of the first of them
        return (tails.gather(1, start) - close)[:, 1:].mean(1)

    return by_rows(block, size).mean()
