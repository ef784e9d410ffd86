"""A fitted classifier as it is deployed: two vectors and a number, in a file of a few kB.

Whitening, sharpness and readout fold into the raw entries of a token x: with z = root·(x − m),

    τ⟨q, z⟩ = ⟨q′, x⟩ + const,      ⟨coef, z⟩ + b = ⟨c, x⟩ + b′,      score = Σ_ℓ softmax(⟨q′, x⟩)_ℓ ⟨c, x_ℓ⟩ + b′,

since a constant shifts no softmax and the weights of a bag add up to one. Several classes hold one
such triple each. The file is an `npz` without any pickled object, and knows its own checksum.
"""  # noqa: E501

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from ..kit.checks import check_choice
from .arrays import Array, Bags, as_bags
from .exported import CODE, write_onnx

FORMAT = "needle bag scorer 1"
PARTS = ("query", "coef", "offset", "threshold", "slope", "shift")


@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores of bags by k triples (q′, c, b′); k is 1 for two classes.

    Attributes
    ----------
    query, coef : (k, d);  offset : (k,)
    threshold : (k,), the score from which on a bag is called positive
    slope, shift : (k,), probability = σ(slope·score + shift), the calibration
    classes : the labels, the positive one last where there are two
    facts : what else is worth keeping, such as the sharpness

    >>> one = Scorer.made(np.array([[2.0, 0.0]]), np.array([[0.0, 1.0]]), [0.5], ["no", "yes"])
    >>> round(float(one.scores([np.array([[0.0, 1.0], [9.0, 3.0]])])[0, 0]), 3)
    3.5
    """

    query: Array
    coef: Array
    offset: Array
    threshold: Array
    slope: Array
    shift: Array
    classes: Array
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def made(cls, query: Array, coef: Array, offset: Any, classes: Any, **facts: Any) -> Scorer:
        """With the threshold 0 and probabilities as the logistic loss means them."""
        k = len(query)
        return cls(
            query, coef, np.asarray(offset, dtype=float), np.zeros(k), np.ones(k), np.zeros(k),
            np.asarray(classes), facts,
        )  # fmt: skip

    def bags(self, X: Any) -> Bags:
        """Bags whose tokens have the right number of entries."""
        bags = as_bags(X)
        if bags.tokens.shape[1] != self.query.shape[1]:
            raise ValueError(
                f"X with tokens of {bags.tokens.shape[1]} entries is not allowed: the model was "
                f"trained on tokens of {self.query.shape[1]}"
            )
        return bags

    def scores(self, X: Any) -> Array:
        """(n, k)."""
        bags = self.bags(X)
        values, found = bags.along(self.coef.T), np.empty((len(bags), len(self.query)))
        for k, weights in enumerate(self.weights(bags)):
            found[:, k] = bags.sums(weights * values[:, k]) + self.offset[k]
        return found

    def weights(self, X: Any) -> list[Array]:
        """For each triple the attention weights of all tokens (N,)."""
        bags = self.bags(X)
        return [bags.weights(heights) for heights in bags.along(self.query.T).T]

    def probabilities(self, X: Any) -> Array:
        """(n, number of classes), rows adding up to one."""
        positive = expit(self.slope * self.scores(X) + self.shift)
        if len(self.query) == 1:
            return np.column_stack([1 - positive[:, 0], positive[:, 0]])
        return positive / positive.sum(axis=1, keepdims=True)

    def labels(self, X: Any) -> Array:
        """The label of each bag."""
        scores = self.scores(X) - self.threshold
        if len(self.query) == 1:
            return self.classes[(scores[:, 0] > 0).astype(int)]
        return self.classes[scores.argmax(axis=1)]

    def instance_scores(self, X: Any) -> list[Array]:
        """What each token says for the positive class, ⟨c, x⟩ + b′: (L_i,), or (L_i, k) for k > 1.

        It localizes also where no sharpness was chosen and attention is uniform: the score of a bag
        is the average of these under the attention weights.
        """
        bags = self.bags(X)
        values = bags.along(self.coef.T) + self.offset
        parts = np.split(values[:, 0] if len(self.query) == 1 else values, bags.starts[1:-1])
        return list(parts)

    def code(self, language: str = "numpy") -> str:
        """The scorer of one bag in a few lines, for "numpy" or "torch"; it needs this file's
        vectors by the names query, coef, offset."""
        return CODE[check_choice("language", language, tuple(CODE))].format(d=self.query.shape[1])

    def save_onnx(self, path: str | Path) -> None:
        """Write the scorer of one bag as an ONNX model; needs the package onnx.

        Its input `tokens` is a table (L, d) of doubles, L free; its output `score` (k,) what
        `decision_function` gives for the bag.
        """
        write_onnx(self.query, self.coef, self.offset - self.threshold, path)

    def save(self, path: str | Path) -> None:
        """Write the file; its name is taken as it is."""
        head = {
            "format": FORMAT, "classes": self.classes.tolist(), "facts": self.facts,
            "kind": self.classes.dtype.str,
        }  # fmt: skip
        parts = {name: np.asarray(getattr(self, name), dtype="<f8") for name in PARTS}
        text = json.dumps(head, ensure_ascii=False, allow_nan=False).encode()
        parts["head"] = np.frombuffer(text, dtype=np.uint8)
        parts["checksum"] = np.frombuffer(_checksum(parts), dtype=np.uint8)
        packed = io.BytesIO()
        np.savez_compressed(packed, **parts)  # type: ignore[arg-type]
        Path(path).write_bytes(packed.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> Scorer:
        """Read such a file; one that is damaged, or something else, is refused."""
        try:
            with np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False) as data:
                parts = {name: data[name] for name in data.files}
            checksum = parts.pop("checksum").tobytes()
            head = json.loads(parts["head"].tobytes())
            known = head["format"] == FORMAT and checksum == _checksum(parts)
        except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile, TypeError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            known = False
        except Exception as error:  # zlib.error and what else a damaged archive may raise
            raise ValueError(_refusal(path)) from error
        if not known:
            raise ValueError(_refusal(path))
        classes = np.array(head["classes"], dtype=head["kind"])
        named: dict[str, Any] = {name: parts[name] for name in PARTS}
        return cls(**named, classes=classes, facts=head["facts"])


def _refusal(path: str | Path) -> str:
    return f"path = {str(path)!r} is not allowed: the file is damaged, or holds no saved model"


def _checksum(parts: dict[str, Array]) -> bytes:
    digest = hashlib.sha256()
    for name in sorted(parts):
        digest.update(f"{name} {parts[name].shape}".encode() + parts[name].tobytes())
    return digest.digest()
