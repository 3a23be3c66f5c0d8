// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Generation over ragged batches: several prompts at once, prefilled in chunks, decoded together until each has ended.
//
// The default is greedy. Sampling is what the caller asks for; `fromGenerationConfig` takes a model's own defaults,
// which the command line does only when the user asked for sampling (temperature above 0). A result does not depend on
// what else is in the batch. Where a step is launched before the ids of the one before it are read, a stop condition is
// seen one step late: what was computed behind it is dropped.

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
#include "engine/model/model.h"
#include "engine/tokenizer/chat_format.h"
#include "engine/tokenizer/tokenizer.h"

namespace vitrine::engine {

struct Sampling {
    float temperature = 0; ///< 0: greedy, the rest but repetitionPenalty then has no effect
    std::int32_t topK = 0;
    float topP = 1;
    float minP = 0;
    float repetitionPenalty = 1;
    std::uint64_t seed = 0;
};

/// The sampling that a model's generation_config.json asks for, at its temperature.
Sampling fromGenerationConfig(const GenerationConfig& config);

struct GenerateRequest {
    std::vector<std::int32_t> prompt;
    std::int64_t maxNewTokens = 128;
    Sampling sampling;
    std::vector<std::int32_t> stopTokens; ///< end the request; the stop token is the last of its ids
    std::vector<std::string> stopTexts;   ///< need a tokenizer
    std::vector<std::int32_t> forbidden;  ///< ids that are never chosen
    /// How its answer is parted into channels; unset: as the engine's options say.
    std::optional<ChatFormatKind> chatFormat;
    /// The number that sampling knows it by, so that one seed gives one answer whenever it comes; unset: its own.
    std::optional<std::uint32_t> samplingNumber;
};

/// The last three: the whole run ended before this request did.
enum class FinishReason : std::uint8_t { None, Length, StopToken, StopText, Cancelled, OutOfMemory, Failed };
/// "length", "stop_token", "stop_text", "cancelled", "out_of_memory", "failed"; None: "unfinished".
std::string_view finishReasonName(FinishReason reason);
/// Of requests that had not ended when a run ended with this error.
FinishReason finishReasonOf(const base::Error& error);

struct GeneratedToken {
    std::int32_t request = 0;
    std::int32_t index = 0; ///< of the new tokens, from 0
    std::int32_t id = 0;
    std::string text;    ///< what became showable
    std::string channel; ///< of the text; "final" but for harmony models
    float logprob = 0;
    std::vector<std::pair<std::int32_t, float>> top; ///< the best alternatives when asked for
    base::TimeNs time = 0;                           ///< on the context's clock
};

struct GenerateResult {
    std::int64_t promptTokens = 0;
    std::vector<std::int32_t> ids; ///< new tokens, the stop token included
    std::vector<float> logprobs;
    std::vector<std::vector<std::pair<std::int32_t, float>>> top;
    std::map<std::string, std::string> channels; ///< texts by channel, the answer is "final"; ends before a stop text
    FinishReason finish = FinishReason::None;
};

struct GenerateReport {
    std::vector<GenerateResult> results;
    double prefillSeconds = 0;      ///< until every request has its first token
    double decodeSeconds = 0;       ///< the rest
    std::int64_t decodedTokens = 0; ///< after the first of each request
    std::int64_t decodeSteps = 0;
    double stepSeconds = 0;        ///< of the last decode step; before there is one, of the longest prefill step
    std::uint64_t kvBytes = 0;     ///< largest sum over tokens kept
    std::uint64_t kvPageBytes = 0; ///< largest sum of pages
    std::vector<std::pair<std::string, std::uint64_t>> kvGroupBytes; ///< pages by group when kvPageBytes was reached
};

struct GenerateOptions {
    KvCacheOptions cache;
    std::int64_t prefillChunk = 0; ///< tokens of one prefill step, 0: the choice of prefillChunk() in model.h
    std::int32_t topLogprobs = 0;
    base::ProgressSink* progress = nullptr;             ///< of compiling kernels, and of a prefill of several steps
    ChatFormatKind chatFormat = ChatFormatKind::ChatMl; ///< how the answer is parted into channels
    /// Scheduling on Meta: decode steps that repeat the last one's allocations are not run; the clock moves on by their
    /// time. Ids of such tokens are 0.
    bool jumpEqualSteps = false;
    /// Measurements: so many tokens with random keys and values stand before every prompt, nothing is computed for
    /// them.
    std::int64_t priorTokens = 0;
    std::uint64_t priorSeed = 0;
    ExpertUse* expertUse = nullptr; ///< measurements: counts the experts of decode steps, which makes them slower
    /// Decode steps to count of each run: the first one runs op by op anyway, and counting it costs next to nothing.
    std::int64_t countedSteps = std::numeric_limits<std::int64_t>::max();
};

/// Called after each token, on the run's thread; must not throw.
using TokenCallback = std::function<void(const GeneratedToken&)>;

class Generator {
public:
    /// `tokenizer` may be null: texts are then empty. The model must outlive the generator.
    Generator(Model& model, std::shared_ptr<const Tokenizer> tokenizer, const GenerateOptions& options);
    /// Generates for all requests together. On every error `report` holds what was done until then, and a request that
    /// had not ended reads Cancelled, OutOfMemory or Failed.
    void run(std::vector<GenerateRequest> requests, GenerateReport& report, const TokenCallback& onToken);

private:
    Model& model_;
    std::shared_ptr<const Tokenizer> tokenizer_;
    GenerateOptions options_;
};

} // namespace vitrine::engine
