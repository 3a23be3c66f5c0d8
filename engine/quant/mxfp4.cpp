// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/mxfp4.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

#include "base/error.h"
#include "kernels/formats/mxfp4_format.h"

namespace vitrine::engine {
namespace {

void requireSizes(std::size_t values, std::size_t blocks, std::size_t scales) {
    if (values % kernels::kMxfp4Group != 0 || blocks * 2 != values || scales * kernels::kMxfp4Group != values) {
        throw base::Internal(fmt::format("MXFP4 of {} values: {} block bytes and {} scales", values, blocks, scales));
    }
}

} // namespace

void quantizeMxfp4(std::span<const float> values, std::span<std::uint8_t> blocks, std::span<std::uint8_t> scales) {
    requireSizes(values.size(), blocks.size(), scales.size());
    if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) {
        throw base::BadInput("MXFP4: a value is not finite and has no 4-bit form");
    }
    kernels::packMxfp4(values.data(), static_cast<std::int64_t>(values.size()), blocks.data(), scales.data());
}

void checkMxfp4Scales(std::span<const std::uint8_t> scales, const std::string& name, std::uint64_t first) {
    if (scales.empty()) {
        return;
    }
    const void* found = std::memchr(scales.data(), kMxfp4NanScale, scales.size());
    if (found != nullptr) {
        const auto index = static_cast<std::uint64_t>(static_cast<const std::uint8_t*>(found) - scales.data());
        throw base::BadInput(
            fmt::format("{}: scale {} is 255, which means \"not a number\"; the file is damaged", name, first + index));
    }
}

} // namespace vitrine::engine
