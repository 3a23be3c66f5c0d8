// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/core/floats.h"

#include <cmath>
#include <string>

#include "base/error.h"

namespace vitrine::kernels {

namespace {

[[noreturn]] void throwNotFloat(DType dtype) {
    throw base::Internal("float data: dtype " + std::string(dtypeName(dtype)) + " is no float type");
}

/// Rounds to odd, so that a second rounding to fewer bits is exact (Boldo and Melquiond 2008).
float narrowToOdd(double value) {
    const auto narrow = static_cast<float>(value);
    const auto back = static_cast<double>(narrow);
    auto bits = std::bit_cast<std::uint32_t>(narrow);
    if (back == value || std::isnan(value) || (bits & 1U) != 0) {
        return narrow;
    }
    // The neighbour on the other side of `value` is odd.
    const bool tooLarge = std::fabs(back) > std::fabs(value);
    bits = tooLarge ? bits - 1 : bits + 1;
    return std::bit_cast<float>(bits);
}

float narrow(float value) {
    return value;
}
float narrow(double value) {
    return narrowToOdd(value);
}

} // namespace

template <class C> void loadFloats(DType dtype, const void* data, std::int64_t offset, std::int64_t count, C* out) {
    switch (dtype) {
    case DType::F32: {
        const float* in = static_cast<const float*>(data) + offset;
        for (std::int64_t i = 0; i < count; ++i) {
            out[i] = static_cast<C>(in[i]);
        }
        return;
    }
    case DType::BF16: {
        const std::uint16_t* in = static_cast<const std::uint16_t*>(data) + offset;
        for (std::int64_t i = 0; i < count; ++i) {
            out[i] = static_cast<C>(bf16ToFloat(in[i]));
        }
        return;
    }
    case DType::F16: {
        const std::uint16_t* in = static_cast<const std::uint16_t*>(data) + offset;
        for (std::int64_t i = 0; i < count; ++i) {
            out[i] = static_cast<C>(f16ToFloat(in[i]));
        }
        return;
    }
    case DType::F64: {
        const double* in = static_cast<const double*>(data) + offset;
        for (std::int64_t i = 0; i < count; ++i) {
            out[i] = static_cast<C>(in[i]);
        }
        return;
    }
    default:
        throwNotFloat(dtype);
    }
}

template <class C> void storeFloats(DType dtype, const C* values, std::int64_t count, void* data, std::int64_t offset) {
    switch (dtype) {
    case DType::F32: {
        float* out = static_cast<float*>(data) + offset;
        for (std::int64_t i = 0; i < count; ++i) {
            out[i] = static_cast<float>(values[i]);
        }
        return;
    }
    case DType::BF16: {
        std::uint16_t* out = static_cast<std::uint16_t*>(data) + offset;
        for (std::int64_t i = 0; i < count; ++i) {
            out[i] = floatToBf16(narrow(values[i]));
        }
        return;
    }
    case DType::F16: {
        std::uint16_t* out = static_cast<std::uint16_t*>(data) + offset;
        for (std::int64_t i = 0; i < count; ++i) {
            out[i] = floatToF16(narrow(values[i]));
        }
        return;
    }
    case DType::F64: {
        double* out = static_cast<double*>(data) + offset;
        for (std::int64_t i = 0; i < count; ++i) {
            out[i] = static_cast<double>(values[i]);
        }
        return;
    }
    default:
        throwNotFloat(dtype);
    }
}

template <class C> void roundFloats(DType dtype, C* values, std::int64_t count) {
    switch (dtype) {
    case DType::F64:
        return;
    case DType::F32:
        for (std::int64_t i = 0; i < count; ++i) {
            values[i] = static_cast<C>(static_cast<float>(values[i]));
        }
        return;
    case DType::BF16:
        for (std::int64_t i = 0; i < count; ++i) {
            values[i] = static_cast<C>(bf16ToFloat(floatToBf16(narrow(values[i]))));
        }
        return;
    case DType::F16:
        for (std::int64_t i = 0; i < count; ++i) {
            values[i] = static_cast<C>(f16ToFloat(floatToF16(narrow(values[i]))));
        }
        return;
    default:
        throwNotFloat(dtype);
    }
}

template void loadFloats<float>(DType, const void*, std::int64_t, std::int64_t, float*);
template void loadFloats<double>(DType, const void*, std::int64_t, std::int64_t, double*);
template void storeFloats<float>(DType, const float*, std::int64_t, void*, std::int64_t);
template void storeFloats<double>(DType, const double*, std::int64_t, void*, std::int64_t);
template void roundFloats<float>(DType, float*, std::int64_t);
template void roundFloats<double>(DType, double*, std::int64_t);

} // namespace vitrine::kernels
