"""A small definition of each kind beside regression and threshold, over the readings of ``tests.steps.history``."""

from __future__ import annotations

_HEAD = "source: lab\nstart: 2025-03-02\nround: {length: 1 h}\n"
#: By the name of the definition, which is that of its kind.
COMPANIONS = {
    "safe_zones": "kind: safe_zones\nnodes: [a, b]\nvalues: [x, y]\nregion: {box: [[-0.4, 0.4], [-6, 6]]}\n"
    "design: {rounds: 12, every: 2}\n" + _HEAD,
    "shared_learning": "kind: shared_learning\nnodes: [a, b]\nresponse: y\nfeatures: [x]\nlearning_rate: 0.1\n"
    "sync: {dynamic: 0.2, every: 2}\n" + _HEAD,
    # The third machine is both of the others together.
    "latent_faults": "kind: latent_faults\nnodes: [a, b, {name: both, keys: [a, b]}]\ncounters: [x, y]\nalpha: 0.3\n"
    "window: {sliding: 30}\nnormalise: {low: 0.7, high: 1.4}\n" + _HEAD,
}
