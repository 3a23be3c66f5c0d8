// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/context/cpu_context.h"

#include <fmt/format.h>

#include "base/error.h"

namespace vitrine::kernels {

namespace {

SimdLevel machineSimd() {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq")) {
        return SimdLevel::Avx512;
    }
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? SimdLevel::Avx2 : SimdLevel::Scalar;
}

} // namespace

std::string_view simdName(SimdLevel level) {
    switch (level) {
    case SimdLevel::Avx512:
        return "avx512";
    case SimdLevel::Avx2:
        return "avx2";
    case SimdLevel::Scalar:
        break;
    }
    return "scalar";
}

CpuContext::CpuContext(int threads) : pool_(std::make_unique<base::ThreadPool>(threads)), simd_(machineSimd()) {}

void CpuContext::setSimd(SimdLevel level) {
    if (level > machineSimd()) {
        throw base::BadInput(fmt::format("simd: {}: this machine's processor has {} at most; use that or auto",
                                         simdName(level), simdName(machineSimd())));
    }
    simd_ = level;
}

} // namespace vitrine::kernels
