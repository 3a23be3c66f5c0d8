// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The first op of a forward pass: rows of the embedding, with an adapter where there is one,
//   x[t] = embeddingScale (E[id] + scale B A[:, id]),  id = ids[t].

#include "engine/model/decoder.h"
#include "engine/model/op_runner.h"

namespace vitrine::engine {

/// `ids` (tokens) I32, `out` (tokens, hidden).
void embedTokens(const OpRunner& runner, const Decoder& decoder, const kernels::TensorView& ids,
                 const kernels::TensorView& out);

/// A's columns of the tokens times the scales, (tokens, rank): what B multiplies. REQUIRES an adapter.
kernels::Tensor embeddingLow(const OpRunner& runner, const Decoder& decoder, const kernels::TensorView& ids);

} // namespace vitrine::engine
