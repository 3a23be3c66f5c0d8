// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Small row-wise pieces: addition, soft cap, casts, rows times weights, zeros.

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// out = a + b; out may be a or b.
struct Add {
    static constexpr std::string_view kName = "Add";
    TensorView a;
    TensorView b;
    TensorView out;
};

/// x = cap * tanh(x / cap), in place.
struct SoftCap {
    static constexpr std::string_view kName = "SoftCap";
    TensorView x;
    float cap = 0;
};

/// out = x in another dtype, round to nearest even.
struct Cast {
    static constexpr std::string_view kName = "Cast";
    TensorView x;
    TensorView out;
};

/// out = x, each row times its weight.
struct ScaleRows {
    static constexpr std::string_view kName = "ScaleRows";
    TensorView x;       ///< (rows, n); rows may have a stride
    TensorView weights; ///< (rows) F32
    TensorView out;     ///< (rows, n); may be x
};

/// Zero bytes in a contiguous tensor of any dtype.
struct SetZero {
    static constexpr std::string_view kName = "SetZero";
    TensorView out;
};

void check(const Add& op);
Cost cost(const Add& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const Add& op, const DeviceTraits& traits);
void execute(CpuContext& context, const Add& op);
void execute(CudaContext& context, const Add& op);

void check(const SoftCap& op);
Cost cost(const SoftCap& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const SoftCap& op, const DeviceTraits& traits);
void execute(CpuContext& context, const SoftCap& op);
void execute(CudaContext& context, const SoftCap& op);

void check(const Cast& op);
Cost cost(const Cast& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const Cast& op, const DeviceTraits& traits);
void execute(CpuContext& context, const Cast& op);
void execute(CudaContext& context, const Cast& op);

void check(const ScaleRows& op);
Cost cost(const ScaleRows& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const ScaleRows& op, const DeviceTraits& traits);
void execute(CpuContext& context, const ScaleRows& op);
void execute(CudaContext& context, const ScaleRows& op);

void check(const SetZero& op);
Cost cost(const SetZero& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const SetZero& op, const DeviceTraits& traits);
void execute(CpuContext& context, const SetZero& op);
void execute(CudaContext& context, const SetZero& op);

} // namespace vitrine::kernels
