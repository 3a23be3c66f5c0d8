// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The ceiling of a CPU's decode: how fast its threads read memory together.

#include "kernels/context/context.h"

namespace vitrine::kernels {

/// Bytes per second, the best of several passes of all threads over a buffer far larger than the caches: `most` bytes,
/// or what the machine can spare. 1 GiB takes about a second.
double measureReadBandwidth(CpuContext& context, std::uint64_t most = std::uint64_t{1} << 30);
/// REQUIRES can().runsOnHost.
inline double measureReadBandwidth(Context& context, std::uint64_t most = std::uint64_t{1} << 30) {
    return measureReadBandwidth(*context.cpu(), most);
}

} // namespace vitrine::kernels
