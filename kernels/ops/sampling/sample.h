// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Choosing the next token of each row. Randomness: Philox, key (seed, request), counter (position, draw); equal on
// every backend. On Meta the id is a hash of (seed, position).

#include <span>
#include <vector>

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// Added to one token's logit; the entries of an id that stands several times add up.
struct LogitBias {
    std::int32_t id = 0;
    float bias = 0;
};

struct SampleParameters {
    float temperature = 0; ///< 0: greedy
    std::int32_t topK = 0; ///< 0: off
    float topP = 1;
    float minP = 0;
    float repetitionPenalty = 1;
    float frequencyPenalty = 0; ///< taken off the logit of a new token for each time that it was chosen
    float presencePenalty = 0;  ///< taken off the logit of each new token
    std::uint64_t seed = 0;
    std::uint32_t request = 0;
    std::int64_t position = 0;
    const std::int32_t* history = nullptr; ///< host pointer: tokens so far, for the penalties
    std::int64_t historyLength = 0;
    std::int64_t promptTokens = 0;           ///< the first of the history; the others are new
    const std::int32_t* forbidden = nullptr; ///< host pointer: ids that must not be chosen
    std::int64_t forbiddenCount = 0;
    std::span<const LogitBias> bias; ///< host memory
};

/// What is added to a logit.
struct LogitChange {
    std::int32_t id = 0;
    float added = 0;
};

/// Bias less frequency and presence penalties, ascending ids, each once. Ids may lie outside the vocabulary.
std::vector<LogitChange> logitChanges(const SampleParameters& parameters);
/// Whether the choice depends on tokens that were chosen before.
bool needsHistory(const SampleParameters& parameters);

/// What Sample::drawLogprobs has for each row, by its place.
enum class DrawLogprob : std::uint8_t { Drawn, Tempered };
inline constexpr std::int64_t kDrawLogprobs = 2;

/// Order: repetition penalty, logitChanges(), forbidden ids, temperature, top-k, top-p, min-p, draw. Ties go to the
/// lower id. Log-probabilities are natural logarithms of the softmax over the raw logits, before all of that. The
/// chosen token's is NaN where any logit of the row is not finite.
///
/// `drawLogprobs` has two more natural logarithms for each row, NaN in the same rows. Drawn: of the probability with
/// which the token was drawn, after all of the order above; 0 where nothing is drawn (temperature 0, top-k 1, every id
/// forbidden). Tempered: of the token's share of softmax(logits / temperature) over the whole vocabulary, with the raw
/// logits and no filter, as a trainer computes it that divides logits by the temperature; at temperature 0 it is the
/// one of `logprobs`.
struct Sample {
    static constexpr std::string_view kName = "Sample";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Logits;
    TensorView logits;                            ///< (rows, vocab)
    std::span<const SampleParameters> parameters; ///< one for each row; host memory
    TensorView packed;   ///< I32: packSampleParameters(parameters) on the device; the GPU reads these, unless all rows
                         ///< are plainly greedy
    TensorView ids;      ///< (rows) I32
    TensorView logprobs; ///< (rows) F32 or empty
    TensorView drawLogprobs;      ///< (rows, kDrawLogprobs) F32 or empty
    std::int32_t topLogprobs = 0; ///< how many of the best to report
    TensorView topIds;            ///< (rows, topLogprobs) I32 or empty
    TensorView topLogprobValues;  ///< (rows, topLogprobs) F32 or empty
    TensorView scratch;
};

void check(const Sample& op);
Cost cost(const Sample& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const Sample& op, const DeviceTraits& traits);
void execute(CpuContext& context, const Sample& op);
void execute(CudaContext& context, const Sample& op);
/// Writes nothing: device memory of Meta is virtual. Hosts take metaToken where they would read ids.
void execute(MetaContext& context, const Sample& op);
/// Words by which the lists after the packed parameters grow: histories grow by a token a step, graphs should not.
inline constexpr std::size_t kSampleListStep = 1024;

/// The parameters as 32-bit words for Sample::packed: what a step uploads with its other inputs, so that a captured
/// graph serves new positions and histories. Its length grows in large steps only.
std::vector<std::int32_t> packSampleParameters(std::span<const SampleParameters> parameters);
/// Whether every row takes its largest logit as it is: temperature 0, no penalty, no bias, nothing forbidden. Such
/// steps need no packed parameters and run another kernel: part of what a captured step depends on.
bool plainlyGreedy(std::span<const SampleParameters> parameters);
/// The id that stands for a sample on Meta: a hash of (seed, request, position), below vocab.
std::int32_t metaToken(const SampleParameters& parameters, std::int64_t vocab);

} // namespace vitrine::kernels
