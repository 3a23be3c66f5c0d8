// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/host/worker_loop.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "app/runner/host/outcome.h"
#include "app/runner/host/run_host.h"
#include "base/error.h"
#include "base/json_values.h"
#include "base/line_pipe.h"
#include "base/log.h"
#include "base/strict_json.h"
#include "engine/workload/experiment/experiment.h"

namespace vitrine::app {

namespace {

using nlohmann::json;
using namespace std::chrono_literals;

std::string lineOf(const json& message) {
    return message.dump(-1, ' ', false, json::error_handler_t::replace);
}

using Clock = std::chrono::steady_clock;

class Worker {
public:
    Worker(int out, bool keeps) : out_(out), host_(RunHost::inProcess(keeps)) {
        if (::pipe2(wake_.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
            throw base::Internal(fmt::format("a pipe of the worker: {}", std::strerror(errno)));
        }
    }
    ~Worker() {
        host_.reset();
        for (const int end : wake_) {
            ::close(end);
        }
    }
    Worker(const Worker&) = delete; // runs hold its address
    Worker& operator=(const Worker&) = delete;

    /// False when the worker has to end.
    bool take(const std::string& line) {
        json request;
        try {
            request = base::parseStrictJson(line, "request");
            if (!request.is_object()) {
                throw base::BadInput("request: is no JSON object");
            }
        } catch (const base::BadInput&) {
            refuse(std::current_exception());
            return !faulted_;
        }
        const std::string type = base::textAt(request, "type");
        if (type == "quit") {
            return false;
        }
        if (type == "stop") {
            host_->stop();
        } else if (type == "save") {
            host_->saveCheckpoint();
        } else if (type == "release") {
            host_->release();
        } else if (type == "run") {
            start(request);
        } else {
            refuse(std::make_exception_ptr(
                base::BadInput("request: type: must be one of run, stop, save, release and quit")));
        }
        return !faulted_;
    }

    /// Gives back what no run has used for `longest`. Returns how long nothing will have to be given back.
    std::chrono::milliseconds tidy(std::chrono::milliseconds longest) {
        if (host_->running()) {
            return longest;
        }
        const auto idle = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - lastEnd_.load());
        if (idle < longest) {
            return longest - idle;
        }
        host_->release();
        lastEnd_ = Clock::now();
        return longest;
    }

    void end() {
        host_->stop();
        host_->wait();
    }
    bool faulted() const { return faulted_; }
    int wake() const { return wake_[0]; } ///< can be read when a run met a device fault

private:
    void start(const json& request) {
        try {
            const auto experiment = request.find("experiment");
            if (experiment == request.end()) {
                throw base::BadInput("request: experiment: is missing; give what an experiment file holds");
            }
            if (request.contains("session") && !request["session"].is_string()) {
                throw base::BadInput("request: session: must be the name of a file");
            }
            host_->start(engine::Experiment::parse(*experiment, "experiment"), base::textAt(request, "session"),
                         [this](const json& message) { send(message); });
        } catch (...) {
            refuse(std::current_exception());
        }
    }

    void refuse(const std::exception_ptr& error) const {
        const RunOutcome outcome = outcomeOf(error);
        base::writeLine(
            out_,
            lineOf({{"type", "refused"}, {"kind", base::errorKindName(outcome.errorKind)}, {"error", outcome.error}}));
    }

    void send(const json& message) {
        lastEnd_ = Clock::now();
        const bool fault = message.value("error_kind", "") == base::errorKindName(base::ErrorKind::DeviceFault);
        faulted_ = faulted_ || fault;
        base::writeLine(out_, lineOf(message));
        // The fault is the process's: it ends without waiting for a request, so that the device has its memory back.
        if (fault && ::write(wake_[1], "", 1) < 0) {
            base::logDebug(fmt::format("waking the worker: {}", std::strerror(errno)));
        }
    }

    int out_;
    std::array<int, 2> wake_{};
    std::atomic<Clock::time_point> lastEnd_ = Clock::now();
    std::atomic<bool> faulted_ = false;
    std::unique_ptr<RunHost> host_; ///< last: its thread uses the members above
};

} // namespace

int serveRuns(int in, int out, std::chrono::seconds keepIdle) {
    Worker worker(out, keepIdle.count() > 0);
    base::LineReader reader(in);
    const std::chrono::milliseconds longest = std::clamp<std::chrono::seconds>(keepIdle, 1s, 24h);
    std::chrono::milliseconds wait = longest;
    for (;;) {
        const base::LineReader::Arrived arrived = reader.wait(wait, worker.wake());
        if (arrived == base::LineReader::Arrived::Wake) {
            break;
        }
        if (arrived == base::LineReader::Arrived::Input) {
            const std::optional<std::string> line = reader.next();
            if (!line || !worker.take(*line)) {
                break;
            }
        }
        wait = worker.tidy(longest);
    }
    worker.end();
    return worker.faulted() ? 1 : 0;
}

} // namespace vitrine::app
