// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/gui/host_run_controller.h"

#include <QCoreApplication>
#include <QFile>
#include <QFileInfo>
#include <QTemporaryDir>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/runner/machine/environment.h"
#include "base/error.h"
#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/run_timeline_builder.h"
#include "sessions/session_file.h"
#include "ui/models/common/format.h"
#include "ui/models/session/saved_tokens.h"

namespace vitrine::app {

namespace {

using Json = nlohmann::json;

engine::Experiment planOf(const std::string& text) {
    const engine::Experiment experiment = engine::Experiment::parse(Json::parse(text), "experiment");
    engine::Experiment plan = experiment.asPlan();
    // What would run on this machine is planned with its memory and its dtype; a rehearsal with its profile.
    plan.set("backend", std::string(chosenBackend(experiment)));
    return plan;
}

std::shared_ptr<const profiler::RunTimeline> timelineOf(const std::string& file, sessions::RunId run) {
    const auto session = sessions::SessionFile::open(file, sessions::OpenMode::ReadOnly);
    profiler::RunTimelineBuilder builder;
    for (const std::string& stream : session->streams(run)) {
        for (const base::ColumnChunk& chunk : session->chunks(run, stream)) {
            builder.add(chunk);
        }
    }
    return builder.snapshot();
}

} // namespace

HostRunController::HostRunController(QObject* parent)
    : RunController(parent), here_(RunHost::inProcess()), host_(here_.get()), pricer_([this] { priceLoop(); }) {}

HostRunController::~HostRunController() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    wake_.notify_all();
    pricer_.join();
    if (host_->running()) {
        host_->stop();
        host_->wait();
    }
}

RunHost& HostRunController::hostFor(const engine::Experiment& experiment) {
    // After a device fault a process is lost, and it should not be this one.
    if (chosenBackend(experiment) != "cuda") {
        return *here_;
    }
    if (worker_ == nullptr) {
        const QString program = QCoreApplication::applicationDirPath() + QStringLiteral("/vitrine");
        if (!QFileInfo(program).isExecutable()) {
            throw base::Unsupported(
                tr("%1: runs on a GPU need this program beside vitrine-gui; install both into one folder")
                    .arg(program)
                    .toStdString());
        }
        worker_ = RunHost::inWorker(QFile::encodeName(program).toStdString());
    }
    return *worker_;
}

void HostRunController::start(const std::string& experimentJson, const QString& sessionFile) {
    try {
        if (running_) {
            throw base::Internal("a run is going on; wait for its end or stop it");
        }
        const engine::Experiment checked = engine::Experiment::parse(Json::parse(experimentJson), "experiment");
        host_ = &hostFor(checked);
        host_->start(checked, sessionFile.toStdString(), [this](const Json& message) {
            // The run's thread hands a line over; a value would have to be copied anyway.
            QMetaObject::invokeMethod(
                this, [this, line = base::compactText(message)] { onMessage(line); }, Qt::QueuedConnection);
        });
        running_ = true;
    } catch (const std::exception& error) {
        emit refused(QString::fromUtf8(error.what()));
    }
}

void HostRunController::stop() {
    if (running_) {
        host_->stop();
    }
}

void HostRunController::saveCheckpoint() {
    if (running_) {
        host_->saveCheckpoint();
    }
}

void HostRunController::releaseMemory() {
    if (worker_ != nullptr) {
        worker_->release();
    }
    keptBytes_ = 0;
}

bool HostRunController::running() const {
    return running_;
}

void HostRunController::onMessage(const std::string& line) {
    const Json message = Json::parse(line, nullptr, false);
    if (!message.is_object()) {
        return;
    }
    const std::string type = base::textAt(message, "type");
    if (type == "progress") {
        emit progress(ui::textOf(base::textAt(message, "what")),
                      static_cast<quint64>(base::numberAt(message, "done").value_or(0)),
                      static_cast<quint64>(base::numberAt(message, "total").value_or(0)));
    } else if (type == "token") {
        emit token(ui::tokenOf(message));
    } else if (type == "metric") {
        emit metric(ui::textOf(base::textAt(message, "name")), base::numberAt(message, "value").value_or(0));
    } else if (type == "started") {
        emit started(static_cast<qint64>(base::numberAt(message, "run").value_or(0)));
    } else if (type == "notice") {
        emit notice(ui::textOf(base::textAt(message, "text")));
    } else if (type == "ended") {
        running_ = false;
        if (host_ == worker_.get()) {
            keptBytes_ = static_cast<quint64>(base::numberAt(message, "kept_bytes").value_or(0));
        }
        const auto metrics = message.find("metrics");
        emit ended(ui::textOf(base::textAt(message, "status")), ui::textOf(base::textAt(message, "error")),
                   metrics != message.end() ? QString::fromStdString(metrics->dump()) : QString());
    }
}

std::string HostRunController::asPlan(const std::string& experimentJson) const {
    return planOf(experimentJson).jsonText();
}

quint64 HostRunController::price(const std::string& experimentJson) {
    const std::lock_guard lock(mutex_);
    waiting_ = Request{++lastTicket_, experimentJson};
    wake_.notify_all();
    return lastTicket_;
}

quint64 HostRunController::rehearse(const std::string& experimentJson) {
    const std::lock_guard lock(mutex_);
    waitingRehearsal_ = Request{++lastTicket_, experimentJson};
    wake_.notify_all();
    return lastTicket_;
}

void HostRunController::priceLoop() {
    const std::unique_ptr<RunHost> meta = RunHost::inProcess();
    while (true) {
        std::optional<Request> price, rehearsal;
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [this] { return ending_ || waiting_.has_value() || waitingRehearsal_.has_value(); });
            if (ending_) {
                return;
            }
            price = std::exchange(waiting_, std::nullopt);
            rehearsal = std::exchange(waitingRehearsal_, std::nullopt);
        }
        if (price) {
            runPrice(*meta, *price);
        }
        if (rehearsal) {
            runRehearsal(*meta, *rehearsal);
        }
    }
}

void HostRunController::runPrice(RunHost& meta, const Request& request) {
    QString metrics, error;
    try {
        meta.start(planOf(request.experiment), {}, {});
        const RunOutcome outcome = meta.wait();
        metrics = QString::fromStdString(outcome.metricsJson);
        error = QString::fromStdString(outcome.error);
    } catch (const std::exception& failure) {
        error = QString::fromUtf8(failure.what());
    }
    QMetaObject::invokeMethod(
        this, [this, ticket = request.ticket, metrics, error] { emit priced(ticket, metrics, error); },
        Qt::QueuedConnection);
}

void HostRunController::runRehearsal(RunHost& meta, const Request& request) {
    std::shared_ptr<const profiler::RunTimeline> timeline;
    QString error;
    try {
        const QTemporaryDir folder;
        if (!folder.isValid()) {
            throw base::BadInput(folder.errorString().toStdString());
        }
        engine::Experiment experiment = planOf(request.experiment);
        experiment.set("profile", "light");
        const std::string file = folder.filePath(QStringLiteral("plan.vitrine")).toStdString();
        meta.start(experiment, file, {});
        const RunOutcome outcome = meta.wait();
        error = QString::fromStdString(outcome.error);
        timeline = timelineOf(file, outcome.run);
    } catch (const std::exception& failure) {
        error = QString::fromUtf8(failure.what());
    }
    QMetaObject::invokeMethod(
        this, [this, ticket = request.ticket, timeline, error] { emit rehearsed(ticket, timeline, error); },
        Qt::QueuedConnection);
}

} // namespace vitrine::app
