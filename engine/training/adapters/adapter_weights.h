// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What an adapter changes in the weights of its base model, before the model loads them: parameters that the file holds
// whole (modules_to_save, biases, the weights below adapters of embedding and head, resized embeddings), trained rows
// of the embedding, and the linears of DoRA (Liu and others 2024), whose weights are
//   m (W + scale B A) / |W + scale B A|,   with the norm of each row and its magnitude m.
// The types of weights stay those of the base model, so the size of nothing depends on values.

#include "engine/checkpoint/checkpoint.h"
#include "engine/training/adapters/adapter_files.h"

namespace vitrine::engine {

/// The base model with what the file has for its weights. A head that is tied to the embedding becomes a weight of its
/// own where the two come to differ. Warns once of keys of adapter_config.json that are not known. Throws BadInput
/// "FILE: TENSOR: what" for a tensor that does not fit the model, Unsupported for weights that are packed.
ModelSource withAdapterWeights(ModelSource source, const AdapterFile& file);

} // namespace vitrine::engine
