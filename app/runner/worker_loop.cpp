// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/worker_loop.h"

#include <atomic>
#include <exception>
#include <nlohmann/json.hpp>

#include "app/runner/line_pipe.h"
#include "app/runner/outcome.h"
#include "app/runner/run_host.h"
#include "base/error.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

std::string lineOf(const json& message) {
    return message.dump(-1, ' ', false, json::error_handler_t::replace);
}

class Worker {
public:
    explicit Worker(int out) : out_(out), host_(RunHost::inProcess()) {}

    /// False when the worker has to end.
    bool take(const std::string& line) {
        const json request = json::parse(line, nullptr, false);
        const std::string type = request.is_object() ? request.value("type", "") : "";
        if (type == "quit") {
            return false;
        }
        if (type == "stop") {
            host_->stop();
        } else if (type == "run") {
            start(request);
        }
        return !faulted_;
    }

    void end() {
        host_->stop();
        host_->wait();
    }
    bool faulted() const { return faulted_; }

private:
    void start(const json& request) {
        try {
            host_->start(request.at("experiment"), request.value("session", ""), [this](const json& message) {
                faulted_ =
                    faulted_ || message.value("error_kind", "") == base::errorKindName(base::ErrorKind::DeviceFault);
                writeLine(out_, lineOf(message));
            });
        } catch (...) {
            const RunOutcome outcome = outcomeOf(std::current_exception());
            writeLine(out_, lineOf({{"type", "refused"},
                                    {"kind", base::errorKindName(outcome.errorKind)},
                                    {"error", outcome.error}}));
        }
    }

    int out_;
    std::unique_ptr<RunHost> host_;
    std::atomic<bool> faulted_ = false;
};

} // namespace

int serveRuns(int in, int out) {
    Worker worker(out);
    LineReader reader(in);
    while (const std::optional<std::string> line = reader.next()) {
        if (!worker.take(*line)) {
            break;
        }
    }
    worker.end();
    return worker.faulted() ? 1 : 0;
}

} // namespace vitrine::app
