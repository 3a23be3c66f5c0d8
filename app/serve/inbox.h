// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Where HTTP threads leave requests and the run's thread picks them up.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/serve/request_server.h"
#include "app/serve/serve_metrics.h"

namespace vitrine::app {

class Inbox final : public engine::RequestFeed {
public:
    Inbox(std::int64_t maxQueue, std::chrono::seconds drain) : maxQueue_(maxQueue), drain_(drain) {}

    // --- any thread

    enum class State : std::uint8_t { Loading, Open, Stopping, Over };
    State state() const;
    /// Calls `use` with the model while it cannot go away. False, and nothing is called, when it is not there.
    bool withModel(const std::function<void(const engine::ServedModel&)>& use) const;
    enum class Submitted : std::uint8_t { Taken, QueueFull, Closed };
    /// Takes all requests or none. ended() of every listener that was taken is called once.
    Submitted submit(std::vector<engine::FedRequest> requests);
    /// The clients of these listeners are gone: their requests are cancelled.
    void leave(const std::vector<std::shared_ptr<const engine::RequestListener>>& listeners);
    /// Takes no new requests. Requests under way may run for the time `drain`.
    void stop();
    ServeMetrics& metrics() { return metrics_; }
    const ServeMetrics& metrics() const { return metrics_; }
    std::int64_t maxQueue() const { return maxQueue_; }
    /// The status that the run reported last. Requests that the run has not taken yet count as waiting.
    engine::ServeStatus lastStatus() const;

    // --- before the run

    void onReady(std::function<void(const engine::ServedModel&)> call) { onReady_ = std::move(call); }
    void onStatus(std::function<void(const engine::ServeStatus&)> call) { onStatus_ = std::move(call); }

    // --- the run's thread

    void ready(const engine::ServedModel& model) override;
    engine::FedWork take(bool wait) override;
    void status(const engine::ServeStatus& status) override;
    void ended(const std::string& error) noexcept override;
    /// The request of this listener has ended.
    void done(const engine::RequestListener* listener);

private:
    using Clock = std::chrono::steady_clock;

    const std::int64_t maxQueue_;
    const std::chrono::seconds drain_;
    ServeMetrics metrics_;
    std::function<void(const engine::ServedModel&)> onReady_;
    std::function<void(const engine::ServeStatus&)> onStatus_;

    mutable std::shared_mutex modelMutex_; ///< held while a thread uses the model
    const engine::ServedModel* model_ = nullptr;

    mutable std::mutex mutex_; ///< guards what follows
    std::condition_variable wake_;
    State state_ = State::Loading;
    std::int64_t slots_ = 0;
    engine::ServeStatus status_;
    Clock::time_point deadline_; ///< when a stop ends what is still under way
    bool cut_ = false;           ///< the deadline has passed, and all requests were cancelled
    engine::FedWork work_;
    std::unordered_map<const engine::RequestListener*, std::weak_ptr<engine::RequestListener>> open_;
};

} // namespace vitrine::app
