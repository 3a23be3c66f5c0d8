# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Documents with prefixes (jagged prefix-LM): inside each document the first keys are seen by all, the rest is causal."""
# example: document_prefix([3, 2, 6], [1, 2, 3])
import torch


def document_prefix(lengths, prefix_lengths):
    """The lengths of the documents, and of the prefix of each."""
    offsets = length_to_offsets(lengths)
    document_id = offsets_to_document_ids(offsets)
    prefix_end = offsets[:-1] + torch.tensor(prefix_lengths, dtype=torch.int32)

    def mask_mod(b, h, q_idx, kv_idx):
        document = document_id[q_idx]
        same = document == document_id[kv_idx]
        return same & ((kv_idx < prefix_end[document]) | (kv_idx <= q_idx))

    return mask_mod
