"""The monitor of docs/monitors.md as a plain loop over rounds and nodes, from the definition and nothing else."""

from __future__ import annotations

import numpy as np


def value_of(constraint, ahat, beta0, big_d, d, eps):
    """(value, norm term) of the local test for one node."""
    inverse = np.linalg.inv(ahat)
    m, w = inverse @ big_d, inverse @ (d - big_d @ beta0)
    if constraint == "paper":
        s = np.linalg.norm(m, 2)
        return eps * s + np.linalg.norm(inverse @ d) + np.linalg.norm(inverse @ big_d @ beta0), s
    if constraint == "residual":
        s = np.linalg.norm(m, 2)
        return eps * s + np.linalg.norm(w), s
    if constraint == "onesided":
        s = np.linalg.eigvalsh(-(m + m.T) / 2)[-1]
        return eps * s + np.linalg.norm(w), s
    r, s_matrix = d - big_d @ beta0, ahat + big_d
    if constraint == "energy":
        values, vectors = np.linalg.eigh(ahat)
        root = vectors @ np.diag(values**-0.5) @ vectors.T
        s = np.linalg.eigvalsh(-root @ big_d @ root)[-1]
        return np.linalg.norm(root @ r) / np.sqrt(values[0]) + eps * s, s
    smallest = np.linalg.eigvalsh(s_matrix)[0]
    value = np.sqrt(r @ np.linalg.solve(s_matrix, r) / smallest) if smallest > 0 else np.inf
    return value, -np.inf


def identifiable(a):
    if np.any(np.diag(a) <= 0):
        return False
    q = np.sqrt(np.diag(a))
    values = np.linalg.eigvalsh(a / np.outer(q, q))
    return values[0] / values[-1] >= 1e-12


def run(x, y, window, infinite, eps, constraint):
    """Events of the local detector and changes of the exact one.

    Returns:
        list of (round, violating nodes, beta or None), list of (round, beta), errors of the local one per round.
    """
    rounds, k, m = x.shape
    syncs, changes, errors = [], [], []
    reference = exact = None
    for t in range(rounds):
        first = 0 if infinite else max(0, t - window + 1)
        if t < window - 1:
            continue
        a = np.array([x[first : t + 1, j].T @ x[first : t + 1, j] for j in range(k)])
        c = np.array([x[first : t + 1, j].T @ y[first : t + 1, j] for j in range(k)])
        good = identifiable(a.sum(axis=0))
        beta = np.linalg.lstsq(x[first : t + 1].reshape(-1, m), y[first : t + 1].reshape(-1), rcond=None)[0]
        if exact is None:
            if good:
                reference, exact = (a, c, beta), beta
            continue
        if good and np.linalg.norm(beta - exact) > eps * (1 + 1e-9):
            changes.append((t, beta))
            exact = beta
        if reference is None:
            violators = []
        else:
            a0, c0, beta0 = reference
            violators = []
            for j in range(k):
                value, s = value_of(constraint, a0.mean(axis=0), beta0, a[j] - a0[j], c[j] - c0[j], eps)
                if not (value <= eps * (1 + 1e-9) and s < 1 - 1e-9):
                    violators.append(j)
        if reference is None or violators:
            reference = (a, c, beta) if good else None
            syncs.append((t, tuple(violators), beta if good else None))
        errors.append(np.linalg.norm(beta - reference[2]) if reference and good else np.nan)
    return syncs, changes, errors
