# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Relative position: the score grows with the distance from key to query, times a factor."""
# example: relative_position(0.01)
# example: relative_position_table(torch.linspace(-1, 1, 255), 128)


def relative_position(factor: float = 1.0):
    def score_mod(score, b, h, q_idx, kv_idx):
        return score + (q_idx - kv_idx) * factor

    return score_mod


def relative_position_table(table, length: int):
    """A learned bias for each distance: table has 2 * length - 1 entries, the middle one is distance 0."""

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + table[q_idx - kv_idx + (length - 1)]

    return score_mod
