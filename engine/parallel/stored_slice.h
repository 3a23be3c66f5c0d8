// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The part of a stored tensor that goes with a part of its packed weight. Files store codes and scales of many elements
// together, so not every part of a weight is one of whole words and groups.

#include <optional>

#include "engine/checkpoint/sliced_checkpoint.h"

namespace vitrine::engine {

/// The tensor of `whole`, which is packed, for the part `weight` of its weight: with the shapes of the part, and where
/// it lies in the file. Nothing: the part cuts through a word or a group.
struct StoredPart {
    TensorSpec spec;
    TensorPart part;
    TensorPart memory; ///< the part of the tensor as kernels would read the whole
};
std::optional<StoredPart> storedPart(const TensorSpec& whole, const TensorSlice& weight);

std::vector<std::int64_t> dimsOf(const kernels::Shape& shape);

/// The least number of elements of `axis` that can be cut off a packed weight: all of them if no fewer can.
std::int64_t storedUnit(const TensorSpec& whole, int axis);

} // namespace vitrine::engine
