# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Documents packed into one sequence: a query sees keys of its own document only."""
# example: document_mask(document_ids([3, 2, 6]))
# example: document_causal(document_ids([3, 2, 6]))
# example: generate_doc_mask_mod(causal_mask, length_to_offsets([3, 2, 6]))
# example: generate_packed_causal_doc_mask_mod(length_to_offsets([3, 2, 6]))
import torch


def length_to_offsets(lengths, device=None):
    """[3, 2, 6] to [0, 3, 5, 11]: where each document begins, and the end of the last."""
    ends = torch.cumsum(torch.tensor(lengths, dtype=torch.int32), 0)
    return torch.cat([torch.zeros(1, dtype=torch.int32), ends.to(torch.int32)])


def offsets_to_document_ids(offsets):
    """[0, 3, 5, 11] to [0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2]: the document of each position."""
    lengths = offsets.diff()
    return torch.repeat_interleave(torch.arange(lengths.numel(), dtype=torch.int32), lengths)


_offsets_to_doc_ids_tensor = offsets_to_document_ids  # the name that attention-gym's files import


def document_ids(lengths):
    return offsets_to_document_ids(length_to_offsets(lengths))


def document_mask(document_id):
    def mask_mod(b, h, q_idx, kv_idx):
        return document_id[q_idx] == document_id[kv_idx]

    return mask_mod


def document_causal(document_id):
    return and_masks(causal_mask, document_mask(document_id))


def generate_doc_mask_mod(mask_mod, offsets):
    """Applies `mask_mod` inside each document, with positions that count from its beginning."""
    document_id = offsets_to_document_ids(offsets)

    def inside_document(b, h, q_idx, kv_idx):
        q_document = document_id[q_idx]
        kv_document = document_id[kv_idx]
        allowed = mask_mod(b, h, q_idx - offsets[q_document], kv_idx - offsets[kv_document])
        return (q_document == kv_document) & allowed

    return inside_document


def generate_packed_causal_doc_mask_mod(offsets):
    """Causal documents as one interval for each row: from the document's beginning to the query."""
    document_id = offsets_to_document_ids(offsets)

    def mask_mod(b, h, q_idx, kv_idx):
        return (kv_idx >= offsets[document_id[q_idx]]) & (kv_idx <= q_idx)

    return mask_mod
