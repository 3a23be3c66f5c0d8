// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/broken_numbers.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/error.h"

namespace vitrine::engine {
namespace {

/// Attention over all tokens of a long sequence at once would take too long, and the fault lies near the last ones.
constexpr std::size_t kMostLookedAt = 2048;

/// What is broken, as the subject of a sentence; empty: it is not known.
std::string placeOf(Model& model, std::span<const std::int32_t> tokens) {
    BrokenPlace place;
    const kernels::SampleParameters greedy;
    StepBatch batch;
    batch.name = "check";
    batch.repeats = false;
    batch.sequences.push_back({0, tokens.last(std::min(tokens.size(), kMostLookedAt))});
    batch.sampling = std::span(&greedy, 1);
    batch.broken = &place;
    try {
        const StepOutput out = model.step(batch);
        if (place.layer == BrokenPlace::kNowhere && !out.logprobs.empty() && !std::isfinite(out.logprobs.front())) {
            return "the head";
        }
    } catch (const base::OutOfMemory&) {
        // What the layers before the fault gave was finite.
    }
    if (place.layer == BrokenPlace::kNowhere) {
        return {};
    }
    return place.layer == BrokenPlace::kEmbedding ? "the embedding" : fmt::format("layer {}", place.layer);
}

} // namespace

std::string brokenNumbers(Model& model, std::span<const std::int32_t> tokens, std::string_view step,
                          std::int64_t index) {
    const std::string place = placeOf(model, tokens);
    return fmt::format("model: {} is NaN or infinite in {} step {}; a weight is damaged, or numbers outgrow the dtype: "
                       "check the files of the model, or try dtype float32",
                       place.empty() ? "the output (the layer is not known)" : "the output of " + place, step, index);
}

} // namespace vitrine::engine
