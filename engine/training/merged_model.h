// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Writes a model as a Hugging Face checkpoint, with the deltas of its adapters added to its weights.

#include <cstdint>
#include <string>

#include "base/stop.h"
#include "engine/model/model.h"

namespace vitrine::engine {

/// Writes FOLDER/model.safetensors, config.json and the other small files of the source. `packed` is the
/// format of experts, or that of the linears of attention and dense MLPs; what is not packed, or no longer, is BF16.
/// What an adapter changed is quantised again. Other weights keep the types of the source, but those that were widened
/// to be trained are written as float32. A matrix at a time is in host memory. Throws BadInput when the disk is full,
/// Unsupported for a format that the model's family has no layout for, Cancelled. `progress` may be null.
void writeMergedModel(const std::string& folder, const ModelSource& source, Model& model, kernels::WeightFormat packed,
                      base::ProgressSink* progress);

/// What the weights of that file take.
std::uint64_t mergedModelBytes(const ModelSource& source, Model& model, kernels::WeightFormat packed);

} // namespace vitrine::engine
