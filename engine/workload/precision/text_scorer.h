// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How likely a model finds each token of a text, and how far its probabilities are from those that it had before its
// weights were rounded. The text passes the model in pieces, so the logits of a whole text are never in memory at once.
// The log-probabilities of the reference (tokens, vocab; float32) lie in a temporary file without a name meanwhile.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/stop.h"
#include "engine/model/model.h"
#include "engine/workload/precision/precision_result.h"

namespace vitrine::engine {

/// The phase of a trace in which the lab scores its text in a format. Its index is the number of the format, its steps
/// are the pieces of the text in their order.
inline constexpr std::string_view kScorePhase = "score";

/// Log-probabilities of logits (vocab), in place: x - max - ln(sum e^(x - max)), with the sum in double.
void logSoftmax(std::span<float> logits);

/// The effect of one row of log-probabilities (vocab) on the token `next`, with `reference` (vocab) for the divergence;
/// empty: there is none, and kl is 0. NaN where a value is not finite.
TokenEffect tokenEffect(std::span<const float> logprobs, std::span<const float> reference, std::int32_t next);

/// Means over all tokens but the first.
struct TextMeans {
    double kl = 0, topOne = 0, perplexity = 0;
};
/// `effects` and those of the reference, one for each token of a text. REQUIRES two tokens or more.
TextMeans textMeans(std::span<const TokenEffect> effects, std::span<const TokenEffect> reference);

/// Belongs to the thread of the model's context. The model outlives it.
class TextScorer {
public:
    /// `stepTokens`: the length of the pieces. REQUIRES two tokens or more, and no more than the model has positions
    /// for.
    TextScorer(Model& model, std::vector<std::int32_t> ids, const KvCacheOptions& cache, std::int64_t stepTokens);

    /// Scores the text with the weights that the model has now. The first call is the reference of all others. Reports
    /// `what` with the tokens that are done; `progress` may be null. Throws Cancelled, OutOfMemory, and BadInput when
    /// the temporary file has no room.
    std::vector<TokenEffect> score(const std::string& what, base::ProgressSink* progress);

private:
    struct CloseFile {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    using File = std::unique_ptr<std::FILE, CloseFile>;

    void scorePiece(std::int64_t begin, std::int64_t count, KvCache& cache, int sequence,
                    std::vector<TokenEffect>& effects);
    void keepReference(std::span<const float> rows);
    void readReference(std::span<float> rows);

    Model& model_;
    std::vector<std::int32_t> ids_;
    KvCacheOptions cacheOptions_;
    std::int64_t stepTokens_;
    File reference_;
    bool hasReference_ = false;
};

} // namespace vitrine::engine
