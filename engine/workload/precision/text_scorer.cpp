// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/precision/text_scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "kernels/context/context.h"

namespace vitrine::engine {
namespace {

[[noreturn]] void failFile() {
    throw base::BadInput("the temporary file for the log-probabilities of BF16 cannot be written or read; free space "
                         "in the folder for temporary files, or score fewer tokens (text_tokens)");
}

} // namespace

void logSoftmax(std::span<float> logits) {
    const float largest = *std::ranges::max_element(logits);
    double sum = 0;
    for (const float logit : logits) {
        sum += std::exp(static_cast<double>(logit) - largest);
    }
    const double shift = largest + std::log(sum);
    for (float& logit : logits) {
        logit = static_cast<float>(logit - shift);
    }
}

TokenEffect tokenEffect(std::span<const float> logprobs, std::span<const float> reference, std::int32_t next) {
    TokenEffect effect;
    effect.logprob = logprobs[static_cast<std::size_t>(next)];
    TokenCandidate first{-1, -std::numeric_limits<float>::infinity()}, second = first;
    for (std::size_t id = 0; id < logprobs.size(); ++id) {
        const TokenCandidate candidate{static_cast<std::int32_t>(id), logprobs[id]};
        if (candidate.logprob > first.logprob) {
            second = std::exchange(first, candidate);
        } else if (candidate.logprob > second.logprob) {
            second = candidate;
        }
    }
    effect.best = {first, second};
    double divergence = 0;
    for (std::size_t id = 0; id < reference.size(); ++id) {
        const double log = reference[id];
        const double p = std::exp(log);
        divergence += p == 0 ? 0 : p * (log - logprobs[id]);
    }
    effect.kl = static_cast<float>(divergence);
    return effect;
}

TextMeans textMeans(std::span<const TokenEffect> effects, std::span<const TokenEffect> reference) {
    TextMeans means;
    double logprob = 0;
    for (std::size_t i = 1; i < effects.size(); ++i) {
        means.kl += effects[i].kl;
        means.topOne += effects[i].best[0].id == reference[i].best[0].id ? 1 : 0;
        logprob += effects[i].logprob;
    }
    const auto count = static_cast<double>(effects.size() - 1);
    means.kl /= count;
    means.topOne /= count;
    means.perplexity = std::exp(-logprob / count);
    return means;
}

TextScorer::TextScorer(Model& model, std::vector<std::int32_t> ids, const KvCacheOptions& cache,
                       std::int64_t stepTokens)
    : model_(model), ids_(std::move(ids)), cacheOptions_(cache), stepTokens_(stepTokens), reference_(std::tmpfile()) {
    if (reference_ == nullptr) {
        failFile();
    }
}

std::vector<TokenEffect> TextScorer::score(const std::string& what, base::ProgressSink* progress) {
    std::vector<TokenEffect> effects(ids_.size());
    if (std::fseek(reference_.get(), 0, SEEK_SET) != 0) {
        failFile();
    }
    KvCache cache(model_.context(), model_.config(), cacheOptions_);
    const int sequence = cache.addSequence();
    // The last token has no next one, so it need not pass the model.
    const auto total = static_cast<std::int64_t>(ids_.size()) - 1;
    for (std::int64_t begin = 0; begin < total; begin += stepTokens_) {
        if (progress != nullptr) {
            progress->progress(what, static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(total));
        }
        scorePiece(begin, std::min(stepTokens_, total - begin), cache, sequence, effects);
    }
    hasReference_ = true;
    return effects;
}

void TextScorer::scorePiece(std::int64_t begin, std::int64_t count, KvCache& cache, int sequence,
                            std::vector<TokenEffect>& effects) {
    const std::int64_t vocab = model_.config().vocab;
    const auto values = static_cast<std::size_t>(count * vocab);
    std::vector<float> rows(values);
    StepBatch batch;
    batch.name = "prefill";
    batch.sequences.push_back(
        {sequence, std::span(ids_).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)), true,
         static_cast<std::int64_t>(ids_.size()) - 1});
    batch.logits = StepLogits::All;
    batch.logitsOut = rows.data();
    model_.step(batch, cache);
    std::vector<float> reference(hasReference_ ? values : 0);
    if (hasReference_) {
        readReference(reference);
    }
    model_.context().hostPool().parallelFor(count, 1, [&](std::int64_t first, std::int64_t end, int) {
        for (std::int64_t row = first; row < end; ++row) {
            const auto at = static_cast<std::size_t>(row * vocab), width = static_cast<std::size_t>(vocab);
            const std::span<float> logits = std::span(rows).subspan(at, width);
            logSoftmax(logits);
            const std::size_t token = static_cast<std::size_t>(begin + row) + 1;
            effects[token] = tokenEffect(
                logits, hasReference_ ? std::span<const float>(reference).subspan(at, width) : std::span<const float>(),
                ids_[token]);
        }
    });
    if (!hasReference_) {
        keepReference(rows);
    }
}

void TextScorer::keepReference(std::span<const float> rows) {
    if (std::fwrite(rows.data(), sizeof(float), rows.size(), reference_.get()) != rows.size() ||
        std::fflush(reference_.get()) != 0) {
        failFile();
    }
}

void TextScorer::readReference(std::span<float> rows) {
    if (std::fread(rows.data(), sizeof(float), rows.size(), reference_.get()) != rows.size()) {
        failFile();
    }
}

} // namespace vitrine::engine
