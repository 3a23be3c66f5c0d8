// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/head_loss.h"

#include "engine/checkpoint/model_config.h"
#include "engine/training/passes/linear_backward.h"
#include "engine/training/passes/norm_backward.h"
#include "kernels/context/row_parts.h"
#include "kernels/ops/linear/matmul.h"
#include "kernels/ops/rowwise/rms_norm.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;
using kernels::Tensor;
using kernels::TensorView;

namespace {

/// Logits and, in the same memory, their gradient.
class LossChunk {
public:
    LossChunk(const OpRunner& runner, const HeadLoss& loss, std::int64_t begin, std::int64_t end)
        : runner_(runner), loss_(loss), head_(loss.dropout.appliedToHead(loss.decoder.head(), begin)),
          x_(kernels::sliceRows(loss.x, begin, end)), targets_(kernels::sliceRows(loss.targets, begin, end)),
          begin_(begin) {}

    void run() {
        const Tensor normed = runner_.activation("final.normed", x_.shape);
        const bool wide = runner_.compute() == DType::F64;
        const DType type = wide ? DType::F64 : DType::F32;
        const std::int64_t vocab = head_.weight.outFeatures();
        const Tensor logits = runner_.make(MemoryCategory::Logits, "logits", type, Shape{x_.shape[0], vocab});
        multiply(normed.view(), logits.view());
        LogitsChunk chunk{logits.view(), targets_, {}, begin_, static_cast<float>(loss_.config.finalSoftCap)};
        if (loss_.gradients != nullptr) {
            chunk.gradLogits = narrowed(logits.view());
        }
        loss_.objective.run(runner_, chunk);
        if (loss_.gradients != nullptr) {
            backward(normed.view(), chunk.gradLogits);
        }
    }

private:
    void multiply(const TensorView& normed, const TensorView& logits) {
        const kernels::NormWeights& norm = loss_.decoder.finalNorm();
        runner_.run(kernels::RmsNorm{x_, norm.weight, normed, norm.eps, norm.form});
        kernels::Matmul op;
        op.x = normed;
        op.weight = head_.weight;
        op.bias = head_.bias;
        op.adapter = head_.adapter;
        op.out = logits;
        runner_.run(op);
    }

    /// The logits' rows, as values of the type of activations.
    TensorView narrowed(const TensorView& logits) const {
        TensorView out = logits;
        out.dtype = runner_.compute();
        out.strides[0] = logits.shape[1] * kernels::bitsOf(logits.dtype) / kernels::bitsOf(out.dtype);
        return out;
    }

    void backward(const TensorView& normed, const TensorView& gradLogits) {
        const Tensor gradNormed =
            runner_.make(MemoryCategory::Gradients, "final.normed.gradient", runner_.compute(), x_.shape);
        {
            const LinearBackward head(runner_, head_, *loss_.gradients, gradLogits);
            head.input(gradNormed.view(), false);
            head.parameters(normed);
        }
        normBackward(runner_, loss_.decoder.finalNorm(), *loss_.gradients, x_, gradNormed.view(), {},
                     gradNormed.view());
        runner_.context().copy(gradNormed.view().data, x_.data, x_.bytes());
    }

    const OpRunner& runner_;
    const HeadLoss& loss_;
    kernels::LinearView head_;
    TensorView x_, targets_;
    std::int64_t begin_;
};

} // namespace

void runHeadLoss(const OpRunner& runner, const HeadLoss& loss) {
    std::int32_t index = 0;
    kernels::forRowParts(runner.context(), loss.x.shape[0], loss.chunk, [&](std::int64_t begin, std::int64_t end) {
        runner.context().throwIfStopped();
        const kernels::TraceScope scope(runner.context().tracer(), base::ScopeKind::Layer, "loss chunk", index++);
        LossChunk(runner, loss, begin, end).run();
    });
}

} // namespace vitrine::engine
