// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the workload `precision` finds out: the error of each weight in each format, and what these errors do to the
// probabilities of a text. The run's metrics keep it as JSON: columns of numbers with nine digits. Immutable once made;
// any thread may read it.

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/quant/rounding_error.h"

namespace vitrine::engine {

/// One format of the list. Number 0 is always BF16, the reference.
struct FormatEffect {
    std::string name;                 ///< "int4:32", as precision_format.h reads it
    std::string title;                ///< "INT4, g32"
    double bitsPerWeight = 0;         ///< of the weights that are packed, with scales and zeros
    std::uint64_t bytes = 0;          ///< of the whole model, with what stays dense
    std::uint64_t packedWeights = 0;  ///< matrices; 0 for BF16
    std::optional<double> klMean;     ///< mean over the tokens, nats; nothing: no text was scored
    std::optional<double> topOne;     ///< share of tokens whose most likely next token is that of BF16
    std::optional<double> perplexity; ///< exp of the mean of -log-probability
    std::optional<double>
        plannedRate; ///< tokens/s of decoding one sequence, as priced for the device; nothing: unknown
};

/// One matrix that a format may pack. Each expert of a stack is one.
struct LabWeight {
    std::string name; ///< of the weight in the files; experts of one stack share it
    std::int32_t layer = -1;
    std::string role;         ///< "q", "k", "v", "o", "gate", "up", "down", "gate_up", "router", ...
    std::int64_t expert = -1; ///< -1: no expert
    std::int64_t out = 0, in = 0;
    double squaredValues = 0; ///< sum of w^2

    std::int64_t count() const { return out * in; }
};

/// A weight in one format.
struct WeightEffect {
    bool packable = true;    ///< false: the format has no groups for this shape; there is no error then
    bool kept = false;       ///< it stays BF16: a router, on the ignore list, or not packable. The error is what the
                             ///< format would do to it.
    std::uint64_t bytes = 0; ///< in the format, whether kept or not; of one that is not packable those of BF16
    RoundingError error;     ///< without values for BF16
};

struct TokenCandidate {
    std::int32_t id = -1;
    float logprob = 0; ///< nats
};

/// A token of the text under one format.
struct TokenEffect {
    float logprob = 0;                       ///< ln p(token | those before it), nats
    float kl = 0;                            ///< sum over the vocabulary of p_B ln(p_B / p_A), B = BF16; 0 for BF16
    std::array<TokenCandidate, 2> best = {}; ///< most likely first
};

/// The text that was scored. Token 0 has nothing before it, so its effects are all zero and count nowhere.
struct LabText {
    std::string name;                ///< the file's, "text of vitrine-demo", "text of the program"
    std::vector<std::int32_t> ids;   ///< empty: no text was scored
    std::vector<std::string> pieces; ///< UTF-8 of each token; joined they are the text
    /// The text of each candidate that occurs, by id, in ascending order.
    std::vector<std::pair<std::int32_t, std::string>> candidatePieces;

    std::size_t scored() const { return ids.empty() ? 0 : ids.size() - 1; }
};

/// The weights of one role, in all layers or in neighbouring ones.
struct KeepPart {
    std::string role;
    std::int32_t firstLayer = -1, lastLayer = -1; ///< both belong to it; -1: all layers

    bool allLayers() const { return firstLayer < 0; }
    bool has(const LabWeight& weight) const {
        return weight.role == role && (allLayers() || (weight.layer >= firstLayer && weight.layer <= lastLayer));
    }
};

/// What keeping a part of the weights in BF16 would change in one format.
struct KeepEffect {
    std::size_t format = 0; ///< number in `formats`
    KeepPart part;
    std::uint64_t bytesAdded = 0;      ///< BF16 minus packed
    double klMean = 0;                 ///< with the part in BF16, nats
    double klSaved = 0;                ///< of the format's klMean; below 0: it became worse
    std::optional<double> plannedRate; ///< as in FormatEffect, with the part in BF16
    /// klSaved for each GiB; 0 where no bytes are added.
    double klSavedPerGib() const;
};

struct PrecisionResult {
    std::vector<FormatEffect> formats;
    std::vector<LabWeight> weights;    ///< in the order of the model
    std::vector<WeightEffect> effects; ///< (formats, weights)
    LabText text;
    std::vector<TokenEffect> tokens; ///< (formats, tokens of the text)
    std::vector<KeepEffect> keep;    ///< by klSavedPerGib, largest first within a format; empty unless asked for
    std::uint64_t keptBytes = 0;     ///< of embedding, head, norms and all else that no format packs

    const WeightEffect& effect(std::size_t format, std::size_t weight) const {
        return effects[format * weights.size() + weight];
    }
    const TokenEffect& token(std::size_t format, std::size_t index) const {
        return tokens[format * text.ids.size() + index];
    }
};

/// The error of all weights that are packed in a format. Without values for BF16.
RoundingError packedError(const PrecisionResult& result, std::size_t format);

nlohmann::json precisionJson(const PrecisionResult& result);
/// Nothing when the JSON is not of this form, for example damaged or of a version with other columns.
std::optional<PrecisionResult> precisionFromJson(const nlohmann::json& json);

} // namespace vitrine::engine
