// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Element types. The numbers are part of session files: append, never renumber.

#include <cstdint>
#include <optional>
#include <string_view>

namespace vitrine::kernels {

enum class DType : std::uint8_t {
    None = 0,
    F64 = 1,
    F32 = 2,
    BF16 = 3,
    F16 = 4,
    I64 = 5,
    I32 = 6,
    I16 = 7,
    I8 = 8,
    U8 = 9,
    U16 = 10,
    U32 = 11,
    U64 = 12,
    Bool = 13,
    F8E4M3 = 14,
    F8E5M2 = 15,
    F8E8M0 = 16,
    F4 = 17,
    F6E2M3 = 18,
    F6E3M2 = 19,
    C64 = 20,
    F8E4M3Fnuz = 21,
    F8E5M2Fnuz = 22,
    Nf4 = 23, ///< 4-bit NormalFloat; checkpoints store its bytes as U8
};
inline constexpr DType kLastDType = DType::Nf4;

/// F32, BF16 or F16: what files store weights as that are not packed.
constexpr bool isFloat(DType dtype) {
    return dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F16;
}

/// Bits of one element: 4 for F4, 6 for the F6 types, 0 for None.
int bitsOf(DType dtype);

/// Bytes of `count` elements; sub-byte types must fill whole bytes.
std::uint64_t bytesOf(DType dtype, std::int64_t count);

/// "float32", "bfloat16", ...: the names of options and displays.
std::string_view dtypeName(DType dtype);

/// The names of safetensors headers: "BF16", "F8_E4M3", ...
std::string_view safetensorsName(DType dtype);
std::optional<DType> dtypeFromSafetensors(std::string_view name);

} // namespace vitrine::kernels
