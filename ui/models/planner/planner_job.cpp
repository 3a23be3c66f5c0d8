// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/planner/planner_job.h"

#include <QMetaObject>
#include <chrono>
#include <exception>
#include <utility>

#include "base/error.h"

namespace vitrine::ui {

PlannerJob::PlannerJob(QObject* parent)
    : QObject(parent),
      thread_([this](const Question& question, const base::StopToken& stop) { answer(question, stop); }) {}

void PlannerJob::ask(const engine::Experiment& experiment, std::int64_t context) {
    const bool wasBusy = busy();
    thread_.ask({experiment, context, ++asked_});
    if (!wasBusy) {
        emit busyChanged();
    }
}

void PlannerJob::cancel() {
    if (!busy()) {
        return;
    }
    thread_.cancel();
    answered_ = asked_;
    emit busyChanged();
}

void PlannerJob::answer(const Question& question, const base::StopToken& stop) {
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
            planner_.answer(question.experiment, question.context, stop, [&](const engine::WhatIf& soFar) {
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
