// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The owner's side of a worker process.

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <mutex>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "app/runner/host/outcome.h"
#include "app/runner/host/run_host.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/json_values.h"
#include "base/line_pipe.h"
#include "base/log.h"
#include "base/strict_json.h"
#include "engine/workload/experiment/experiment.h"

extern char** environ; // NOLINT(readability-redundant-declaration): POSIX asks programs to declare it

namespace vitrine::app {

namespace {

using nlohmann::json;

base::ErrorKind kindNamed(std::string_view name) {
    using base::ErrorKind;
    for (const ErrorKind kind : {ErrorKind::BadInput, ErrorKind::Unsupported, ErrorKind::OutOfMemory,
                                 ErrorKind::Cancelled, ErrorKind::DeviceFault}) {
        if (base::errorKindName(kind) == name) {
            return kind;
        }
    }
    return ErrorKind::Internal;
}

RunOutcome outcomeFrom(const json& ended) {
    RunOutcome outcome;
    outcome.status = RunOutcome::Status::Failed;
    const std::string status = base::textAt(ended, "status");
    for (const auto candidate : {RunOutcome::Status::Done, RunOutcome::Status::Failed, RunOutcome::Status::OutOfMemory,
                                 RunOutcome::Status::Cancelled}) {
        if (outcomeStatusName(candidate) == status) {
            outcome.status = candidate;
        }
    }
    outcome.run = base::integerAt(ended, "run").value_or(0);
    outcome.exitCode = static_cast<int>(base::integerAt(ended, "exit_code").value_or(1));
    outcome.errorKind = kindNamed(base::textAt(ended, "error_kind"));
    outcome.error = base::textAt(ended, "error");
    outcome.unsaved = base::textAt(ended, "unsaved");
    outcome.metricsJson = ended.contains("metrics") ? base::compactText(ended["metrics"]) : "{}";
    outcome.keptBytes = base::bytesAt(ended, "kept_bytes").value_or(0);
    return outcome;
}

std::string howItEnded(int status) {
    if (WIFSIGNALED(status)) {
        const int number = WTERMSIG(status);
        return number == SIGKILL ? "was killed, as the system does when memory runs out"
                                 : fmt::format("crashed ({})", ::strsignal(number));
    }
    return fmt::format("ended with code {}", WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/// How a worker ended.
struct WorkerEnd {
    int status = 0;       ///< as waitpid() gives it
    bool tooLong = false; ///< it was killed for a line that is no message
};

/// One worker process: its pipes and the thread that reads what it says.
class WorkerProcess {
public:
    WorkerProcess(const std::string& program, std::chrono::seconds keepIdle, std::function<void(const json&)> onMessage,
                  std::function<void(const WorkerEnd&)> onEnd) {
        base::Pipe requests, answers;
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, requests.read.get(), STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&actions, answers.write.get(), STDOUT_FILENO);
        posix_spawnattr_t attributes;
        posix_spawnattr_init(&attributes);
        // A group of its own: Ctrl-C in the owner's terminal is the owner's affair.
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        std::array<std::string, 4> words{program, "worker", "--keep", std::to_string(keepIdle.count())};
        std::array<char*, 5> arguments{words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
        const int error = ::posix_spawn(&pid_, program.c_str(), &actions, &attributes, arguments.data(), environ);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
        if (error != 0) {
            throw base::Internal(fmt::format("{}: the worker could not be started: {}", program, std::strerror(error)));
        }
        in_ = std::move(requests.write);
        out_ = std::move(answers.read);
        reader_ = std::thread([this, onMessage = std::move(onMessage), onEnd = std::move(onEnd)] {
            base::LineReader lines(out_.get());
            while (const std::optional<std::string> line = lines.next()) {
                try {
                    const json message = base::parseStrictJson(*line, "message");
                    if (!message.is_object()) {
                        throw base::BadInput("message: is no JSON object");
                    }
                    onMessage(message);
                } catch (const std::exception& left) {
                    // Another program may stand in the worker's place: a line of it ends nothing.
                    base::logWarning(fmt::format("a line of the worker is left out: {}", left.what()));
                }
            }
            if (lines.wasTooLong()) {
                // Nobody reads any more: it would wait for ever to write the rest. It has its number until it is waited
                // for.
                ::kill(pid_, SIGKILL);
            }
            onEnd({waitForEnd(), lines.wasTooLong()});
        });
    }
    ~WorkerProcess() {
        // The end of its input makes it stop its run, save it and end. One that does not, as may be in a driver that
        // has lost its device, is killed.
        in_.reset();
        std::unique_lock lock(mutex_);
        if (!end_.wait_for(lock, kLongestEnd, [this] { return ended_.load(); })) {
            ::kill(pid_, SIGKILL);
        }
        lock.unlock();
        reader_.join();
    }
    WorkerProcess(const WorkerProcess&) = delete; // a thread holds its address
    WorkerProcess& operator=(const WorkerProcess&) = delete;

    bool ended() const { return ended_; }
    bool send(const json& message) const {
        return base::writeLine(in_.get(), message.dump(-1, ' ', false, json::error_handler_t::replace));
    }

private:
    static constexpr std::chrono::seconds kLongestEnd{20};

    int waitForEnd() {
        siginfo_t info{};
        while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
        }
        // Until here the process keeps its number, so no other process can be killed in its place.
        const std::lock_guard lock(mutex_);
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        ended_ = true;
        end_.notify_all();
        return status;
    }

    pid_t pid_ = -1;
    base::Descriptor in_, out_;
    std::mutex mutex_; ///< of the process's end
    std::condition_variable end_;
    std::atomic<bool> ended_ = false;
    std::thread reader_;
};

class WorkerHost final : public RunHost {
public:
    WorkerHost(std::string program, std::chrono::seconds keepIdle)
        : program_(std::move(program)), keepIdle_(keepIdle) {}
    ~WorkerHost() override {
        std::unique_lock lock(mutex_);
        closing_ = true;
        const std::unique_ptr<WorkerProcess> last = std::move(worker_), before = std::move(retired_);
        lock.unlock();
    }
    WorkerHost(const WorkerHost&) = delete; // the reading thread holds its address
    WorkerHost& operator=(const WorkerHost&) = delete;

    void start(const engine::Experiment& experiment, const std::string& sessionFile, RunMessageSink sink) override;
    void stop() override { sendToWorker({{"type", "stop"}}); }
    void saveCheckpoint() override { sendToWorker({{"type", "save"}}); }
    void release() override { sendToWorker({{"type", "release"}}); }
    bool running() const override { return running_; }
    RunOutcome wait() override {
        std::unique_lock lock(mutex_);
        idle_.wait(lock, [this] { return !running_ && reportingEnds_ == 0; });
        return outcome_;
    }

private:
    std::unique_ptr<WorkerProcess> spawn() {
        return std::make_unique<WorkerProcess>(
            program_, keepIdle_, [this](const json& message) { onMessage(message); },
            [this](const WorkerEnd& end) { onEnd(end); });
    }

    void sendToWorker(const json& message) {
        const std::lock_guard lock(mutex_);
        if (worker_ != nullptr) {
            worker_->send(message);
        }
    }

    void onMessage(const json& message);
    void onEnd(const WorkerEnd& end);
    RunOutcome failed(base::ErrorKind kind, std::string error) const;
    void finish(const RunOutcome& outcome) { finish(outcome, endedMessage(outcome)); }
    void finish(const RunOutcome& outcome, const json& message);
    /// Says that a worker was lost; empty when none was. With the lock held.
    json takeNotice();

    std::string program_;
    std::chrono::seconds keepIdle_;
    std::mutex mutex_; ///< of all below that is not atomic
    std::condition_variable idle_;
    std::atomic<bool> running_ = false;
    int reportingEnds_ = 0; ///< ends that are being reported to the sink
    std::atomic<std::int64_t> run_ = 0;
    RunMessageSink sink_;
    RunOutcome outcome_;
    json request_;          ///< the run that is going on
    bool answered_ = false; ///< the worker has said something of it
    bool fresh_ = false;    ///< the worker was started for it
    bool closing_ = false;
    std::string lost_; ///< what became of the last worker, until the sink has got the notice
    std::unique_ptr<WorkerProcess> worker_, retired_; ///< last: their threads use the members above
};

void WorkerHost::start(const engine::Experiment& experiment, const std::string& sessionFile, RunMessageSink sink) {
    if (running_) {
        throw base::Internal("a run is going on; wait for its end or stop it");
    }
    std::unique_lock lock(mutex_);
    // CUDA asks for a new process after a fault.
    const bool faulted = outcome_.exitCode != 0 && outcome_.errorKind == base::ErrorKind::DeviceFault;
    while (retired_ != nullptr || (worker_ != nullptr && (worker_->ended() || faulted))) {
        std::unique_ptr<WorkerProcess> gone;
        gone.swap(retired_ != nullptr ? retired_ : worker_);
        lock.unlock(); // its thread may be waiting for it
        gone.reset();
        lock.lock();
    }
    fresh_ = worker_ == nullptr;
    if (fresh_) {
        worker_ = spawn();
    }
    sink_ = sink ? std::move(sink) : [](const json&) {};
    outcome_ = {};
    run_ = 0;
    answered_ = false;
    request_ = {{"type", "run"}, {"experiment", experiment.toJson()}, {"session", sessionFile}};
    const json notice = fresh_ ? takeNotice() : json();
    const RunMessageSink noticeSink = sink_;
    running_ = true;
    // The reader reports a worker that is gone already, which ends the run or gives it to another.
    worker_->send(request_);
    lock.unlock();
    if (!notice.is_null()) {
        noticeSink(notice);
    }
}

json WorkerHost::takeNotice() {
    if (lost_.empty()) {
        return {};
    }
    return {{"type", "notice"},
            {"text", fmt::format("A new worker process was started, because the last one {}: the model is loaded again",
                                 std::exchange(lost_, ""))}};
}

void WorkerHost::onMessage(const json& message) {
    const std::string type = base::textAt(message, "type");
    RunMessageSink sink;
    {
        const std::lock_guard lock(mutex_);
        answered_ = true;
        sink = sink_;
    }
    if (type == "ended") {
        finish(outcomeFrom(message), message);
        return;
    }
    if (type == "refused") {
        finish(failed(kindNamed(base::textAt(message, "kind")), base::textAt(message, "error")));
        return;
    }
    if (type == "started") {
        run_ = base::integerAt(message, "run").value_or(0);
    }
    sink(message);
}

void WorkerHost::onEnd(const WorkerEnd& end) {
    std::unique_lock lock(mutex_);
    const bool faulted = outcome_.exitCode != 0 && outcome_.errorKind == base::ErrorKind::DeviceFault;
    lost_ = faulted       ? "had a device fault"
            : end.tooLong ? "sent a line of more than 64 MiB, which is no message, and was ended"
                          : howItEnded(end.status);
    if (!running_ || closing_) {
        return;
    }
    if (!fresh_ && !answered_ && !end.tooLong) {
        // It was gone before it heard of this run, which another worker can take as it is.
        fresh_ = true;
        retired_ = std::move(worker_);
        try {
            worker_ = spawn();
            worker_->send(request_);
            const RunMessageSink sink = sink_;
            const json notice = takeNotice();
            lock.unlock();
            sink(notice);
            return;
        } catch (const base::Error& error) {
            lost_ += fmt::format(", and {}", error.message());
        }
    }
    const std::string how = lost_;
    lock.unlock();
    // The next worker would send such a line again: that is a mistake of this program and no loss.
    finish(failed(end.tooLong ? base::ErrorKind::Internal : base::ErrorKind::DeviceFault,
                  fmt::format("the worker process {}; what it recorded is in the session, and the next run "
                              "starts a new worker",
                              how)));
}

RunOutcome WorkerHost::failed(base::ErrorKind kind, std::string error) const {
    RunOutcome outcome;
    outcome.status = RunOutcome::Status::Failed;
    outcome.errorKind = kind;
    outcome.exitCode = base::exitCode(kind);
    outcome.error = std::move(error);
    outcome.run = run_;
    outcome.metricsJson = json{{"error", {{"kind", base::errorKindName(kind)}, {"message", outcome.error}}}}.dump();
    return outcome;
}

void WorkerHost::finish(const RunOutcome& outcome, const json& message) {
    RunMessageSink sink;
    {
        const std::lock_guard lock(mutex_);
        outcome_ = outcome;
        sink = sink_;
        // The order matters. The receiver of the "ended" message may start the next run at once, so running_ is cleared
        // before the message is sent. wait() must return only after the message was delivered, so reportingEnds_ counts
        // deliveries.
        running_ = false;
        ++reportingEnds_;
    }
    sink(message);
    {
        const std::lock_guard lock(mutex_);
        --reportingEnds_;
    }
    idle_.notify_all();
}

} // namespace

std::unique_ptr<RunHost> RunHost::inWorker(const std::string& program, std::chrono::seconds keepIdle) {
    return std::make_unique<WorkerHost>(program, keepIdle);
}

} // namespace vitrine::app
