// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/batching/sweep_runner.h"

#include <QTimer>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"

namespace vitrine::ui {

std::vector<std::int32_t> parseSlotCounts(const QString& text) {
    constexpr int kMostSlots = 4096;
    constexpr std::size_t kMostRuns = 32;
    std::vector<std::int32_t> counts;
    for (const QString& part : text.split(QLatin1Char(','))) {
        bool number = false;
        const int count = part.trimmed().toInt(&number);
        if (!number || count < 1 || count > kMostSlots) {
            return {};
        }
        if (std::ranges::find(counts, count) == counts.end()) {
            counts.push_back(count);
        }
    }
    return counts.size() <= kMostRuns ? counts : std::vector<std::int32_t>();
}

std::vector<std::string> sweepExperiments(const sessions::RunInfo& run, const std::vector<std::int32_t>& slotCounts,
                                          bool isStatic, bool isContinuous) {
    auto experiment = engine::Experiment::read(run.specJson);
    std::vector<std::string> experiments;
    if (!experiment || !experiment->has("trace")) {
        return experiments;
    }
    for (const char* file : {"outputs", "save_trace"}) {
        experiment->unset(file);
    }
    for (const std::int32_t count : slotCounts) {
        for (const auto& [mode, wanted] : {std::pair{"static", isStatic}, {"continuous", isContinuous}}) {
            if (wanted) {
                experiment->set("slots", std::int64_t{count});
                experiment->set("mode", std::string(mode));
                experiments.push_back(experiment->jsonText());
            }
        }
    }
    return experiments;
}

SweepRunner::SweepRunner(RunController* runs, QObject* parent) : QObject(parent), runs_(runs) {
    if (runs_ != nullptr) {
        connect(runs_, &RunController::ended, this,
                [this](const QString& status, const QString& error, const QString&) { onEnded(status, error); });
        connect(runs_, &RunController::refused, this, [this](const QString& error) {
            if (own_) {
                finish(error);
            }
        });
    }
}

void SweepRunner::start(std::vector<std::string> experiments, const QString& sessionFile) {
    if (runs_ == nullptr || running() || experiments.empty()) {
        return;
    }
    waiting_.assign(experiments.begin(), experiments.end());
    file_ = sessionFile;
    done_ = 0;
    total_ = static_cast<int>(waiting_.size());
    emit changed();
    next();
}

void SweepRunner::stop() {
    if (running()) {
        const bool own = own_;
        finish({});
        if (own) {
            runs_->stop();
        }
    }
}

void SweepRunner::next() {
    if (!running() || own_ || runs_->running()) {
        return; // somebody else's run: its end calls again
    }
    if (waiting_.empty()) {
        finish({});
        return;
    }
    const std::string experiment = waiting_.front();
    waiting_.pop_front();
    own_ = true;
    runs_->start(experiment, file_);
}

void SweepRunner::onEnded(const QString& status, const QString& error) {
    if (!running()) {
        return;
    }
    if (own_) {
        own_ = false;
        if (status == QLatin1String("cancelled")) {
            finish({});
            return;
        }
        // A number of slots that does not fit says nothing about the others.
        if (status != QLatin1String("done") && status != QLatin1String("out_of_memory")) {
            finish(error);
            return;
        }
        ++done_;
        emit changed();
    }
    // The controller is still inside the run that ended.
    QTimer::singleShot(0, this, &SweepRunner::next);
}

void SweepRunner::finish(const QString& reason) {
    waiting_.clear();
    own_ = false;
    total_ = 0;
    emit changed();
    if (!reason.isEmpty()) {
        emit failed(reason);
    }
}

} // namespace vitrine::ui
