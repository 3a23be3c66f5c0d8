// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/elementwise.h"

#include "kernels/device/abi/elementwise.h"
#include "kernels/ops/common/cuda_call.h"

namespace vitrine::kernels {

namespace {

bool isContiguous(const TensorView& tensor) {
    return tensor.shape.rank() < 2 || tensor.shape[0] <= 1 ||
           tensor.stride0() == tensor.shape.count() / tensor.shape[0];
}

enum class Kind : std::uint8_t { Add = 0, SoftCap = 1, Cast = 2, ScaleRows = 3 };

/// `b` is `a` where there is no second operand; ScaleRows has its weights there.
void run(CudaContext& context, Kind kind, const TensorView& a, const TensorView& b, const TensorView& out, float cap) {
    if (out.shape.count() == 0) {
        return;
    }
    const bool scales = kind == Kind::ScaleRows;
    const bool one = !scales && isContiguous(a) && isContiguous(b) && isContiguous(out);
    const std::int64_t rows = one ? 1 : out.shape[0];
    const std::int64_t size = out.shape.count() / rows;
    abi::ElementwiseParams parameters{};
    parameters.a = a.data;
    parameters.b = b.data;
    parameters.out = out.data;
    parameters.aStride = one ? 0 : a.stride0();
    parameters.bStride = one || scales ? 0 : b.stride0();
    parameters.outStride = one ? 0 : out.stride0();
    parameters.rows = rows;
    parameters.size = size;
    parameters.cap = cap;
    const auto flat = [&](TensorView view) {
        view.strides = one ? Strides{} : view.strides;
        view.shape = one ? Shape{size} : view.shape;
        return view;
    };
    const TensorView flatA = flat(a), flatB = scales ? a : flat(b), flatOut = flat(out);
    launchFamily(context, "elementwise", abi::kElementwiseAbi, parameters,
                 {{"kind", static_cast<std::int64_t>(kind)},
                  {"a_dtype", dtypeNumber(a)},
                  {"b_dtype", dtypeNumber(b)},
                  {"out_dtype", dtypeNumber(out)},
                  {"vector", pieceOf(size, {&flatA, &flatB, &flatOut})},
                  {"rows", rows},
                  {"size", size}});
}

} // namespace

void execute(CudaContext& context, const Add& op) {
    run(context, Kind::Add, op.a, op.b, op.out, 0);
}

void execute(CudaContext& context, const SoftCap& op) {
    run(context, Kind::SoftCap, op.x, op.x, op.x, op.cap);
}

void execute(CudaContext& context, const Cast& op) {
    run(context, Kind::Cast, op.x, op.x, op.out, 0);
}

void execute(CudaContext& context, const ScaleRows& op) {
    run(context, Kind::ScaleRows, op.x, op.weights, op.out, 0);
}

void execute(CudaContext& context, const SetZero& op) {
    context.fill(op.out.data, 0, op.out.bytes());
}

} // namespace vitrine::kernels
