// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Work over all rows of a training step in parts of equal size: tiles of the MLP, chunks of the loss, micro-batches.

#include <cstdint>
#include <functional>

namespace vitrine::kernels {

class Context;

/// Calls `visit` with the bounds of each part of `part` rows, one after the other; 0: all rows at once. A part must
/// leave memory as it found it. Parts of one size allocate the same and take the same time. So on Meta, where nothing
/// is recorded, only some of them run, and the time of the others passes at once.
void forRowParts(Context& context, std::int64_t rows, std::int64_t part,
                 const std::function<void(std::int64_t begin, std::int64_t end)>& visit);

} // namespace vitrine::kernels
