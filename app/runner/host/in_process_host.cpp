// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <atomic>
#include <chrono>
#include <fmt/format.h>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "app/runner/host/outcome.h"
#include "app/runner/host/run_host.h"
#include "app/runner/machine/environment.h"
#include "app/runner/recording/gpu_profiling.h"
#include "app/runner/recording/run_prediction.h"
#include "app/runner/recording/run_profiles.h"
#include "app/runner/recording/run_rates.h"
#include "app/runner/recording/run_recording.h"
#include "base/clock.h"
#include "base/json_values.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/units.h"
#include "engine/language/module.h"
#include "engine/tokenizer/unicode_text.h"
#include "engine/workload/common/output_files.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/experiment/workload_table.h"
#include "kernels/cuda/kept_state.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

sessions::RunStatus sessionStatus(RunOutcome::Status status) {
    switch (status) {
    case RunOutcome::Status::Done:
        return sessions::RunStatus::Done;
    case RunOutcome::Status::OutOfMemory:
        return sessions::RunStatus::OutOfMemory;
    case RunOutcome::Status::Cancelled:
        return sessions::RunStatus::Cancelled;
    case RunOutcome::Status::Failed:
        break;
    }
    return sessions::RunStatus::Failed;
}

/// The text of a streamed token's request and channel: "output", "output.analysis", "output.3".
std::string textKind(const engine::StreamedToken& token, std::int32_t request) {
    std::string kind = "output";
    if (request > 0) {
        kind += fmt::format(".{}", request);
    }
    if (!token.channel.empty() && token.channel != "final") {
        kind += "." + token.channel;
    }
    return kind;
}

/// Passes progress on, at most 20 times a second and always the end.
class ProgressMessages final : public base::ProgressSink {
public:
    explicit ProgressMessages(const RunMessageSink& sink) : sink_(sink) {}
    void progress(std::string_view what, std::uint64_t done, std::uint64_t total) override {
        const auto now = std::chrono::steady_clock::now();
        if (done != total && what == last_ && now - lastTime_ < std::chrono::milliseconds(50)) {
            return;
        }
        lastTime_ = now;
        last_ = what;
        sink_({{"type", "progress"}, {"what", what}, {"done", done}, {"total", total}});
    }

private:
    const RunMessageSink& sink_;
    std::string last_;
    std::chrono::steady_clock::time_point lastTime_;
};

json tokenMessage(const engine::StreamedToken& token) {
    json top = json::array();
    for (std::size_t i = 0; i < token.top.size(); ++i) {
        top.push_back({{"id", token.top[i].first}, {"logprob", token.top[i].second}});
        if (i < token.topTexts.size()) {
            top.back()["text"] = token.topTexts[i];
        }
    }
    return {{"type", "token"},          {"request", token.request}, {"index", token.index},
            {"id", token.id},           {"text", token.text},       {"channel", token.channel},
            {"logprob", token.logprob}, {"top", std::move(top)},    {"time", token.time}};
}

constexpr std::uint64_t kLeastSessionBytes = std::uint64_t{1} << 20;

/// Tokens of one text: a text is written again as a whole whenever it grows.
constexpr std::int32_t kTokensInText = 512;

/// "tokens.000000", "tokens.000001", ...; of other requests "tokens.3.000000".
std::string tokenListKind(const engine::StreamedToken& token, std::int32_t request) {
    const std::string number = request > 0 ? fmt::format("{}.", request) : std::string();
    return fmt::format("tokens.{}{:06}", number, token.index / kTokensInText);
}

/// A token as it is kept: the message without what its place says already, one line.
std::string tokenLine(json message) {
    for (const char* known : {"type", "request", "index"}) {
        message.erase(known);
    }
    for (const char* maybe : {"channel", "top"}) {
        if (message[maybe].empty() || message[maybe] == "") {
            message.erase(maybe);
        }
    }
    return message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

/// What a session keeps of a token, with the numbers of the run's part.
std::vector<sessions::RunText> keptTexts(const engine::StreamedToken& token, json message, const PartOrigin& origin) {
    const std::int32_t request = token.request - origin.request;
    message["time"] = std::max<base::TimeNs>(token.time - origin.time, 0);
    std::vector<sessions::RunText> texts{{tokenListKind(token, request), tokenLine(std::move(message))}};
    if (!token.text.empty()) {
        texts.push_back({textKind(token, request), token.text});
    }
    return texts;
}

/// Bytes that the run may take in its session; 0: as many as it comes to.
std::uint64_t sessionLimit(const engine::Experiment& experiment) {
    const std::uint64_t limit = experiment.has("session_limit") ? experiment.bytes("session_limit") : 0;
    if (limit > 0 && limit < kLeastSessionBytes) {
        throw base::BadInput(
            fmt::format("session_limit: {} are too few to keep anything useful; give at least {}, or 0 to "
                        "keep everything",
                        base::formatBytes(limit), base::formatBytes(kLeastSessionBytes)));
    }
    return limit;
}

/// A run that did all its work, but is not saved whole.
RunOutcome withFailure(RunOutcome outcome, const std::string& sentence) {
    outcome.status = RunOutcome::Status::Failed;
    outcome.errorKind = base::ErrorKind::Internal;
    outcome.exitCode = base::exitCode(outcome.errorKind);
    outcome.error = sentence;
    return outcome;
}

/// What a plan says of the run, for the error band of later plans. A run does not fail because its plan does.
void addPrediction(const engine::Experiment& experiment, const base::StopToken& stop, json& metrics) {
    try {
        if (const auto peak = predictedPeak(experiment, stop)) {
            metrics[engine::result::kPlannedPeakBytes.key] = *peak;
        }
    } catch (const std::exception& error) {
        base::logInfo(fmt::format("the run has no plan to compare it with: {}", error.what()));
    }
}

class InProcessHost final : public RunHost {
public:
    InProcessHost(bool keeps, engine::RequestFeed* feed)
        : kept_(keeps ? std::make_unique<kernels::KeptState>() : nullptr), feed_(feed) {}
    InProcessHost(const InProcessHost&) = delete; // a thread holds its address
    InProcessHost& operator=(const InProcessHost&) = delete;
    ~InProcessHost() override {
        stop();
        join();
    }

    void start(const engine::Experiment& experiment, const std::string& sessionFile, RunMessageSink sink) override;
    void stop() override {
        const std::lock_guard lock(mutex_);
        stop_.request_stop();
    }
    void saveCheckpoint() override { saveWanted_ = true; }
    bool running() const override { return running_; }
    RunOutcome wait() override {
        join();
        return outcome_;
    }
    void release() override {
        const std::lock_guard lock(mutex_);
        releaseAfter_ = keptInUse_;
        if (kept_ != nullptr && !keptInUse_) {
            kept_->release();
        }
    }

private:
    void join() {
        if (thread_.joinable()) {
            thread_.join();
        }
    }
    void work(const engine::Experiment& experiment, const base::StopToken& stop);
    std::uint64_t leaveKept();
    void tell(const json& message);
    void takeToken(const engine::StreamedToken& token, bool serves);
    json execute(const engine::Experiment& experiment, const base::StopToken& stop, json& partial);

    std::mutex mutex_; // stop() and release() may come from any thread
    base::StopSource stop_;
    std::unique_ptr<kernels::KeptState> kept_; ///< null: nothing is kept
    engine::RequestFeed* feed_;                ///< null: none
    bool keptInUse_ = false, releaseAfter_ = false;
    std::atomic<bool> running_ = false, saveWanted_ = false;
    std::thread thread_;
    /// What a run reports to; it never throws.
    const RunMessageSink sink_ = [this](const json& message) { tell(message); };
    RunMessageSink receiver_;
    std::exception_ptr sinkFailure_; ///< of the receiver: it hears no more, and the run ends with it
    bool heard_ = false;             ///< there is a receiver
    std::unique_ptr<RunRecording> recording_;
    std::string sessionFile_; ///< of the recording
    RunOutcome outcome_;
};

void InProcessHost::start(const engine::Experiment& experiment, const std::string& sessionFile, RunMessageSink sink) {
    if (running_) {
        throw base::Internal("a run is going on; wait for its end or stop it");
    }
    join();
    recording_.reset();
    engine::checkOutputs(experiment, sessionFile);
    if (!sessionFile.empty()) {
        // Programs of attention: their files may change, the session keeps what ran.
        std::vector<engine::PyFile> files;
        for (const std::string& path : experiment.texts("mods")) {
            files.push_back(engine::readPyFile(path));
        }
        auto session = sessions::SessionFile::open(sessionFile, sessions::OpenMode::CreateOrOpen);
        sessionFile_ = sessionFile;
        sessions::RunInfo info;
        info.name = engine::replaceInvalidUtf8(engine::runName(experiment));
        info.workload = engine::runWorkload(experiment);
        info.specJson = base::compactText(experiment.toJson());
        const json environment = runEnvironment(experiment);
        info.environmentJson = base::compactText(environment);
        const bool isVirtual = environment.value("time_base", "") == "virtual";
        recording_ = std::make_unique<RunRecording>(std::move(session), info, sessionLimit(experiment),
                                                    isVirtual ? base::TimeBase::Virtual : base::TimeBase::Monotonic);
        if (experiment.has("prompt")) {
            recording_->setText("prompt", experiment.text("prompt"));
        }
        for (engine::PyFile& file : files) {
            recording_->setText("mods." + file.name, std::move(file.text));
        }
    }
    heard_ = sink != nullptr;
    receiver_ = std::move(sink);
    sinkFailure_ = nullptr;
    outcome_ = {};
    base::StopToken token;
    {
        const std::lock_guard lock(mutex_);
        stop_ = base::StopSource();
        keptInUse_ = true;
        token = stop_.get_token();
    }
    saveWanted_ = false;
    running_ = true;
    try {
        thread_ = std::thread([this, experiment, token] { work(experiment, token); });
    } catch (...) {
        leaveKept();
        running_ = false;
        throw;
    }
}

/// The run has no context any more. Returns the bytes that stay.
std::uint64_t InProcessHost::leaveKept() {
    const std::lock_guard lock(mutex_);
    keptInUse_ = false;
    if (kept_ == nullptr) {
        return 0;
    }
    if (std::exchange(releaseAfter_, false)) {
        kept_->release();
    }
    return kept_->weightBytes();
}

void InProcessHost::tell(const json& message) {
    if (!heard_ || sinkFailure_ != nullptr) {
        return;
    }
    try {
        receiver_(message);
    } catch (...) {
        sinkFailure_ = std::current_exception();
        stop();
    }
}

void InProcessHost::takeToken(const engine::StreamedToken& token, bool serves) {
    const json message = tokenMessage(token);
    if (recording_ != nullptr) {
        recording_->appendTexts(token.request,
                                [&](const PartOrigin& origin) { return keptTexts(token, message, origin); });
    }
    if (heard_ && !serves) {
        sink_(message);
    }
}

json InProcessHost::execute(const engine::Experiment& experiment, const base::StopToken& stop, json& partial) {
    ProgressMessages progress(sink_);
    engine::WorkloadSinks sinks;
    sinks.progress = &progress;
    sinks.kept = kept_.get();
    sinks.trace = recording_ != nullptr ? &recording_->trace() : nullptr;
    sinks.feed = feed_;
    sinks.saveWanted = [this] { return saveWanted_.exchange(false); };
    const bool serves = experiment.workload().servesClients;
    // Planning a long batch would report millions of tokens, so tokens are not reported.
    if ((heard_ && !serves) || recording_ != nullptr) {
        sinks.token = [this, serves](const engine::StreamedToken& token) { takeToken(token, serves); };
    }
    if (recording_ != nullptr) {
        sinks.requestEnded = [this](std::int32_t request) { recording_->closeTexts(request); };
        sinks.partIsFull = [this] { return recording_->partIsFull(); };
        sinks.nextPart = [this](const json& metrics) { recording_->nextPart(metrics); };
    }
    sinks.metric = [this](std::string_view name, double value) {
        if (recording_ != nullptr) {
            recording_->setLiveValue(name, value);
        }
        sink_({{"type", "metric"}, {"name", name}, {"value", value}});
    };
    sinks.fact = [this](std::string_view name, const json& value) {
        if (recording_ != nullptr) {
            recording_->setLiveValue(name, value);
        }
    };
    const base::MonotonicClock clock;
    const auto switchesProfiles = experiment.workload().switchesProfiles;
    if (switchesProfiles != nullptr && switchesProfiles(experiment)) {
        RunProfiles profiles(experiment, clock);
        sinks.profiles = &profiles;
        sinks.clock = &clock;
        return engine::runExperiment(experiment, sinks, stop, &partial);
    }
    const auto gpu = recording_ != nullptr ? profileGpu(experiment, *recording_, clock) : nullptr;
    if (gpu == nullptr) {
        return engine::runExperiment(experiment, sinks, stop, &partial);
    }
    sinks.trace = gpu.get();
    sinks.clock = &clock;
    try {
        json result = engine::runExperiment(experiment, sinks, stop, &partial);
        finishGpuProfile(*gpu, *recording_, result);
        return result;
    } catch (...) {
        finishGpuProfile(*gpu, *recording_, partial);
        throw;
    }
}

void InProcessHost::work(const engine::Experiment& experiment, const base::StopToken& stop) {
    RunOutcome outcome;
    json metrics = json::object();
    sessions::RunId run = recording_ != nullptr ? recording_->run() : 0;
    try {
        sink_({{"type", "started"}, {"run", run}});
        json result = execute(experiment, stop, metrics);
        addClockOfWork(experiment, result);
        if (recording_ != nullptr) {
            addPrediction(experiment, stop, result);
        }
        metrics = std::move(result);
        if (sinkFailure_ != nullptr) {
            std::rethrow_exception(sinkFailure_);
        }
    } catch (...) {
        const std::exception_ptr error = sinkFailure_ != nullptr ? sinkFailure_ : std::current_exception();
        outcome = outcomeOf(error);
        try {
            metrics = metrics.is_object() ? metrics : json::object();
            metrics[engine::result::kError.key] = errorJson(error);
        } catch (const std::exception&) {
            // Out of host memory while saying so: the outcome has the sentence.
            metrics = json();
        }
    }
    outcome.run = run;
    outcome.keptBytes = leaveKept();
    try {
        outcome.metricsJson = metrics.dump(-1, ' ', false, json::error_handler_t::replace);
        if (recording_ != nullptr) {
            const std::string unsaved =
                recording_->finish(sessionStatus(outcome.status), outcome.metricsJson, outcome.error);
            if (!unsaved.empty() && outcome.exitCode == 0) {
                outcome = withFailure(outcome, unsaved);
                metrics[engine::result::kError.key] = {{"kind", base::errorKindName(outcome.errorKind)},
                                                       {"message", unsaved}};
                outcome.metricsJson = base::compactText(metrics);
            }
            outcome.run = run = recording_->run(); // of the last part
            outcome.unsaved = recording_->unsaved();
            if (!outcome.unsaved.empty() && outcome.exitCode == 0) {
                outcome.exitCode = 1;
            }
            if (const std::uint64_t lost = recording_->lostRecords(); lost > 0 && metrics.is_object()) {
                metrics[engine::result::kLostRecords.key] = lost;
                outcome.metricsJson = metrics.dump(-1, ' ', false, json::error_handler_t::replace);
            }
            recording_.reset();
            if (outcome.exitCode == 0) {
                keepOpRates(experiment, sessionFile_, run);
            }
        }
        outcome_ = outcome;
        // The caller may start the next run from inside the message "ended".
        running_ = false;
        if (!outcome.unsaved.empty()) {
            sink_({{"type", "notice"}, {"text", outcome.unsaved}});
        }
        sink_(endedMessage(outcome));
        if (sinkFailure_ != nullptr && outcome_.exitCode == 0) {
            outcome_ = withFailure(outcome, outcomeOf(sinkFailure_).error);
        }
    } catch (...) {
        const bool failedBefore = outcome_.exitCode != 0;
        if (!failedBefore) {
            outcome_ = outcomeOf(std::current_exception());
            outcome_.run = run;
        }
    }
    running_ = false;
}

} // namespace

std::unique_ptr<RunHost> RunHost::inProcess(bool keeps, engine::RequestFeed* feed) {
    return std::make_unique<InProcessHost>(keeps, feed);
}

} // namespace vitrine::app
