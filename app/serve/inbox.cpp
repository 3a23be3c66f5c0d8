// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/inbox.h"

#include <algorithm>
#include <utility>

namespace vitrine::app {

Inbox::State Inbox::state() const {
    const std::lock_guard lock(mutex_);
    return state_;
}

bool Inbox::withModel(const std::function<void(const engine::ServedModel&)>& use) const {
    const std::shared_lock lock(modelMutex_);
    if (model_ == nullptr) {
        return false;
    }
    use(*model_);
    return true;
}

Inbox::Submitted Inbox::submit(std::vector<engine::FedRequest> requests) {
    const std::lock_guard lock(mutex_);
    if (state_ != State::Open) {
        return Submitted::Closed;
    }
    const auto more = static_cast<std::int64_t>(requests.size());
    if (static_cast<std::int64_t>(open_.size()) + more > slots_ + maxQueue_) {
        return Submitted::QueueFull;
    }
    for (engine::FedRequest& request : requests) {
        open_.emplace(request.listener.get(), request.listener);
        work_.arrived.push_back(std::move(request));
    }
    wake_.notify_one();
    return Submitted::Taken;
}

void Inbox::leave(const std::vector<std::shared_ptr<const engine::RequestListener>>& listeners) {
    const std::lock_guard lock(mutex_);
    for (const auto& listener : listeners) {
        if (open_.contains(listener.get())) {
            work_.left.push_back(listener);
        }
    }
    wake_.notify_one();
}

void Inbox::stop() {
    const std::lock_guard lock(mutex_);
    if (state_ == State::Loading || state_ == State::Open) {
        state_ = State::Stopping;
        deadline_ = Clock::now() + drain_;
        wake_.notify_one();
    }
}

void Inbox::ready(const engine::ServedModel& model) {
    {
        const std::unique_lock lock(modelMutex_);
        model_ = &model;
    }
    {
        const std::lock_guard lock(mutex_);
        slots_ = model.slots;
        state_ = state_ == State::Loading ? State::Open : state_;
    }
    if (onReady_) {
        onReady_(model);
    }
}

engine::FedWork Inbox::take(bool wait) {
    std::unique_lock lock(mutex_);
    const auto isSomething = [this] {
        return !work_.arrived.empty() || !work_.left.empty() || (state_ == State::Stopping && open_.empty());
    };
    while (wait && !isSomething()) {
        if (state_ != State::Stopping) {
            wake_.wait(lock);
        } else if (cut_ || wake_.wait_until(lock, deadline_) == std::cv_status::timeout) {
            break;
        }
    }
    engine::FedWork work = std::exchange(work_, {});
    work.over = state_ == State::Stopping;
    if (work.over && !cut_ && Clock::now() >= deadline_) {
        cut_ = true;
        for (const auto& [listener, owner] : open_) {
            if (auto alive = owner.lock()) {
                work.left.push_back(std::move(alive));
            }
        }
    }
    return work;
}

void Inbox::status(const engine::ServeStatus& status) {
    {
        const std::lock_guard lock(mutex_);
        status_ = status;
    }
    if (onStatus_) {
        onStatus_(status);
    }
}

engine::ServeStatus Inbox::lastStatus() const {
    const std::lock_guard lock(mutex_);
    engine::ServeStatus status = status_;
    status.waiting = std::max<std::int64_t>(static_cast<std::int64_t>(open_.size()) - status.running, 0);
    return status;
}

void Inbox::ended(const std::string& error) noexcept {
    {
        const std::unique_lock lock(modelMutex_);
        model_ = nullptr;
    }
    engine::FedWork rest;
    {
        const std::lock_guard lock(mutex_);
        state_ = State::Over;
        rest = std::exchange(work_, {});
    }
    engine::BatchResult lost;
    lost.result.finish = error.empty() ? engine::FinishReason::Cancelled : engine::FinishReason::Failed;
    for (const engine::FedRequest& request : rest.arrived) {
        request.listener->ended(lost);
    }
}

void Inbox::done(const engine::RequestListener* listener) {
    const std::lock_guard lock(mutex_);
    open_.erase(listener);
}

} // namespace vitrine::app
