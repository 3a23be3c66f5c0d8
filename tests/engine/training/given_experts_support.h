// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Experts for the tokens of batches: those that a model's routers choose, and others.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/embed_tokens.h"
#include "engine/training/passes/batch_inputs.h"
#include "tests/engine/training/training_test_support.h"

namespace vitrine::engine::test {

/// The form of a model's records, for so many tokens of which nothing is given.
inline GivenExperts noExperts(const Model& model, std::int64_t tokens) {
    GivenExperts out;
    out.layers = std::ranges::count_if(model.layers(), [](const DecoderLayer& layer) { return layer.config.moe; });
    out.k = model.config().expertsPerToken;
    out.addNone(tokens);
    return out;
}

/// What the routers choose in a pass over the batch, on the CPU.
inline GivenExperts chosenExperts(TrainedModel& trained, const TrainingBatch& batch) {
    Model& model = *trained.model;
    const OpRunner runner(*trained.context, trained.context->memory().general(), model.options().computeDType);
    DocumentMasks masks;
    masks.begin(batch.lengths, batch.prefixes);
    const BatchInputs inputs(runner, model, batch);
    const std::int64_t tokens = batch.count();
    const kernels::Tensor x = runner.activation("hidden", kernels::Shape{tokens, model.config().hidden});
    embedTokens(runner, model.decoder(), inputs.ids(), x.view());
    GivenExperts out = noExperts(model, tokens);
    std::int64_t place = 0;
    const RouterObserver observer{[&](const kernels::RouterTopK& done) {
                                      const auto* ids = done.ids.as<const std::int32_t>();
                                      for (std::int64_t i = 0; i < tokens * out.k; ++i) {
                                          const std::int64_t row = i / out.k * out.layers + place;
                                          out.ids[static_cast<std::size_t>(row * out.k + i % out.k)] =
                                              static_cast<std::uint16_t>(ids[i]);
                                      }
                                      ++place;
                                  },
                                  false};
    for (const DecoderLayer& layer : model.layers()) {
        const FlatAttention* flat = inputs.sharesPrompts() ? &masks.of(layer, inputs.places()) : nullptr;
        attentionForward(runner, {model.config(), layer, inputs.tokens(), nullptr, flat}, x.view(), x.view(), nullptr);
        mlpForward(runner, model.config(), layer, x.view(), x.view(), nullptr, &observer);
    }
    return out;
}

/// Experts that follow from each token's id and its place behind its prompt, so that a prompt's are the same whether it
/// is shared or not.
inline GivenExperts otherExperts(const Model& model, const TrainingBatch& batch) {
    GivenExperts out = noExperts(model, 0);
    std::size_t token = 0;
    for (std::size_t document = 0; document < batch.lengths.size(); ++document) {
        const std::int32_t prefix = batch.prefixes.empty() ? -1 : batch.prefixes[document];
        std::int64_t position = prefix < 0 ? 0 : batch.lengths[static_cast<std::size_t>(prefix)];
        for (std::int32_t i = 0; i < batch.lengths[document]; ++i, ++position, ++token) {
            for (std::int64_t layer = 0; layer < out.layers; ++layer) {
                const std::int64_t first = batch.tokens[token] * 7 + position * 3 + layer * 5;
                for (std::int64_t j = 0; j < out.k; ++j) {
                    out.ids.push_back(static_cast<std::uint16_t>((first + j) % model.config().experts));
                }
            }
        }
    }
    return out;
}

} // namespace vitrine::engine::test
