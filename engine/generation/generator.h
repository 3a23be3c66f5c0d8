// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Generates answers to several prompts together. The prompts are read in prefill steps of limited size, then all
// requests are decoded in one batch until each has ended.
//
// By default the choice of tokens is greedy. A caller that wants sampling sets Sampling. `fromGenerationConfig` gives a
// model's own defaults; the command line uses them only when the user asks for sampling (temperature above 0). The
// result of a request does not depend on the other requests of the batch. On devices that run ahead, a step is launched
// before the ids of the step before it are read. A stop condition is then seen one step late, and what was computed
// after it is dropped.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/cache/kv_cache.h"
#include "engine/chat/answer_form.h"
#include "engine/generation/expert_record.h"
#include "engine/generation/speculation_counts.h"
#include "engine/model/model.h"
#include "engine/tokenizer/tokenizer.h"
#include "kernels/ops/sampling/sample.h"

namespace vitrine::engine {

struct Sampling {
    float temperature = 0; ///< 0: greedy; only penalties and biases have an effect then
    std::int32_t topK = 0;
    float topP = 1;
    float minP = 0;
    float repetitionPenalty = 1;
    float frequencyPenalty = 0; ///< for each time that a new token was chosen
    float presencePenalty = 0;  ///< once for each new token
    std::uint64_t seed = 0;
    std::vector<kernels::LogitBias> bias;
};

/// The sampling that a model's generation_config.json asks for, at its temperature.
Sampling fromGenerationConfig(const GenerationConfig& config);

class Drafter;

/// How an engine speculates (engine/generation/speculation.h). By default it does not.
struct Speculation {
    static constexpr std::int64_t kMostDraftTokens = 64;

    Drafter* drafter = nullptr;   ///< must outlive the engine; null: no speculation
    std::int64_t draftTokens = 4; ///< of one draft at most; from 1 to kMostDraftTokens. draft_pace.h chooses how many
    /// On Meta, where no token is computed: the probability that a drafted token is right, given that those before it
    /// are.
    double assumedAcceptance = 0.6;

    bool on() const { return drafter != nullptr; }
};

struct GenerateRequest {
    std::vector<std::int32_t> prompt;
    std::int64_t maxNewTokens = 128;
    bool cutToContext = false; ///< maxNewTokens is the rest of the model's context, which was less than was asked for
    Sampling sampling;
    std::vector<std::int32_t> stopTokens; ///< ids that end the request; the stop token is the last id of the answer
    std::vector<std::string> stopTexts;   ///< end the request; they need a tokenizer
    std::vector<std::int32_t> forbidden;  ///< ids that are never chosen
    std::int64_t minNewTokens = 0;        ///< before so many new tokens no stop token is chosen
    std::int32_t topLogprobs = 0;         ///< of BatchEngine: how many of the best tokens to report beside each token
    /// The result has drawLogprobs and temperedLogprobs.
    bool drawLogprobs = false;
    bool returnsExperts = false; ///< the result has the experts; of a model without experts it has none
    /// Of BatchEngine: the request reads its whole prompt, tokens in known pages too.
    bool readsWholePrompt = false;
    /// Of BatchEngine: the result has the log-probability of each token of the prompt. Tokens that are found in known
    /// pages have no logits, so such a request reads its whole prompt.
    bool scoresPrompt = false;
    /// The chat format by which the answer is divided into channels; unset: that of the engine's options.
    std::optional<AnswerForm> answerForm;
    /// The request number of sampling. With a fixed number a seed gives the same answer whenever the request arrives:
    /// 0 for a request that names its own seed. Unset: the request's own number, so that requests differ.
    std::optional<std::uint32_t> samplingNumber;
};

/// Why a request ended. Length: all new tokens that were asked for; Context: the model's context is full. Cancelled,
/// OutOfMemory and Failed: before its answer was complete.
enum class FinishReason : std::uint8_t { None, Length, Context, StopToken, StopText, Cancelled, OutOfMemory, Failed };
/// How many requests ended for each reason, by its number.
using FinishCounts = std::array<std::uint64_t, 8>;
/// Length, Context, StopToken and StopText: the answer is complete.
bool isComplete(FinishReason reason);
/// "length", "context", "stop_token", "stop_text", "cancelled", "out_of_memory", "failed"; None: "unfinished".
std::string_view finishReasonName(FinishReason reason);
/// The finish reason of requests that had not ended when a run failed with this error.
FinishReason finishReasonOf(const base::Error& error);

struct GeneratedToken {
    std::int32_t request = 0;
    std::int32_t index = 0; ///< among the new tokens of its request, from 0
    std::int32_t id = 0;
    std::string text;    ///< the text that can be shown because this token is known; may be empty
    std::string channel; ///< of the text; "final" but for harmony models
    float logprob = 0;
    /// Ids and logprobs of the best alternatives, when they were asked for.
    std::vector<std::pair<std::int32_t, float>> top;
    base::TimeNs time = 0; ///< on the context's clock
};

/// How likely one token of a prompt is after those before it.
struct PromptScore {
    float logprob = 0;
    std::vector<std::pair<std::int32_t, float>> top; ///< ids and logprobs of the best in its place
};

struct GenerateResult {
    std::int64_t promptTokens = 0;
    std::vector<PromptScore> promptScores; ///< of the prompt's tokens from the second on, where they were asked for
    std::vector<std::int32_t> ids;         ///< new tokens, the stop token included
    std::vector<float> logprobs;           ///< under the softmax of the logits as they are
    /// For each new token where the request asks for it, 0 on Meta. Both are defined in kernels/ops/sampling/sample.h:
    /// under the distribution that the token was drawn from, after penalties and filters, and under the softmax of the
    /// logits divided by the temperature.
    std::vector<float> drawLogprobs, temperedLogprobs;
    /// Where the request asks for them, 0 on Meta. They take tokens * layers * k * idBytes bytes of the host's memory.
    ReadExperts experts;
    std::vector<std::vector<std::pair<std::int32_t, float>>> top;
    /// Texts by channel, without the stop text; the answer is in the channel "final".
    std::map<std::string, std::string> channels;
    FinishReason finish = FinishReason::None;
};

struct GenerateReport {
    std::vector<GenerateResult> results;
    double prefillSeconds = 0;        ///< until every request has its first token
    double decodeSeconds = 0;         ///< after that
    std::int64_t prefilledTokens = 0; ///< of all prompts, in steps that came to their end
    /// What of prefillSeconds waited for kernels to compile; nothing where kernels are not compiled.
    std::optional<double> prefillCompileSeconds;
    std::int64_t decodedTokens = 0; ///< new tokens, without the first one of each request
    std::int64_t decodeSteps = 0;
    SpeculationCounts speculation;
    double stepSeconds = 0;    ///< time of the last decode step; of the longest prefill step when nothing was decoded
    std::uint64_t kvBytes = 0; ///< largest sum over the tokens in the cache
    std::uint64_t kvPageBytes = 0; ///< largest sum over the pages
    /// Bytes of pages by KV group, when their sum was kvPageBytes.
    std::vector<std::pair<std::string, std::uint64_t>> kvGroupBytes;
};

struct GenerateOptions {
    KvCacheOptions cache;
    std::int64_t prefillChunk = 0; ///< tokens of one prefill step; 0: prefillChunk() in model.h chooses
    std::int32_t topLogprobs = 0;
    /// Receives the progress of compiling kernels, and of a prefill of several steps.
    base::ProgressSink* progress = nullptr;
    AnswerForm answerForm = AnswerForm::Plain; ///< the format by which answers are divided into channels
    /// For plans on Meta: skips decode steps that would repeat the allocations of the step before, and advances the
    /// clock by their time. The ids of the skipped tokens are 0.
    bool jumpEqualSteps = false;
    /// For measurements: the number of tokens that stand before every prompt in the cache. Their keys and values are
    /// random and are not computed.
    std::int64_t priorTokens = 0;
    std::uint64_t priorSeed = 0;
    Speculation speculation;
    ExpertUse* expertUse = nullptr; ///< for measurements: receives the number of experts that decode steps read, or
                                    ///< null; counted steps are slower
    /// How many decode steps of a run are counted in expertUse, from the first one on. The first step runs op by op
    /// anyway, so counting it costs almost nothing.
    std::int64_t countedSteps = std::numeric_limits<std::int64_t>::max();
};

/// Called after each token on the run's thread. It must not throw.
using TokenCallback = std::function<void(const GeneratedToken&)>;

class Generator {
public:
    /// `tokenizer` may be null: texts are then empty. The model must outlive the generator.
    Generator(Model& model, std::shared_ptr<const Tokenizer> tokenizer, const GenerateOptions& options);
    /// Generates the answers of all requests together. When it throws, `report` holds what was done until then. A
    /// request that had not ended has the finish reason Cancelled, OutOfMemory or Failed.
    void run(std::vector<GenerateRequest> requests, GenerateReport& report, const TokenCallback& onToken);

private:
    Model& model_;
    std::shared_ptr<const Tokenizer> tokenizer_;
    GenerateOptions options_;
};

} // namespace vitrine::engine
