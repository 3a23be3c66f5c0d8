# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Groups: attention stays inside groups of a fixed size, and another mask applies within each."""
# example: batchify_mask_mod(causal_mask, 64)


def batchify_mask_mod(mask_mod, batchify_size: int):
    def inside_group(b, h, q_idx, kv_idx):
        same = q_idx // batchify_size == kv_idx // batchify_size
        return same & mask_mod(b, h, q_idx % batchify_size, kv_idx % batchify_size)

    return inside_group
