// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the workloads share. They make contexts, models and prompts from an experiment's options, and the metrics that
// every run reports. Runs and plans use the same functions.

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/chat/chat_format.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/folder_lock.h"
#include "engine/generation/generator.h"
#include "engine/model/model.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/workload/common/run_devices.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "kernels/core/backend.h"

namespace vitrine::kernels {
class Context;
} // namespace vitrine::kernels

namespace vitrine::engine {

/// One experiment while it runs. The workload fills `metrics` as soon as values are known. The members refer to values
/// of the caller, which must outlive this.
struct Run {
    const Experiment& spec;
    const WorkloadSinks& sinks;
    base::StopToken stop;
    nlohmann::json& metrics;
    std::string today = {};           ///< YYYY-MM-DD, that prompts take for today; empty: the clock's
    std::span<FolderLock> locks = {}; ///< of the folders that it writes into

    std::uint64_t seed() const;
    /// How often the work is repeated; `unset` when the experiment does not say it.
    std::int64_t repeats(std::int64_t unset = 1) const;
};

/// The traits for an experiment on Meta. They are those of the option device_profile. Without it they are those of this
/// machine's CPU when the backend is cpu, those of this machine's GPU when a profile describes it, and those of
/// h100-80gb otherwise. `name` (may be null) receives the value of the metric device_profile.
kernels::DeviceTraits planTraits(const Run& run, std::string* name);

/// The backend of an experiment. "auto" means a GPU when this machine has one that can be used. A plan has Meta.
kernels::Backend backendOf(const Experiment& experiment);
/// The traits of the experiment's device_profile. Without that option they are those of this machine's GPU when a
/// profile describes it, and those of h100-80gb otherwise. `name` (may be null) receives the profile's name.
kernels::DeviceTraits profileTraits(const Experiment& experiment, std::string* name = nullptr);

/// Makes the context that the experiment runs on. Throws Unsupported for cuda on a machine without a usable GPU; the
/// message says what to do.
RunDevices makeContext(const Run& run);
/// Makes a Meta context with planTraits(), whatever backend the experiment names. `bounded` false gives it no budget,
/// so that a plan that does not fit can find how much it needs. Of several ranks it is `rank`.
RunDevices makePlanContext(const Run& run, base::TraceSink* trace, bool bounded = true, int rank = 0);

/// The model of an experiment. Its weights are those that its adapter, if it has one, makes of them.
ModelSource openSource(const Run& run);
/// `weights` is a value of the option but "both". Without the option dtype the model computes in float32 on the CPU and
/// in bfloat16 elsewhere.
ModelOptions modelOptions(const Run& run, kernels::Context& context, const std::string& weights);
GenerateOptions generateOptions(const Run& run, const ModelOptions& model);

/// The requests of an experiment and their tokenizer. The tokenizer is null when prompts are token ids.
struct Prompts {
    std::vector<GenerateRequest> requests;
    std::shared_ptr<const Tokenizer> tokenizer;
    AnswerForm answerForm = AnswerForm::Plain; ///< raw text has a format without channels
};
/// Whether the experiment has a prompt: as text, chat, tokens, a file of tokens or a length.
bool hasInput(const Experiment& experiment);
/// Throws BadInput "NAME: KEY: what" when the experiment has more than one prompt, or none although one is `needed`.
void checkInput(const Experiment& experiment, const std::string& name, bool needed);
Prompts makePrompts(const Run& run, const ModelSource& source, bool meta);

/// Turns prompts into requests. The experiment says what all requests have: sampling, stop rules, chat format. The
/// tokenizer is loaded for the first prompt that is given as text.
class RequestMaker {
public:
    /// `meta`: stop rules are ignored. Throws BadInput for options that contradict each other.
    RequestMaker(const Run& run, const ModelSource& source, bool meta);
    ~RequestMaker();
    RequestMaker(const RequestMaker&) = delete; // views the run and the source
    RequestMaker& operator=(const RequestMaker&) = delete;

    GenerateRequest fromTokens(std::vector<std::int32_t> tokens) const;
    /// A request with `prompt` as a user message, or as plain text with the option raw. Throws BadInput when the model
    /// has no tokenizer.
    GenerateRequest fromText(const std::string& prompt);
    GenerateRequest fromMessages(const std::vector<ChatMessage>& messages);

    /// Loads the tokenizer and the chat format, so that the functions below may be called on several threads. Throws
    /// what fromText() throws, and Unsupported when no chat format fits the model. The tokenizer is loaded even then.
    void prepareText();
    bool hasChat() const { return format_ != nullptr; }
    /// A request with the text as it is. Ids without a token are never chosen. REQUIRES a tokenizer.
    GenerateRequest fromRawText(const std::string& text) const;
    /// A request with the messages of a chat. REQUIRES hasChat().
    GenerateRequest fromChat(const std::vector<ChatMessage>& messages, const ChatOptions& options) const;
    /// What the experiment says about chats, once the text is prepared.
    const ChatOptions& chatOptions() const { return options_; }
    /// Null where hasChat() is false.
    const ChatFormat* chatFormat() const { return format_.get(); }
    const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; } ///< null before the first text
    AnswerForm answerForm() const;
    /// The largest number of ids that one of its requests forbids, those of ignore_eos included. It counts ids without
    /// a token once the tokenizer is loaded.
    std::int64_t mostForbidden() const;

private:
    void limitStops(GenerateRequest& request) const;

    const Run& run_;
    const ModelSource& source_;
    bool meta_;
    GenerateRequest common_;
    std::vector<std::int32_t> unknown_; ///< ids without a token, which are never chosen
    std::shared_ptr<const Tokenizer> tokenizer_;
    std::shared_ptr<const ChatFormat> format_;
    ChatOptions options_;
};

/// Tokens of a prompt whose text does not matter. Different streams give different tokens.
std::vector<std::int32_t> arbitraryTokens(std::int64_t count, std::int64_t vocab, std::uint64_t seed,
                                          std::uint32_t stream);
/// The temperature for sampling: 0 when 1 / `temperature` would be infinite.
float usableTemperature(double temperature);
/// The most tokens that the model has positions for; 0: no limit.
std::int64_t contextLimit(const ModelConfig& config);

/// Throws BadInput "ORIGIN: what" when a row is longer than the model's context.
void checkContext(const std::vector<std::vector<std::int32_t>>& rows, const ModelConfig& config,
                  const std::string& origin);

/// A token for WorkloadSinks::token. The caller adds the texts of its alternatives.
StreamedToken streamed(const GeneratedToken& token);

/// Adds model, weights, dtype, backend, time_base, device, threads (CPU) and device_profile (Meta) to run.metrics.
void addContextMetrics(const Run& run, kernels::Context& context);
/// Adds load_seconds, bytes_read and resident_bytes, and weights_kept when the weights are those of an earlier run.
/// The metric finish_reasons: reasons with their counts, without those that none ended for.
nlohmann::json finishCountsJson(const FinishCounts& counts);
void addLoadMetrics(nlohmann::json& metrics, const LoadReport& report);
/// Adds peak_bytes, peak_by_category, max_by_category, current and reserved bytes, and host_peak_bytes.
void addMemoryMetrics(nlohmann::json& metrics, kernels::Context& context);
/// On CUDA, adds kernel_compile_seconds (time that the run waited for compilers and the disk cache), kernels_compiled
/// (kernels that were not in the cache), kernel_compiler_seconds (time of the compilers, summed over these kernels) and
/// kernels (every variant in use).
void addKernelMetrics(nlohmann::json& metrics, kernels::Context& context);
/// Adds the metrics of the context, runs `work`, and then adds the metrics of memory and kernels, even when `work`
/// throws.
void runMeasured(const Run& run, kernels::Context& context, const std::function<void()>& work);
nlohmann::json categoryJson(const base::CategoryBytes& bytes);

/// Adds "kv_cache": dtype, kind, and for each KV group its layers, window (0: it keeps all tokens) and bytes of one
/// token. The formula in engine/cache/kv_cache.h gives the bytes at any number of tokens from these.
void addKvMetrics(nlohmann::json& metrics, const ModelConfig& config, const KvCacheOptions& options);
/// Adds them to run.metrics and reports them to run.sinks.
void reportKvMetrics(const Run& run, const ModelConfig& config, const KvCacheOptions& options);

/// The median: the middle value, or the mean of the two middle values of an even count.
double median(std::vector<double> values);
/// Keeps the single values of a result that is their median under "repeats"; of one value nothing. `path` is that of
/// the result from the top of the metrics, "variants.quantized.seconds".
void addRepeats(nlohmann::json& metrics, const std::string& path, const std::vector<double>& values);
/// Calls work(0), work(1), ..., `times` in all, and returns the seconds that each call took. On a GPU the device's
/// clock measures them, and the host does not wait between the calls. So the work of the host for one call overlaps
/// with earlier calls on the device.
std::vector<double> secondsOfRuns(kernels::Context& context, std::int64_t times,
                                  const std::function<void(std::int64_t)>& work);

} // namespace vitrine::engine
