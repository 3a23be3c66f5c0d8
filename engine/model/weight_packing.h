// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Packs dense tensors on the host while they load. Threads of a pool convert and pack a part of a tensor at a time, so
// that a dense matrix is never in host memory as a whole.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/thread_pool.h"
#include "engine/model/weight_layout.h"
#include "engine/quant/value_packer.h"

namespace vitrine::kernels {
class Context;
} // namespace vitrine::kernels

namespace vitrine::engine {

/// Fetches bytes of the dense tensor from byte `offset` on.
using ReadDense = std::function<void(std::uint64_t offset, std::span<std::byte> bytes)>;

/// Reads bytes of a tensor of a file with all threads of the pool. Throws what SafetensorsFile::read throws.
void readParallel(base::ThreadPool& pool, const Checkpoint::Location& location, std::uint64_t offset,
                  std::span<std::byte> bytes);

/// Packs the matrix `source`. Throws BadInput "NAME: what" when a value is not finite, Cancelled, and what `read`
/// throws.
PackedValues packDense(kernels::WeightFormat format, const WeightSource& source, base::ThreadPool& pool,
                       kernels::Context& context, const ReadDense& read);

} // namespace vitrine::engine
