// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// NF4 weights in checkpoints that bitsandbytes wrote. Beside NAME, the packed elements, lie NAME.absmax (scales),
// NAME.quant_map (the 16 values), NAME.nested_absmax and NAME.nested_quant_map where the scales are packed too, and the
// bytes of a JSON object in NAME.quant_state.bitsandbytes__nf4. Stateless; safe from any thread.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/quant/storage_scheme.h"

namespace vitrine::engine {

/// What the JSON object says.
struct Nf4State {
    std::int64_t out = 0;
    std::int64_t in = 0;                             ///< a multiple of 64
    bool packedScales = false;                       ///< "nested": scales are codes with a scale for each 256
    float scaleOffset = 0;                           ///< of packed scales
    kernels::DType storageType = kernels::DType::U8; ///< what the packed bytes are stored as; not in the JSON object
};

/// Reads the object. `name` is "FILE: TENSOR". Throws BadInput "NAME: what" when it is damaged, and Unsupported when it
/// describes another format or other sizes of groups.
Nf4State parseNf4State(std::string_view text, const std::string& name);

/// The tensors of the weight `name` that hold elements and scales, as the checkpoint stores them.
std::vector<StoredTensor> nf4StoredTensors(const std::string& name, const Nf4State& state);

/// Throw BadInput "NAME: what" unless the maps of a checkpoint are those of the format.
void checkNf4Map(std::span<const float> map, const std::string& name);
void checkNf4ScaleMap(std::span<const float> map, const std::string& name);

/// Throws BadInput "NAME: what" when a scale, or a scale of scales, is not finite: it would spoil every token. `first`
/// is the index in the tensor of the first one that is given.
void checkNf4Scales(std::span<const float> scales, const std::function<std::string()>& name, std::uint64_t first = 0);

} // namespace vitrine::engine
