// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The ceilings of the machine that benchmarks and runs are measured against.

#include <cstdint>
#include <string>

#include "kernels/context/context.h"

namespace vitrine::engine {

/// A highest rate of the device, measured in this run on random data. On Meta it is the rate in the device profile.
struct Ceiling {
    double rate = 0;  ///< bytes/s or FLOP/s; median of several measurements
    std::string what; ///< how the rate was measured
};
/// Bytes per second that a copy on the device reads and writes. On the CPU: bytes per second that all threads read.
Ceiling measureCopy(kernels::Context& context, std::uint64_t seed);
/// FLOP/s of one dense product: BF16 of 8192 x 8192 x 8192 by cuBLASLt; float32 of 1024 x 1024 x 1024 on the CPU.
Ceiling measureMatmul(kernels::Context& context, std::uint64_t seed);

/// Random values or bytes for what is measured.
void fillRandom(kernels::Context& context, const kernels::TensorView& out, std::uint64_t seed, std::uint32_t stream);

} // namespace vitrine::engine
