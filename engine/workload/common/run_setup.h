// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the workloads share: an experiment's options turned into contexts, models, prompts, and the metrics that every
// run reports. Used by runExperiment and by planning.

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/generation/generator.h"
#include "engine/model/model.h"
#include "engine/tokenizer/chat_format.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

/// One experiment on its way. `metrics` is filled as facts become known. References the caller's values.
struct Run {
    const Experiment& spec;
    const WorkloadSinks& sinks;
    base::StopToken stop;
    nlohmann::json& metrics;

    std::uint64_t seed() const;
    /// How often it is to be done; `unset`: where the experiment does not say it.
    std::int64_t repeats(std::int64_t unset = 1) const;
};

/// The traits of an experiment on Meta: of `device_profile`, of this machine's CPU where the backend is cpu, of this
/// machine's GPU when a profile describes it, else h100-80gb. `name` (may be null) receives what the result reports as
/// device_profile.
kernels::DeviceTraits planTraits(const Run& run, std::string* name);

/// Where an experiment runs: "auto" is a GPU when this machine has one that can be used. Meta for a plan.
kernels::Backend backendOf(const Experiment& experiment);
/// The shipped profile of a device by its name as the driver tells it; empty when there is none.
std::string profileOfDevice(const std::string& deviceName);
/// The traits of an experiment's device_profile; without one, of the GPU present when a profile describes it, else
/// h100-80gb. `name` (may be null) receives the profile's name.
kernels::DeviceTraits profileTraits(const Experiment& experiment, std::string* name = nullptr);

/// The context that the experiment runs on. Throws Unsupported, with what to do, for cuda where there is none.
std::unique_ptr<kernels::Context> makeContext(const Run& run);
/// A Meta context with planTraits; used by planning, whatever the backend option says. `bounded` false: without a
/// budget, to learn what something needs that does not fit.
std::unique_ptr<kernels::Context> makePlanContext(const Run& run, base::TraceSink* trace, bool bounded = true);

ModelSource openSource(const Run& run);
/// `weights` is "quantized" or "dequantized". float32 on the CPU and bfloat16 elsewhere unless the dtype option says
/// more.
ModelOptions modelOptions(const Run& run, kernels::Context& context, const std::string& weights);
GenerateOptions generateOptions(const Run& run, const ModelOptions& model);

/// Prompts, stop rules and the tokenizer of a generate experiment. The tokenizer is null when prompts are tokens.
struct Prompts {
    std::vector<GenerateRequest> requests;
    std::shared_ptr<const Tokenizer> tokenizer;
    ChatFormatKind chatFormat = ChatFormatKind::ChatMl; ///< raw text is read as a format without channels
};
/// Whether the experiment has a prompt: as text, chat, tokens, a file of tokens or a length.
bool hasInput(const Experiment& experiment);
/// Throws BadInput "NAME: KEY: what" for more than one prompt, and for none where one is `needed`.
void checkInput(const Experiment& experiment, const std::string& name, bool needed);
Prompts makePrompts(const Run& run, const ModelSource& source, bool meta);

/// Turns prompts into requests with what the experiment says of all of them: sampling, stops, chat format. The
/// tokenizer is loaded for the first prompt given as text.
class RequestMaker {
public:
    /// `meta`: stops do not count. Throws BadInput for options that contradict each other.
    RequestMaker(const Run& run, const ModelSource& source, bool meta);
    ~RequestMaker();
    RequestMaker(const RequestMaker&) = delete; // views the run and the source
    RequestMaker& operator=(const RequestMaker&) = delete;

    GenerateRequest fromTokens(std::vector<std::int32_t> tokens) const;
    /// One user message, or with raw the text itself. Throws BadInput where the model has no tokenizer.
    GenerateRequest fromText(const std::string& prompt);
    GenerateRequest fromMessages(const std::vector<ChatMessage>& messages);

    /// For those that make requests on several threads: loads the tokenizer and the chat format; what follows then only
    /// reads. Throws as fromText does, and Unsupported where no chat format fits; the tokenizer is then there all the
    /// same.
    void prepareText();
    bool hasChat() const { return format_ != nullptr; }
    /// The text as it is, and ids without a token are never chosen. REQUIRES a tokenizer.
    GenerateRequest fromRawText(const std::string& text) const;
    /// `reasoningEffort` empty: as the experiment says. REQUIRES hasChat().
    GenerateRequest fromChat(const std::vector<ChatMessage>& messages, const std::string& reasoningEffort) const;
    const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; } ///< null before the first text
    ChatFormatKind chatFormat() const;
    /// Of ids that one of its requests forbids, those of ignore_eos included; once the text is prepared, of all.
    std::int64_t mostForbidden() const;

private:
    void limitStops(GenerateRequest& request) const;

    const Run& run_;
    const ModelSource& source_;
    bool meta_;
    GenerateRequest common_;
    std::vector<std::int32_t> unknown_; ///< ids without a token: never chosen
    std::shared_ptr<const Tokenizer> tokenizer_;
    std::unique_ptr<ChatFormat> format_;
};

/// Tokens of a prompt whose text does not matter; different streams give different ones.
std::vector<std::int32_t> arbitraryTokens(std::int64_t count, std::int64_t vocab, std::uint64_t seed,
                                          std::uint32_t stream);
/// As sampling takes it: 0 where its inverse would be infinite.
float usableTemperature(double temperature);
/// Most tokens that the model has positions for; 0: no limit.
std::int64_t contextLimit(const ModelConfig& config);

/// Rows of `input_ids` (batch, seq), I32 or I64. Throws BadInput "FILE: input_ids: what".
std::vector<std::vector<std::int32_t>> readTokenRows(const std::string& path);
/// Throws BadInput "ORIGIN: what" when an id is outside the vocabulary.
void checkTokenIds(const std::vector<std::vector<std::int32_t>>& rows, std::int64_t vocab, const std::string& origin);
/// Throws BadInput "ORIGIN: what" when a row is longer than the model's context.
void checkContext(const std::vector<std::vector<std::int32_t>>& rows, const ModelConfig& config,
                  const std::string& origin);

/// What streams take of a token; the texts of its alternatives are the caller's to add.
StreamedToken streamed(const GeneratedToken& token);

/// Fills in model, weights, dtype, backend, time_base, device, threads (CPU), device_profile (Meta).
void addContextMetrics(const Run& run, kernels::Context& context);
/// load_seconds, bytes_read, resident_bytes, and weights_kept where they are those of the run before.
void addLoadMetrics(nlohmann::json& metrics, const LoadReport& report);
/// peak_bytes, peak_by_category, max_by_category, current and reserved bytes, host_peak_bytes.
void addMemoryMetrics(nlohmann::json& metrics, kernels::Context& context);
/// On CUDA: kernel_compile_seconds (waited for compilers and the disk cache), kernels_compiled (not found in the
/// cache), kernel_compiler_seconds (sum over them, however many at a time) and kernels, every variant in use.
void addKernelMetrics(nlohmann::json& metrics, kernels::Context& context);
/// Does `work` between what a context says of itself and its memory's and kernels' metrics, which a failure leaves too.
void runMeasured(const Run& run, kernels::Context& context, const std::function<void()>& work);
nlohmann::json categoryJson(const base::CategoryBytes& bytes);

/// kv_cache: dtype, kind, and for each group of layers its layers, window (0: keeps everything) and bytes of one token.
/// With them the bytes at any number of tokens follow by the formula of engine/cache/kv_cache.h.
void addKvMetrics(nlohmann::json& metrics, const ModelConfig& config, const KvCacheOptions& options);
/// The same for run.metrics, and tells run.sinks.
void tellKvMetrics(const Run& run, const ModelConfig& config, const KvCacheOptions& options);

/// Middle of the values; the mean of the two middle ones of an even count.
double median(std::vector<double> values);
/// Seconds of each of `times` runs of work(0), work(1), ...; on a GPU by its own clock, and without a wait between
/// them: what the host does for one run is hidden behind those before it.
std::vector<double> secondsOfRuns(kernels::Context& context, std::int64_t times,
                                  const std::function<void(std::int64_t)>& work);

} // namespace vitrine::engine
