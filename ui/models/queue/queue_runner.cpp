// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/queue/queue_runner.h"

#include <QTimer>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json_values.h"
#include "base/stop.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/sweep/queue_progress.h"
#include "ui/models/common/format.h"
#include "ui/models/run/planned_price.h"

namespace vitrine::ui {

namespace {

using engine::QueuedRun;
using engine::QueueState;

constexpr const char* kQueueTextName = "queue";
constexpr int kMemorySettlesMs = 2000;            ///< readings are half a second old at most
constexpr std::uint64_t kLeftAlone = 64ULL << 20; ///< bytes that a failed run may leave behind

/// By how much `now` exceeds `before`; 0 where it does not, or one of them is not known.
std::uint64_t growth(const std::optional<std::uint64_t>& before, const std::optional<std::uint64_t>& now) {
    return before && now && *now > *before ? *now - *before : 0;
}

} // namespace

QueueRunner::QueueRunner(SessionDocument* document, RunController* runs, QObject* parent, DeviceFeed* devices)
    : QObject(parent), document_(document), runs_(runs), pricing_(this), finding_(this), devices_(devices) {
    memoryCheck_.setSingleShot(true);
    memoryCheck_.setInterval(kMemorySettlesMs);
    connect(&memoryCheck_, &QTimer::timeout, this, &QueueRunner::checkMemory);
    if (document_ != nullptr) {
        connect(document_, &SessionDocument::opened, this, &QueueRunner::load);
        connect(document_, &SessionDocument::closed, this, &QueueRunner::load);
    }
    if (runs_ != nullptr) {
        connect(runs_, &RunController::started, this, &QueueRunner::onStarted);
        connect(runs_, &RunController::metric, this, &QueueRunner::onMetric);
        connect(runs_, &RunController::progress, this, [this](const QString& what, quint64 done, quint64 total) {
            if (QueuedRun* run = current()) {
                engine::takeProgress(*run, what.toStdString(), done, total);
                emit progress();
            }
        });
        connect(runs_, &RunController::ended, this, &QueueRunner::onEnded);
        connect(runs_, &RunController::refused, this, [this](const QString& error) {
            if (own_ != 0) {
                finish(QueueState::Failed, error);
            }
        });
    }
}

QueuedRun* QueueRunner::current() {
    return own_ != 0 ? queue_.find(own_) : nullptr;
}

void QueueRunner::load() {
    if (own_ != 0 && document_->path() == file_) {
        loadedFrom_ = file_; // the session that this queue's run has made
        keep();
        return;
    }
    if (own_ != 0) {
        return; // its run goes on; the queue stays that of the run's session
    }
    queue_ = {};
    loadedFrom_ = document_->path();
    emit changed();
    if (!document_->isOpen()) {
        return;
    }
    loading_ = true;
    document_->readSessionText(kQueueTextName, this, [this](const std::optional<std::string>& text) {
        loading_ = false;
        if (auto read = text ? engine::RunQueue::read(*text) : std::nullopt) {
            queue_ = std::move(*read);
            // A run that another program goes on with is that program's.
            const QueuedRun* running = queue_.running();
            const sessions::RunInfo* info = running != nullptr ? document_->run(running->run) : nullptr;
            if (info == nullptr || info->status != sessions::RunStatus::Running) {
                queue_.recover();
            }
        }
        emit changed();
        priceNext();
    });
}

void QueueRunner::keep() {
    if (document_ == nullptr || !document_->isOpen() || document_->readOnly() || loading_ ||
        document_->path() != loadedFrom_) {
        return;
    }
    document_->edit([text = base::compactText(queue_.toJson())](sessions::SessionFile& file) {
        file.putSessionText(kQueueTextName, text);
    });
}

void QueueRunner::settle() {
    keep();
    emit changed();
    priceNext();
    startNext();
}

std::int64_t QueueRunner::add(const std::string& experimentJson) {
    QueuedRun run;
    run.spec = experimentJson;
    if (const auto experiment = engine::Experiment::read(experimentJson)) {
        run.name = engine::runName(*experiment);
    }
    for (const sessions::RunInfo& info : document_->runs()) {
        queue_.numberAbove(info.id);
    }
    const std::int64_t number = queue_.add(std::move(run));
    settle();
    return number;
}

std::string QueueRunner::addSweep(const engine::SweepPlan& plan) {
    for (const sessions::RunInfo& info : document_->runs()) {
        queue_.numberAbove(info.id);
    }
    const std::string name = queue_.addSweep(plan);
    settle();
    return name;
}

void QueueRunner::remove(std::int64_t number) {
    if (queue_.remove(number)) {
        settle();
    }
}

void QueueRunner::move(std::int64_t number, std::size_t place) {
    if (queue_.move(number, place)) {
        settle();
    }
}

void QueueRunner::hold(std::int64_t number, bool on) {
    if (on ? queue_.hold(number) : queue_.release(number)) {
        settle();
    }
}

void QueueRunner::goOnWith(std::int64_t number, bool resume) {
    const QueuedRun* run = std::as_const(queue_).find(number);
    if (run == nullptr || !run->interrupted) {
        return;
    }
    finding_.start([spec = run->spec] { return engine::fromLastCheckpoint(spec); },
                   [this, number, resume](const std::optional<std::string>& spec) {
                       engine::goOn(queue_, number, spec);
                       if (resume) {
                           queue_.resume();
                       }
                       settle();
                       emit said(spec ? tr("#%1 goes on from its last checkpoint").arg(number)
                                      : tr("#%1 has written no checkpoint and begins again").arg(number));
                   });
}

void QueueRunner::useNearest(std::int64_t number) {
    const QueuedRun* run = std::as_const(queue_).find(number);
    if (run != nullptr && run->price && !run->price->nearestSpec.empty() &&
        queue_.edit(number, std::string(run->price->nearestSpec))) {
        settle();
    }
}

void QueueRunner::end(std::int64_t number) {
    if (number == own_ && own_ != 0) {
        endedByUser_ = true;
        runs_->stop();
    } else if (queue_.end(number, QueueState::EndedByUser, {}, base::wallClockMs())) {
        settle();
    }
}

void QueueRunner::endSweep(const std::string& sweep) {
    std::vector<std::int64_t> waiting;
    for (const QueuedRun* run : queue_.runsOf(sweep)) {
        if (!hasEnded(run->state) && run->number != own_) {
            waiting.push_back(run->number);
        }
    }
    for (const std::int64_t number : waiting) {
        queue_.remove(number);
    }
    const QueuedRun* run = current();
    if (run != nullptr && run->sweep == sweep) {
        end(run->number);
    }
    settle();
}

void QueueRunner::pauseAfterRun(bool on) {
    queue_.pauseAfterRun(on);
    settle();
}

void QueueRunner::resume() {
    queue_.resume();
    settle();
}

void QueueRunner::setGoOnAfterFailure(bool on) {
    queue_.setGoOnAfterFailure(on);
    settle();
}

void QueueRunner::setRule(const std::string& sweep, const std::optional<engine::StopRule>& rule) {
    if (queue_.setRule(sweep, rule)) {
        settle();
    }
}

void QueueRunner::priceNext() {
    if (runs_ == nullptr || pricing_.busy()) {
        return;
    }
    const auto& all = queue_.runs();
    const auto unpriced = std::ranges::find_if(all, [](const QueuedRun& run) {
        return !hasEnded(run.state) && !run.price && run.state != QueueState::Running;
    });
    if (unpriced == all.end()) {
        return;
    }
    std::string plan;
    try {
        plan = runs_->asPlan(unpriced->spec);
    } catch (const std::exception& error) {
        engine::QueuePrice price;
        price.error = error.what(); // the run itself says it again when its turn comes
        queue_.setPrice(unpriced->number, price);
        QTimer::singleShot(0, this, &QueueRunner::settle);
        return;
    }
    pricing_.start([spec = unpriced->spec, plan] { return plannedPrice(spec, plan); },
                   [this, number = unpriced->number, spec = unpriced->spec](const engine::QueuePrice& price) {
                       const QueuedRun* run = std::as_const(queue_).find(number);
                       if (run != nullptr && run->spec == spec) {
                           queue_.setPrice(number, price);
                       }
                       QTimer::singleShot(0, this, &QueueRunner::settle); // the job is over then
                   });
}

void QueueRunner::startNext() {
    if (runs_ == nullptr || own_ != 0 || runs_->running() || loading_ || memoryCheck_.isActive()) {
        return;
    }
    const auto number = queue_.next();
    const QueuedRun* next = number ? std::as_const(queue_).find(*number) : nullptr;
    if (next == nullptr || !next->price) {
        return; // priced before its turn
    }
    if (!before_ && runs_->keptBytes() == 0) {
        before_ = gpuReading();
    }
    own_ = *number;
    endedByRule_ = endedByUser_ = false;
    queue_.start(own_, base::wallClockMs());
    const QString file =
        document_ != nullptr && document_->isOpen() && !document_->readOnly() ? document_->path() : file_;
    file_ = file;
    const std::string spec = next->spec;
    keep();
    emit changed();
    runs_->start(spec, file);
    if (runs_->running() && document_ != nullptr && !file.isEmpty() && file != document_->path()) {
        document_->open(file);
    }
}

void QueueRunner::onStarted(qint64 run) {
    QueuedRun* now = current();
    if (now == nullptr) {
        return;
    }
    now->run = run;
    keep();
    emit changed();
}

void QueueRunner::onMetric(const QString& name, double value) {
    QueuedRun* run = current();
    if (run == nullptr) {
        return;
    }
    if (engine::takeMetric(*run, name.toStdString(), value)) {
        const auto verdict = queue_.verdict(own_);
        if (verdict && verdict->ends && !endedByRule_) {
            endedByRule_ = true;
            run->reason = tr("%1 above #%2 at step %3")
                              .arg(verdict->above, 0, 'f', 3)
                              .arg(verdict->bestNumber)
                              .arg(countText(verdict->step))
                              .toStdString();
            runs_->stop();
        }
        emit changed();
    }
    emit progress();
}

void QueueRunner::onEnded(const QString& status, const QString& error, const QString& metrics) {
    QueuedRun* run = current();
    if (run == nullptr) {
        QTimer::singleShot(0, this, &QueueRunner::startNext); // somebody else's run is over
        return;
    }
    engine::takeResults(*run, metrics.toStdString());
    if (status == QLatin1String("done")) {
        finish(QueueState::Finished, {});
    } else if (status == QLatin1String("cancelled")) {
        finish(endedByRule_ ? QueueState::EndedByRule : QueueState::EndedByUser,
               endedByRule_ ? QString::fromStdString(run->reason) : QString());
    } else {
        finish(QueueState::Failed, error);
    }
}

void QueueRunner::finish(QueueState state, const QString& reason) {
    const std::int64_t number = std::exchange(own_, 0);
    queue_.end(number, state, reason.toStdString(), base::wallClockMs());
    const QueuedRun* run = std::as_const(queue_).find(number);
    if (run != nullptr && run->run > 0 && !run->sweep.empty() && document_ != nullptr && document_->isOpen() &&
        document_->path() == file_) {
        document_->edit([id = run->run, sweep = run->sweep, name = run->name](sessions::SessionFile& file) {
            file.setSweep(id, sweep);
            file.renameRun(id, name);
        });
    }
    keep();
    emit changed();
    if (state == QueueState::Failed && before_) {
        memoryCheck_.start();
    }
    QTimer::singleShot(0, this, [this] { // the controller is still inside the run that ended
        if (memoryCheck_.isActive()) {
            runs_->releaseMemory();
        }
        settle();
    });
}

std::optional<DeviceReading> QueueRunner::gpuReading() const {
    const int device = devices_ != nullptr ? devices_->chosen() : -1;
    return device >= 0 && devices_->devices()[static_cast<std::size_t>(device)].gpu() ? devices_->reading(device)
                                                                                      : std::nullopt;
}

void QueueRunner::checkMemory() {
    const std::optional<DeviceReading> now = gpuReading();
    const std::uint64_t all = now ? growth(before_->used, now->used) : 0;
    const std::uint64_t own = now ? growth(before_->own, now->own) : 0;
    if (all > kLeftAlone) {
        const QString device = deviceTitle(devices_->devices()[static_cast<std::size_t>(devices_->chosen())]);
        queue_.pause((own > kLeftAlone
                          ? tr("%1 of the %2 are still held by the runs of this program").arg(bytesText(own), device)
                          : tr("%1 of the %2 are held by other programs").arg(bytesText(all), device))
                         .toStdString());
    }
    settle();
}

} // namespace vitrine::ui
