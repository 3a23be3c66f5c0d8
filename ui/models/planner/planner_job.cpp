// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/planner/planner_job.h"

#include <QMetaObject>
#include <chrono>
#include <exception>
#include <utility>

#include "base/error.h"

namespace vitrine::ui {

PlannerJob::PlannerJob(QObject* parent) : QObject(parent), thread_([this] { loop(); }) {}

PlannerJob::~PlannerJob() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
        endCurrent();
    }
    wake_.notify_all();
    thread_.join();
}

void PlannerJob::endCurrent() {
    current_.request_stop();
    current_ = base::StopSource();
    waiting_.reset();
}

void PlannerJob::ask(const engine::Experiment& experiment, std::int64_t context) {
    const bool wasBusy = busy();
    {
        const std::lock_guard lock(mutex_);
        endCurrent();
        waiting_ = Question{experiment, context, ++asked_, current_.get_token()};
    }
    wake_.notify_all();
    if (!wasBusy) {
        emit busyChanged();
    }
}

void PlannerJob::cancel() {
    if (!busy()) {
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        endCurrent();
    }
    answered_ = asked_;
    emit busyChanged();
}

void PlannerJob::loop() {
    engine::WhatIfPlanner planner;
    while (true) {
        std::optional<Question> question;
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [this] { return ending_ || waiting_.has_value(); });
            if (ending_) {
                return;
            }
            question = std::exchange(waiting_, std::nullopt);
        }
        answer(planner, *question);
    }
}

void PlannerJob::answer(engine::WhatIfPlanner& planner, const Question& question) {
    const auto begin = std::chrono::steady_clock::now();
    const auto send = [&](WhatIfPtr answer, const QString& error) {
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        QMetaObject::invokeMethod(
            this,
            [this, number = question.number, answer = std::move(answer), seconds, error] {
                deliver(number, answer, seconds, error);
            },
            Qt::QueuedConnection);
    };
    try {
        const engine::WhatIf whole =
            planner.answer(question.experiment, question.context, question.stop, [&](const engine::WhatIf& soFar) {
                send(std::make_shared<const engine::WhatIf>(soFar), {});
            });
        send(std::make_shared<const engine::WhatIf>(whole), {});
    } catch (const base::Cancelled&) { // a newer question, or nobody wants to know any more
    } catch (const std::exception& error) {
        send(nullptr, QString::fromUtf8(error.what()));
    }
}

void PlannerJob::deliver(std::uint64_t number, WhatIfPtr answer, double seconds, const QString& error) {
    if (number != asked_ || !busy()) {
        return;
    }
    const bool done = !answer || answer->complete;
    if (done) {
        answered_ = asked_;
    }
    if (answer) {
        emit found(answer, seconds);
    } else {
        emit failed(error);
    }
    if (done) {
        emit busyChanged();
    }
}

} // namespace vitrine::ui
