// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstdint>
#include <numeric>

#include "base/trace.h"

namespace vitrine::profiler {

/// Bytes of all categories together.
inline std::uint64_t totalBytes(const base::CategoryBytes& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

} // namespace vitrine::profiler
