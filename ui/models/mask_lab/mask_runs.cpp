// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/mask_lab/mask_runs.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "base/json_values.h"
#include "base/trace.h"
#include "engine/workload/common/run_setup.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/experiment/workload_table.h"
#include "kernels/core/device_traits.h"
#include "profiler/timeline/request_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/mask_lab/mask_catalogue.h"

namespace vitrine::ui {

using sessions::RunInfo;

namespace {

/// Tokens of the prompts in the order in which they arrived, as many as documents can be.
std::vector<std::int64_t> requestLengths(const TimelinePtr& timeline) {
    constexpr std::size_t kMost = 4096;
    std::vector<std::int64_t> lengths;
    for (const base::RequestEvent& event :
         timeline != nullptr ? timeline->requests().events() : std::span<const base::RequestEvent>()) {
        if (event.phase == base::RequestChange::Arrived && event.tokens > 0 && lengths.size() < kMost) {
            lengths.push_back(event.tokens);
        }
    }
    return lengths;
}

bool isAttention(const RunInfo& run) {
    const engine::Workload* workload = engine::workloadOfRun(run.workload);
    return workload != nullptr && engine::showsIn(*workload, "mask");
}

} // namespace

MaskRuns::MaskRuns(MaskLab* lab, SessionDocument* document, RunController* runs, const DeviceFeed* devices,
                   QObject* parent)
    : QObject(parent), lab_(lab), document_(document), runs_(runs), devices_(devices) {
    for (const auto signal : {&SessionDocument::selectionChanged, &SessionDocument::opened, &SessionDocument::closed,
                              &SessionDocument::runsChanged}) {
        connect(document_, signal, this, &MaskRuns::onRuns);
    }
    connect(document_, &SessionDocument::timelineChanged, this, [this](qint64 run) {
        if (!lengthsFor_.isEmpty() && run == document_->runA()) {
            takeLengths(lengthsSide_, QString(lengthsFor_));
        }
    });
    if (runs_ != nullptr) {
        connectController();
    }
    if (devices_ != nullptr) {
        connect(devices_, &DeviceFeed::devicesChanged, this, &MaskRuns::planForDevice);
        connect(devices_, &DeviceFeed::choiceChanged, this, &MaskRuns::planForDevice);
    }
    planForDevice();
}

/// The chosen GPU, else the first one that has a profile.
void MaskRuns::planForDevice() {
    std::string profile;
    const std::vector<DeviceEntry> devices = devices_ != nullptr ? devices_->devices() : std::vector<DeviceEntry>();
    const int chosen = devices_ != nullptr ? devices_->chosen() : -1;
    for (int i = 0; i < static_cast<int>(devices.size()); ++i) {
        const DeviceEntry& device = devices[static_cast<std::size_t>(i)];
        const std::string found = device.gpu() ? kernels::profileOfDevice(device.name.toStdString()) : std::string();
        profile = !found.empty() && (profile.empty() || i == chosen) ? found : profile;
    }
    lab_->setPlannedDevice(profile.empty() ? kPlannedDevice : profile);
}

void MaskRuns::connectController() {
    connect(runs_, &RunController::started, this, [this](qint64 run) {
        if (measuring()) {
            measurement_.run = run;
            if (run != 0) {
                loaded_[static_cast<std::size_t>(measurement_.side)] = run;
                awaited_[static_cast<std::size_t>(measurement_.side)] = run;
                document_->edit([run, title = measurement_.title.toStdString()](sessions::SessionFile& file) {
                    file.renameRun(run, title);
                });
            }
        }
        emit measuringChanged();
    });
    connect(runs_, &RunController::refused, this, [this] {
        measurement_.mine = false;
        emit measuringSaid({});
        emit measuringChanged();
    });
    connect(runs_, &RunController::progress, this, [this](const QString& what, quint64 done, quint64 total) {
        if (measuring()) {
            emit measuringSaid(total > 0 ? tr("Measuring: %1, %2 of %3").arg(what).arg(done).arg(total)
                                         : tr("Measuring: %1").arg(what));
        }
    });
    connect(runs_, &RunController::ended, this, &MaskRuns::onEnded);
}

void MaskRuns::onEnded(const QString& status, const QString& error, const QString& metrics) {
    if (measuring()) {
        measurement_.mine = false;
        emit measuringSaid({});
        if (const auto times = maskTimes(metrics.toStdString())) {
            lab_->setTimes(measurement_.side, times, measurement_.run, measurement_.source, measurement_.sizes);
        }
        if (status != QLatin1String("done") && status != QLatin1String("cancelled")) {
            emit failed(error);
        }
    }
    emit measuringChanged();
}

void MaskRuns::takeExperiment(int side, const QString& experimentJson) {
    if (const auto experiment = engine::Experiment::read(experimentJson.toStdString())) {
        lab_->setSizes(sizesOfExperiment(*experiment, lab_->sizes()));
        lab_->setSource(side, withCatalogueText(sourceOfExperiment(*experiment, {})));
    }
}

void MaskRuns::onRuns() {
    // A run of this view becomes the run of its side as soon as the session shows it.
    for (std::size_t i = 0; i < awaited_.size(); ++i) {
        if (awaited_[i] != 0 && document_->run(awaited_[i]) != nullptr) {
            const sessions::RunId run = std::exchange(awaited_[i], 0);
            i == 0 ? document_->setRunA(run) : document_->setRunB(run);
        }
    }
    const sessions::RunId now[] = {document_->runA(), document_->runB()};
    if (now[0] != 0 && now[1] != 0 && loaded_[0] == now[1] && loaded_[1] == now[0]) {
        std::swap(loaded_[0], loaded_[1]);
        lab_->swapSides();
        emit sidesSwapped();
        return;
    }
    for (int i = 0; i < MaskLab::kSides; ++i) {
        const RunInfo* run = document_->run(now[i]);
        auto& loaded = loaded_[static_cast<std::size_t>(i)];
        if (run == nullptr || !isAttention(*run)) {
            continue;
        }
        if (run->id != loaded) {
            loaded = run->id;
            loadRun(i, *run);
        } else if (timesPending_[static_cast<std::size_t>(i)] && run->status != sessions::RunStatus::Running) {
            timesPending_[static_cast<std::size_t>(i)] = false;
            lab_->setTimes(i, maskTimes(run->metricsJson), run->id, lab_->side(i).source, lab_->sizes());
        }
    }
    nameModel();
}

void MaskRuns::nameModel() {
    const RunInfo* run = document_->run(document_->runA());
    const auto experiment = run != nullptr ? engine::Experiment::read(run->specJson) : std::nullopt;
    if (experiment && !experiment->text("model").empty()) {
        const std::vector<std::int64_t> lengths = lengthsOfRun(run->id);
        emit modelNamed(experiment->text("model"), experiment->pairs("set"),
                        lengths.empty() ? 0 : *std::ranges::max_element(lengths));
    }
}

void MaskRuns::loadRun(int side, const RunInfo& run) {
    const auto experiment = engine::Experiment::read(run.specJson);
    if (!experiment || experiment->texts("mods").empty()) {
        takeRun(side, run, {});
        return;
    }
    // Texts of files stand in the session as they were when the run began.
    document_->readTexts(run.id, this, [this, side, run](const std::vector<sessions::RunText>& texts) {
        std::vector<std::string> mods;
        for (const sessions::RunText& text : texts) {
            if (text.kind.starts_with("mods.")) {
                mods.push_back(text.body);
            }
        }
        if (loaded_[static_cast<std::size_t>(side)] == run.id) {
            takeRun(side, run, mods);
        }
    });
}

void MaskRuns::takeRun(int side, const RunInfo& run, const std::vector<std::string>& modTexts) {
    const auto experiment = engine::Experiment::read(run.specJson);
    if (!experiment) {
        return;
    }
    MaskSource source = withCatalogueText(sourceOfExperiment(*experiment, modTexts));
    source.name = run.name;
    const auto times = maskTimes(run.metricsJson);
    MaskSizes sizes = sizesOfExperiment(*experiment, lab_->sizes());
    if (!experiment->has("random") && times) {
        const std::int64_t block = sizes.block;
        sizes = times->sizes; // tensors of a file
        sizes.block = block;
    }
    lab_->setSizes(sizes);
    lab_->setSource(side, source);
    lab_->setTimes(side, times, run.id, source, lab_->sizes());
    timesPending_[static_cast<std::size_t>(side)] = run.status == sessions::RunStatus::Running;
}

std::pair<QString, int> MaskRuns::device() const {
    const int chosen = devices_ != nullptr ? devices_->chosen() : -1;
    if (chosen < 0) {
        return {QStringLiteral("cpu"), 0};
    }
    const DeviceEntry device = devices_->devices()[static_cast<std::size_t>(chosen)];
    return {device.backend, device.ordinal};
}

QString MaskRuns::whyNotMeasure(int side) const {
    if (runs_ == nullptr) {
        return tr("Nothing can be started here");
    }
    if (runs_->running()) {
        return tr("A run is in progress");
    }
    const MaskStudyPtr& study = lab_->side(side).study;
    return !study || study->problem ? tr("The program has an error") : QString();
}

void MaskRuns::stop() {
    if (measuring()) {
        runs_->stop();
    }
}

void MaskRuns::measure(int index) {
    if (!whyNotMeasure(index).isEmpty()) {
        return;
    }
    lab_->flush();
    const MaskLab::Side& side = lab_->side(index);
    const auto [backend, number] = device();
    measurement_ = {index, side.source, lab_->sizes(), side.study->title(), 0, true};
    emit failed({});
    emit measuringSaid(tr("Measuring"));
    runs_->start(base::compactText(measureExperiment(side.source, side.study->maskName, side.study->scoreName,
                                                     lab_->sizes(), backend, number)),
                 document_->isOpen() ? document_->path() : QString());
    emit measuringChanged();
}

std::vector<std::int64_t> MaskRuns::lengthsOfRun(sessions::RunId id) const {
    const RunInfo* run = document_->run(id);
    std::vector<std::int64_t> lengths;
    if (run == nullptr) {
        return lengths;
    }
    const auto experiment = engine::Experiment::read(run->specJson);
    if (!experiment) {
        return lengths;
    }
    for (const std::string& line : experiment->texts("capture")) {
        if (const auto found = captureLengths(line); !found.empty()) {
            return found;
        }
    }
    const nlohmann::json metrics = base::parsedObject(run->metricsJson);
    const nlohmann::json* prompts = engine::valueOf(metrics, engine::result::kPromptTokens);
    if (prompts == nullptr) {
        return lengths;
    }
    if (prompts->is_array()) {
        for (const nlohmann::json& length : *prompts) {
            if (length.is_number_integer() && length.get<std::int64_t>() > 0) {
                lengths.push_back(length.get<std::int64_t>());
            }
        }
    } else if (prompts->is_number_integer() && prompts->get<std::int64_t>() > 0) {
        const auto batch = static_cast<std::size_t>(experiment->maybeInteger("batch").value_or(1));
        lengths.assign(std::clamp<std::size_t>(batch, 1, 4096), prompts->get<std::int64_t>());
    }
    return lengths;
}

void MaskRuns::takeLengths(int side, const QString& capture) {
    lengthsFor_.clear();
    std::vector<std::int64_t> lengths = lengthsOfRun(document_->runA());
    if (lengths.empty() && document_->runA() != 0) {
        // Of a run that served requests the events say it; they may have to be read first.
        const TimelineState& state = document_->timeline(document_->runA());
        lengths = requestLengths(state.timeline);
        if (lengths.empty() && !state.complete && state.error.isEmpty()) {
            lengthsFor_ = capture;
            lengthsSide_ = side;
            emit waiting(tr("Reading the requests of run A"));
            return;
        }
    }
    if (lengths.empty()) {
        emit failed(
            tr("Run A gives no lengths of sequences. Choose a run that served requests or generated from several "
               "prompts, or one of attention with documents."));
        return;
    }
    emit failed({});
    lab_->setCapture(side, capture.toStdString(), engine::documentsText(capture.toStdString(), lengths));
}

} // namespace vitrine::ui
