// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/embed_tokens.h"

#include "kernels/ops/comm/all_reduce.h"
#include "kernels/ops/linear/matmul.h"
#include "kernels/ops/rowwise/embedding.h"

namespace vitrine::engine {

using kernels::Shape;
using kernels::Tensor;
using kernels::TensorView;

Tensor embeddingLow(const OpRunner& runner, const Decoder& decoder, const TensorView& ids) {
    const kernels::AdapterView& adapter = decoder.embeddingAdapter();
    Tensor low = runner.activation("adapter.hidden", Shape{ids.shape[0], adapter.a.shape[1]});
    runner.run(kernels::Embedding{ids, adapter.a, low.view(), adapter.scale * decoder.embeddingScale()});
    return low;
}

void embedTokens(const OpRunner& runner, const Decoder& decoder, const TensorView& ids, const TensorView& out) {
    kernels::Embedding lookUp{ids, decoder.embedding(), out, decoder.embeddingScale()};
    if (kernels::Communicator* const ranks = runner.ranks()) {
        // Each rank has rows of the vocabulary; the sum over ranks has the row of every token.
        lookUp.firstId = decoder.firstId();
        runner.execute(lookUp);
        runner.run(kernels::AllReduce{out, out, ranks, {}});
        return;
    }
    runner.execute(lookUp);
    if (decoder.embeddingAdapter().empty()) {
        return;
    }
    const Tensor low = embeddingLow(runner, decoder, ids);
    kernels::Matmul op;
    op.x = low.view();
    op.weight = kernels::denseWeight(decoder.embeddingAdapter().b);
    op.residual = out;
    op.out = out;
    runner.run(op);
}

} // namespace vitrine::engine
