// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The ceilings of the machine that benchmarks and runs are measured against.

#include <cstdint>
#include <string>

#include "kernels/context/context.h"

namespace vitrine::engine {

/// What the device can do, measured in this run on random data; on Meta what its profile says.
struct Ceiling {
    double rate = 0;  ///< bytes/s or FLOP/s; medians
    std::string what; ///< how it was measured
};
/// Bytes read and written per second by a copy on the device; on the CPU, bytes read by all threads.
Ceiling measureCopy(kernels::Context& context, std::uint64_t seed);
/// FLOP/s of one dense product: BF16 of 8192 x 8192 x 8192 by cuBLASLt; float32 of 1024 x 1024 x 1024 on the CPU.
Ceiling measureMatmul(kernels::Context& context, std::uint64_t seed);

} // namespace vitrine::engine
