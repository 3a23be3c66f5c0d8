// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// RunController over RunHost: runs on a GPU happen in `vitrine worker`, all others and pricing in this process, on
// threads of the hosts.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "app/runner/host/run_host.h"
#include "ui/models/common/run_controller.h"

namespace vitrine::engine {
class Experiment;
}

namespace vitrine::app {

class HostRunController final : public ui::RunController {
    Q_OBJECT

public:
    explicit HostRunController(QObject* parent = nullptr);
    ~HostRunController() override; ///< stops the run and waits for its end, so that the session is closed well
    HostRunController(const HostRunController&) = delete;
    HostRunController& operator=(const HostRunController&) = delete;

    void start(const std::string& experimentJson, const QString& sessionFile) override;
    void stop() override;
    void saveCheckpoint() override;
    bool running() const override;
    void releaseMemory() override;
    quint64 keptBytes() const override { return keptBytes_; }
    quint64 price(const std::string& experimentJson) override;
    quint64 rehearse(const std::string& experimentJson) override;
    std::string asPlan(const std::string& experimentJson) const override;

private:
    void onMessage(const std::string& line);
    void priceLoop();

    RunHost& hostFor(const engine::Experiment& experiment);

    std::unique_ptr<RunHost> here_, worker_; ///< the worker is started by its first run
    RunHost* host_ = nullptr;                ///< of the last run
    bool running_ = false;
    quint64 keptBytes_ = 0;

    // Pricing and rehearsing: a thread of its own, the newest request of each wins.
    struct Request {
        quint64 ticket = 0;
        std::string experiment;
    };
    void runPrice(RunHost& meta, const Request& request);
    void runRehearsal(RunHost& meta, const Request& request);
    std::mutex mutex_;
    std::condition_variable wake_;
    std::optional<Request> waiting_, waitingRehearsal_;
    quint64 lastTicket_ = 0;
    bool ending_ = false;
    std::thread pricer_;
};

} // namespace vitrine::app
