// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the routers of a model choose, from a forward pass of its own: layer by layer, without a step and without a
// cache.

#include <gtest/gtest.h>
#include <vector>

#include "engine/generation/expert_record.h"
#include "engine/generation/generator.h"
#include "engine/model/embed_tokens.h"
#include "engine/model/step.h"

namespace vitrine::engine::test {

/// By MoE layer: (tokens, k).
inline std::vector<std::vector<std::int32_t>> chosenExperts(Model& model, const std::vector<std::int32_t>& tokens) {
    kernels::Context& context = model.context();
    StepBatch batch;
    batch.sequences = {{0, tokens}};
    const StepInputs stepInputs(model, batch, nullptr, InputValues::Filled);
    const OpRunner runner(context, context.memory().general(), model.options().computeDType);
    const kernels::Tensor inputs = runner.make(base::MemoryCategory::Activations, "inputs", kernels::DType::I32,
                                               kernels::Shape{stepInputs.inputCount});
    context.upload(stepInputs.inputs.data(), inputs.view().data, inputs.view().bytes());
    const LayerTokens layerInputs = layerTokens(model.leader(), stepInputs, inputs.view(), {});
    const kernels::Tensor x = runner.activation("x", kernels::Shape{stepInputs.tokens, model.config().hidden});
    embedTokens(runner, model.decoder(), inputOf(inputs.view(), stepInputs.ids), x.view());
    std::vector<std::vector<std::int32_t>> out;
    const RouterObserver observer{[&](const kernels::RouterTopK& done) {
        std::vector<std::int32_t>& ids = out.emplace_back(static_cast<std::size_t>(done.ids.shape.count()));
        context.download(done.ids.data, ids.data(), done.ids.bytes());
    }};
    for (const DecoderLayer& layer : model.layers()) {
        attentionForward(runner, {model.config(), layer, layerInputs}, x.view(), x.view(), nullptr);
        mlpForward(runner, model.config(), layer, x.view(), x.view(), nullptr, &observer);
    }
    return out;
}

/// The prompt and the answer but for its last token.
inline std::vector<std::int32_t> tokensRead(const GenerateRequest& request, const GenerateResult& result) {
    std::vector<std::int32_t> tokens = request.prompt;
    tokens.insert(tokens.end(), result.ids.begin(), result.ids.end() - 1);
    return tokens;
}

/// Every known row against the reference, and that all from `firstKnown` on are known.
inline void expectExperts(Model& model, const GenerateRequest& request, const GenerateResult& result,
                          std::int64_t firstKnown = 0) {
    const std::vector<std::int32_t> tokens = tokensRead(request, result);
    const std::vector<std::vector<std::int32_t>> wanted = chosenExperts(model, tokens);
    const ReadExperts& experts = result.experts;
    ASSERT_EQ(experts.tokens(), std::ssize(tokens));
    ASSERT_EQ(experts.choices.layers, std::ssize(wanted));
    ASSERT_EQ(experts.choices.k, model.config().expertsPerToken);
    ASSERT_EQ(experts.before == nullptr ? experts.firstKnown : 0, firstKnown);
    std::int64_t wrong = 0;
    for (std::int64_t token = firstKnown; token < experts.tokens(); ++token) {
        for (std::int64_t layer = 0; layer < experts.choices.layers; ++layer) {
            for (std::int64_t place = 0; place < experts.choices.k; ++place) {
                const auto at = static_cast<std::size_t>(token * experts.choices.k + place);
                wrong += experts.id(token, layer, place) == wanted[static_cast<std::size_t>(layer)][at] ? 0 : 1;
            }
        }
    }
    EXPECT_EQ(wrong, 0) << "of " << experts.tokens() << " tokens";
}

} // namespace vitrine::engine::test
