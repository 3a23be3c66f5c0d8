// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Work that is too long for the GUI thread and worth doing only for the newest question: while one job runs, the next
// one waits, and a newer one replaces it. Results arrive on the thread of `owner` unless it has gone.

#include <QCoreApplication>
#include <QObject>
#include <QPointer>
#include <QThreadPool>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace vitrine::ui {

template <typename Result> class LatestJob {
public:
    explicit LatestJob(QObject* owner) : state_(std::make_shared<State>()) { state_->owner = owner; }
    ~LatestJob() { state_->dropped = true; }
    LatestJob(const LatestJob&) = delete; // jobs hold its state
    LatestJob& operator=(const LatestJob&) = delete;

    /// `work` runs on a pool thread and must hold everything it needs by value; `done` runs on the GUI thread.
    /// Work that throws ends without a result.
    void start(std::function<Result()> work, std::function<void(Result)> done) {
        state_->waiting = Task{std::move(work), std::move(done)};
        next(state_);
    }
    void cancel() { state_->waiting.reset(), ++state_->epoch; }
    bool busy() const { return state_->running || state_->waiting.has_value(); }

private:
    struct Task {
        std::function<Result()> work;
        std::function<void(Result)> done;
    };
    struct State { // GUI thread only
        QPointer<QObject> owner;
        std::optional<Task> waiting;
        bool running = false;
        bool dropped = false;
        unsigned epoch = 0;
    };

    static void next(const std::shared_ptr<State>& state) {
        if (state->running || !state->waiting || state->dropped || !state->owner) {
            return;
        }
        Task task = std::move(*state->waiting);
        state->waiting.reset();
        state->running = true;
        QThreadPool::globalInstance()->start(
            [state, epoch = state->epoch, work = std::move(task.work), done = std::move(task.done)]() mutable {
                std::shared_ptr<Result> result;
                try {
                    result = std::make_shared<Result>(work());
                } catch (const std::exception&) {
                    result.reset(); // the view keeps what it shows
                }
                deliver(state, epoch, std::move(result), std::move(done));
            });
    }

    static void deliver(const std::shared_ptr<State>& state, unsigned epoch, std::shared_ptr<Result> result,
                        std::function<void(Result)> done) {
        // The owner may go at any time: the application object takes the call, which then looks for the owner.
        QMetaObject::invokeMethod(
            QCoreApplication::instance(),
            [state, epoch, result = std::move(result), done = std::move(done)]() mutable {
                state->running = false;
                if (state->dropped || !state->owner) {
                    return;
                }
                if (result && epoch == state->epoch) {
                    done(std::move(*result));
                }
                next(state);
            },
            Qt::QueuedConnection);
    }

    std::shared_ptr<State> state_;
};

} // namespace vitrine::ui
