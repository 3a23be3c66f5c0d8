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
    : QObject(parent), document_(document), runs_(runs), pricing_(this), finding_(this), findingLost_(this),
      devices_(devices) {
    memoryCheck_.setSingleShot(true);
    memoryCheck_.setInterval(kMemorySettlesMs);
    connect(&memoryCheck_, &QTimer::timeout, this, &QueueRunner::checkMemory);
    if (document_ != nullptr) {
        connect(document_, &SessionDocument::opened, this, &QueueRunner::load);
        connect(document_, &SessionDocument::closed, this, &QueueRunner::load);
    }
    if (runs_ != nullptr) {
        connect(runs_, &RunController::started, this, [this](qint64 run) {
            if (driver_.own() != 0) {
                driver_.started(run);
                emit changed();
            }
        });
        connect(runs_, &RunController::metric, this, [this](const QString& name, double value) {
            if (driver_.own() == 0) {
                return;
            }
            if (driver_.metric(name.toStdString(), value)) {
                emit changed();
            }
            emit progress();
        });
        connect(runs_, &RunController::progress, this, [this](const QString& what, quint64 done, quint64 total) {
            if (driver_.progress(what.toStdString(), done, total)) {
                emit progress();
            }
        });
        connect(runs_, &RunController::ended, this,
                [this](const QString& status, const QString& error, const QString& metrics) {
                    using How = engine::QueueEnd::How;
                    const How how = status == QLatin1String("done")        ? How::Done
                                    : status == QLatin1String("cancelled") ? How::Cancelled
                                                                           : How::Failed;
                    onEnded(how, how == How::Failed ? error : QString(), metrics.toStdString());
                });
        connect(runs_, &RunController::refused, this, [this](const QString& error) {
            if (driver_.own() != 0) {
                onEnded(engine::QueueEnd::How::Failed, error, {});
            }
        });
    }
}

void QueueRunner::load() {
    if (driver_.own() != 0 && document_->path() == file_) {
        loadedFrom_ = file_; // the session that this queue's run has made
        driver_.keep();
        return;
    }
    if (driver_.own() != 0) {
        return; // its run goes on; the queue stays that of the run's session
    }
    finding_.cancel();
    findingLost_.cancel();
    driver_.load({});
    loadedFrom_ = document_->path();
    emit changed();
    if (!document_->isOpen()) {
        return;
    }
    loading_ = true;
    document_->readSessionText(kQueueTextName, this, [this](const std::optional<std::string>& text) {
        loading_ = false;
        if (auto read = text ? engine::RunQueue::read(*text) : std::nullopt) {
            driver_.load(std::move(*read));
            // A run that another program goes on with is that program's.
            const QueuedRun* running = queue().running();
            const sessions::RunInfo* info = running != nullptr ? document_->run(running->run) : nullptr;
            if (info == nullptr || info->status != sessions::RunStatus::Running) {
                edited().recover();
            }
        }
        emit changed();
        priceNext();
    });
}

void QueueRunner::keep(const engine::RunQueue& queue) {
    if (document_ == nullptr || !document_->isOpen() || document_->readOnly() || loading_ ||
        document_->path() != loadedFrom_) {
        return;
    }
    document_->edit([text = base::compactText(queue.toJson())](sessions::SessionFile& file) {
        file.putSessionText(kQueueTextName, text);
    });
}

void QueueRunner::settle() {
    driver_.keep();
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
        edited().numberAbove(info.id);
    }
    const std::int64_t number = edited().add(std::move(run));
    settle();
    return number;
}

std::string QueueRunner::addSweep(const engine::SweepPlan& plan) {
    for (const sessions::RunInfo& info : document_->runs()) {
        edited().numberAbove(info.id);
    }
    const std::string name = edited().addSweep(plan);
    settle();
    return name;
}

void QueueRunner::remove(std::int64_t number) {
    if (edited().remove(number)) {
        settle();
    }
}

void QueueRunner::move(std::int64_t number, std::size_t place) {
    if (edited().move(number, place)) {
        settle();
    }
}

void QueueRunner::hold(std::int64_t number, bool on) {
    if (on ? edited().hold(number) : edited().release(number)) {
        settle();
    }
}

void QueueRunner::goOnWith(std::int64_t number, bool resume) {
    const QueuedRun* run = queue().find(number);
    if (run == nullptr || !run->interrupted) {
        return;
    }
    driver_.forgiveLoss(number);
    finding_.start([spec = run->spec] { return engine::QueueDriver::findGoingOn(spec); },
                   [this, number, resume](const engine::GoingOn& where) {
                       const std::string what = driver_.goOn(number, where);
                       if (what.empty()) {
                           return; // it was ended meanwhile
                       }
                       if (resume) {
                           edited().resume();
                       }
                       settle();
                       emit said(tr("#%1 %2").arg(number).arg(QString::fromStdString(what)));
                   });
}

void QueueRunner::bringBack(std::int64_t number) {
    findingLost_.start(
        [spec = queue().find(number)->spec] { return engine::QueueDriver::findGoingOn(spec); },
        [this, number](const engine::GoingOn& where) {
            const std::string what = driver_.goOn(number, where);
            settle();
            if (!what.empty()) {
                emit said(tr("The process of #%1 was lost, so it %2").arg(number).arg(QString::fromStdString(what)));
            }
        });
}

void QueueRunner::useNearest(std::int64_t number) {
    const QueuedRun* run = queue().find(number);
    if (run != nullptr && run->price && !run->price->nearestSpec.empty() &&
        edited().edit(number, std::string(run->price->nearestSpec))) {
        settle();
    }
}

void QueueRunner::end(std::int64_t number) {
    if (number == driver_.own() && number != 0) {
        driver_.endByUser();
    } else if (edited().end(number, QueueState::EndedByUser, {}, base::wallClockMs())) {
        settle();
    }
}

void QueueRunner::endSweep(const std::string& sweep) {
    std::vector<std::int64_t> waiting;
    for (const QueuedRun* run : queue().runsOf(sweep)) {
        if (!hasEnded(run->state) && run->number != driver_.own()) {
            waiting.push_back(run->number);
        }
    }
    for (const std::int64_t number : waiting) {
        edited().remove(number);
    }
    const QueuedRun* run = driver_.current();
    if (run != nullptr && run->sweep == sweep) {
        end(run->number);
    }
    settle();
}

void QueueRunner::pauseAfterRun(bool on) {
    edited().pauseAfterRun(on);
    settle();
}

void QueueRunner::resume() {
    edited().resume();
    settle();
}

void QueueRunner::setGoOnAfterFailure(bool on) {
    edited().setGoOnAfterFailure(on);
    settle();
}

void QueueRunner::setRule(const std::string& sweep, const std::optional<engine::StopRule>& rule) {
    if (edited().setRule(sweep, rule)) {
        settle();
    }
}

void QueueRunner::priceNext() {
    if (runs_ == nullptr || pricing_.busy()) {
        return;
    }
    const auto& all = queue().runs();
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
        edited().setPrice(unpriced->number, price);
        QTimer::singleShot(0, this, &QueueRunner::settle);
        return;
    }
    pricing_.start([spec = unpriced->spec, plan] { return plannedPrice(spec, plan); },
                   [this, number = unpriced->number, spec = unpriced->spec](const engine::QueuePrice& price) {
                       const QueuedRun* run = queue().find(number);
                       if (run != nullptr && run->spec == spec) {
                           edited().setPrice(number, price);
                       }
                       QTimer::singleShot(0, this, &QueueRunner::settle); // the job is over then
                   });
}

void QueueRunner::startNext() {
    if (runs_ == nullptr || runs_->running() || loading_ || memoryCheck_.isActive()) {
        return;
    }
    const auto number = driver_.next();
    const QueuedRun* next = number ? queue().find(*number) : nullptr;
    if (next == nullptr || !next->price) {
        return; // priced before its turn
    }
    if (!before_ && runs_->keptBytes() == 0) {
        before_ = gpuReading();
    }
    file_ = document_ != nullptr && document_->isOpen() && !document_->readOnly() ? document_->path() : file_;
    driver_.start(*number);
}

void QueueRunner::start(const QueuedRun& run) {
    const std::string spec = run.spec; // the queue may change while it starts
    const QString file = file_;
    emit changed();
    runs_->start(spec, file);
    if (runs_->running() && document_ != nullptr && !file.isEmpty() && file != document_->path()) {
        document_->open(file);
    }
}

void QueueRunner::stop() {
    runs_->stop();
}

bool QueueRunner::isRecorded(const std::string& spec) const {
    return document_ != nullptr && std::ranges::any_of(document_->runs(), [&](const sessions::RunInfo& run) {
               return engine::isSameExperiment(run.specJson, spec);
           });
}

void QueueRunner::onEnded(engine::QueueEnd::How how, const QString& error, const std::string& metrics) {
    const std::int64_t number = driver_.own();
    if (number == 0) {
        QTimer::singleShot(0, this, &QueueRunner::startNext); // somebody else's run is over
        return;
    }
    const auto after = driver_.ended({how, 0, error.toStdString(), metrics});
    emit changed();
    if (before_ && how == engine::QueueEnd::How::Failed) {
        memoryCheck_.start();
    }
    if (after == engine::QueueDriver::After::Lost) {
        bringBack(number);
    }
    QTimer::singleShot(0, this, [this] { // the controller is still inside the run that ended
        if (memoryCheck_.isActive()) {
            runs_->releaseMemory();
        }
        settle();
    });
}

void QueueRunner::mark(const QueuedRun& run) {
    if (run.sweep.empty() || document_ == nullptr || !document_->isOpen() || document_->path() != file_) {
        return;
    }
    document_->edit([id = run.run, sweep = run.sweep, name = run.name](sessions::SessionFile& file) {
        file.setSweep(id, sweep);
        file.renameRun(id, name);
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
        edited().pause((own > kLeftAlone
                            ? tr("%1 of the %2 are still held by the runs of this program").arg(bytesText(own), device)
                            : tr("%1 of the %2 are held by other programs").arg(bytesText(all), device))
                           .toStdString());
    }
    settle();
}

} // namespace vitrine::ui
