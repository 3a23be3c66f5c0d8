// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which ops read a weight. Runs do not record the operands of ops. Of a weight they follow from its name, because each
// op of a decoder layer reads the weights of its module. Pure functions; any thread.

#include <cstdint>
#include <string_view>
#include <vector>

namespace vitrine::profiler {

struct WeightReaders {
    std::int32_t layer = -1;           ///< whose ops read it; -1: the ops outside of layers
    std::vector<std::string_view> ops; ///< "QkvProject" or, in another kind of layer, "LatentProject"; empty: not known
};

/// Of a tensor by its name in the checkpoint. `tied`: the model has no weight "lm_head", so that its head reads the
/// embedding. A norm whose place differs between model families is read by an op that is not known.
WeightReaders weightReaders(std::string_view tensor, bool tied);

} // namespace vitrine::profiler
