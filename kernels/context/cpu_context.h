// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The backend of this machine's processor.

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/thread_pool.h"

namespace vitrine::kernels {

enum class SimdLevel : std::uint8_t { Scalar, Avx2, Avx512 };
/// "scalar", "avx2", "avx512"
std::string_view simdName(SimdLevel level);

/// The reference backend and the embedded default.
class CpuContext {
public:
    explicit CpuContext(int threads = 0);
    base::ThreadPool& pool() { return *pool_; }
    SimdLevel simd() const { return simd_; }
    void setSimd(SimdLevel level); ///< for measurements and tests; throws BadInput above what the machine has

private:
    std::unique_ptr<base::ThreadPool> pool_;
    SimdLevel simd_;
};

} // namespace vitrine::kernels
