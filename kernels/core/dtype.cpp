// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/core/dtype.h"

#include <array>
#include <fmt/format.h>

#include "base/error.h"

namespace vitrine::kernels {
namespace {

struct DTypeTraits {
    int bits;
    std::string_view name;
    std::string_view safetensors;
};

// Indexed by the enumerator's number.
constexpr std::array<DTypeTraits, 24> kFacts{{
    {0, "none", ""},
    {64, "float64", "F64"},
    {32, "float32", "F32"},
    {16, "bfloat16", "BF16"},
    {16, "float16", "F16"},
    {64, "int64", "I64"},
    {32, "int32", "I32"},
    {16, "int16", "I16"},
    {8, "int8", "I8"},
    {8, "uint8", "U8"},
    {16, "uint16", "U16"},
    {32, "uint32", "U32"},
    {64, "uint64", "U64"},
    {8, "bool", "BOOL"},
    {8, "float8_e4m3fn", "F8_E4M3"},
    {8, "float8_e5m2", "F8_E5M2"},
    {8, "float8_e8m0fnu", "F8_E8M0"},
    {4, "float4_e2m1", "F4"},
    {6, "float6_e2m3", "F6_E2M3"},
    {6, "float6_e3m2", "F6_E3M2"},
    {64, "complex64", "C64"},
    {8, "float8_e4m3fnuz", "F8_E4M3FNUZ"},
    {8, "float8_e5m2fnuz", "F8_E5M2FNUZ"},
    {4, "nf4", "NF4"},
}};

const DTypeTraits& traitsOf(DType dtype) {
    const auto index = static_cast<std::size_t>(dtype);
    if (index >= kFacts.size()) {
        throw base::Internal(fmt::format("dtype number {} is unknown", index));
    }
    return kFacts[index];
}

} // namespace

int bitsOf(DType dtype) {
    return traitsOf(dtype).bits;
}

std::uint64_t bytesOf(DType dtype, std::int64_t count) {
    const DTypeTraits& traits = traitsOf(dtype);
    std::uint64_t bits = 0;
    if (count < 0 ||
        __builtin_mul_overflow(static_cast<std::uint64_t>(count), static_cast<std::uint64_t>(traits.bits), &bits)) {
        throw base::Internal(fmt::format("{} elements of {} have no size in bytes", count, traits.name));
    }
    if (bits % 8 != 0) {
        throw base::Internal(fmt::format("{} elements of {} do not fill whole bytes", count, traits.name));
    }
    return bits / 8;
}

std::string_view dtypeName(DType dtype) {
    return traitsOf(dtype).name;
}

std::string_view safetensorsName(DType dtype) {
    return traitsOf(dtype).safetensors;
}

std::optional<DType> dtypeFromSafetensors(std::string_view name) {
    for (std::size_t i = 1; i < kFacts.size(); ++i) {
        if (kFacts[i].safetensors == name) {
            return static_cast<DType>(i);
        }
    }
    return std::nullopt;
}

} // namespace vitrine::kernels
