// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Products of experts over rows that lie expert by expert (group_pairs.h), forward and backward. `starts` (experts + 1)
// I32 says where each expert's rows begin. Products are summed in float32 (in double for F64 rows) and rounded once; on
// the CPU a row's result is to the last bit that of ExpertMatmul.

#include "kernels/core/op.h"
#include "kernels/ops/linear/linear_view.h"

namespace vitrine::kernels {

/// out[r] = W[e] x[r] + bias[e] (+ adapter), e the expert of row r.
struct GroupedMatmul {
    static constexpr std::string_view kName = "GroupedMatmul";
    TensorView x;            ///< (rows, in), rows may have a stride
    TensorView starts;       ///< (experts + 1) I32
    LinearView linear;       ///< stacks (experts, out, in), or (experts, in, out) when transposed; bias (experts, out)
    float scale = 1;         ///< of the product with the weight; not of bias and adapter
    bool accumulate = false; ///< add to out
    TensorView out;          ///< (rows, out), rows may have a stride
    TensorView scratch;
};

/// gradX[r] = scale W[e]^T gradOut[r] (+ A[e]^T low[r]), or added to gradX.
struct GroupedInputGradient {
    static constexpr std::string_view kName = "GroupedInputGradient";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Gradients;
    TensorView gradOut; ///< (rows, out), rows may have a stride
    TensorView starts;  ///< (experts + 1) I32
    WeightView weight;  ///< a stack. Packed: gradOut is not F64
    float scale = 1;
    bool accumulate = false; ///< add to gradX
    TensorView gradX;        ///< (rows, in), rows may have a stride
    TensorView scratch;
    TensorView low; ///< (rows, rank), rows may have a stride: gradients before an adapter's A. Or empty: no adapter
    TensorView adapterA; ///< (experts, rank, in) contiguous, with `low`
};

/// gradWeight[e] = gradOut^T x over the rows of expert e, or added to gradWeight. Experts without rows get zeros. A
/// stack that is stored (experts, in, out) has its gradient stored so when x and gradOut change places.
struct GroupedWeightGradient {
    static constexpr std::string_view kName = "GroupedWeightGradient";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Gradients;
    TensorView x;            ///< (rows, in), rows may have a stride
    TensorView gradOut;      ///< (rows, out), rows may have a stride
    TensorView starts;       ///< (experts + 1) I32
    bool accumulate = false; ///< add to gradWeight
    TensorView gradWeight;   ///< (experts, out, in) contiguous
};

/// gradBias[e] += sum of weights[r] * gradOut[r] over the rows of expert e.
struct GroupedBiasGradient {
    static constexpr std::string_view kName = "GroupedBiasGradient";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Gradients;
    TensorView gradOut;  ///< (rows, out), rows may have a stride
    TensorView weights;  ///< (rows) F32, or empty: 1
    TensorView starts;   ///< (experts + 1) I32
    TensorView gradBias; ///< (experts, out) F32 or F64
};

/// out[r] += x[r] . vectors[e].
struct GroupedDots {
    static constexpr std::string_view kName = "GroupedDots";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Gradients;
    TensorView x;       ///< (rows, n), rows may have a stride
    TensorView starts;  ///< (experts + 1) I32
    TensorView vectors; ///< (experts, n)
    TensorView out;     ///< (rows) F32 or F64
};

void check(const GroupedMatmul& op);
Cost cost(const GroupedMatmul& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const GroupedMatmul& op, const DeviceTraits& traits);
void execute(CpuContext& context, const GroupedMatmul& op);
void execute(CudaContext& context, const GroupedMatmul& op);

void check(const GroupedInputGradient& op);
Cost cost(const GroupedInputGradient& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const GroupedInputGradient& op, const DeviceTraits& traits);
void execute(CpuContext& context, const GroupedInputGradient& op);
void execute(CudaContext& context, const GroupedInputGradient& op);

void check(const GroupedWeightGradient& op);
Cost cost(const GroupedWeightGradient& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const GroupedWeightGradient& op, const DeviceTraits& traits);
void execute(CpuContext& context, const GroupedWeightGradient& op);
void execute(CudaContext& context, const GroupedWeightGradient& op);

void check(const GroupedBiasGradient& op);
Cost cost(const GroupedBiasGradient& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const GroupedBiasGradient& op, const DeviceTraits& traits);
void execute(CpuContext& context, const GroupedBiasGradient& op);
void execute(CudaContext& context, const GroupedBiasGradient& op);

void check(const GroupedDots& op);
Cost cost(const GroupedDots& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const GroupedDots& op, const DeviceTraits& traits);
void execute(CpuContext& context, const GroupedDots& op);
void execute(CudaContext& context, const GroupedDots& op);

} // namespace vitrine::kernels
