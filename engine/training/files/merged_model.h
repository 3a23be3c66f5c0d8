// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Writes a model as a Hugging Face checkpoint, with the deltas of its adapters added to its weights.

#include <cstdint>
#include <string>

#include "base/stop.h"
#include "engine/model/model.h"
#include "engine/training/quantized/packed_copies.h"

namespace vitrine::engine {

/// Writes FOLDER/model.safetensors, config.json and the other small files of the source. `packed` is the
/// format of experts, or that of the linears of attention and dense MLPs; what is not packed, or no longer, is BF16.
/// What an adapter changed is quantised again. Other weights keep the types of the source, but those that were widened
/// to be trained are written as float32. A matrix at a time is in host memory. Throws BadInput when the disk is full,
/// Unsupported for a format that the model's family has no layout for, Cancelled. `progress` may be null.
void writeMergedModel(const std::string& folder, const ModelSource& source, Model& model, kernels::WeightFormat packed,
                      base::ProgressSink* progress);

/// The same with the packed copies that training ended with in the place of their weights, bit for bit. Weights that
/// the model has packed stay so unless an adapter is beside them; others are written dense.
void writeMergedModel(const std::string& folder, const ModelSource& source, Model& model, const PackedCopies& copies,
                      base::ProgressSink* progress);

/// What the weights of those files take. With copies: throws Unsupported where the family is not read so packed.
std::uint64_t mergedModelBytes(const ModelSource& source, Model& model, kernels::WeightFormat packed);
std::uint64_t mergedModelBytes(const ModelSource& source, Model& model, const PackedCopies& copies);

} // namespace vitrine::engine
