// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What the Mask Lab does when it is told to: commands, runs of the session, files.
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QGuiApplication>
#include <QMimeData>
#include <QPushButton>
#include <QRegularExpression>
#include <QTableView>
#include <QTextDocument>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/attention/block_mask_file.h"
#include "engine/workload/workload_table.h"
#include "ui/models/common/format.h"
#include "ui/models/common/json_values.h"
#include "ui/views/mask_lab/capture_panel.h"
#include "ui/views/mask_lab/heads_panel.h"
#include "ui/views/mask_lab/mask_inspector.h"
#include "ui/views/mask_lab/mask_lab_view.h"
#include "ui/views/mask_lab/number_field.h"
#include "ui/views/mask_lab/program_panel.h"
#include "ui/widgets/forms/code_edit.h"

namespace vitrine::ui {

using sessions::RunInfo;

namespace {

/// Tokens of the prompts in the order in which they arrived, as many as documents can be.
std::vector<std::int64_t> requestLengths(const TimelinePtr& timeline) {
    constexpr std::size_t kMost = 4096;
    std::vector<std::int64_t> lengths;
    for (const base::RequestEvent& event :
         timeline != nullptr ? timeline->requests().events() : std::span<const base::RequestEvent>()) {
        if (event.phase == base::RequestPhase::Arrived && event.tokens > 0 && lengths.size() < kMost) {
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

bool MaskLabView::perform(const QString& action) {
    const std::map<QString, std::function<void()>> commands = {
        {"mask.go", [this] { emit searchWanted(); }},
        {"mask.measure", [this] { measure(); }},
        {"mask.a", [this] { showSide(BlockMap::Side::A); }},
        {"mask.b", [this] { showSide(BlockMap::Side::B); }},
        {"mask.difference", [this] { showSide(BlockMap::Side::Difference); }},
        {"mask.blocks", [this] { contentChoice_->setCurrent(0); }},
        {"mask.scores", [this] { contentChoice_->setCurrent(1); }},
        {"mask.link", [this] { link_->toggle(); }},
        {"mask.catalogue",
         [this] {
             setDockOpen(true);
             program_->catalogueButton()->showMenu();
         }},
        {"mask.layers",
         [this] {
             setDockOpen(true);
             program_->layersButton()->showMenu();
         }},
        {"mask.export", [this] { chooseExport(); }},
        {"mask.copy-picture", [this] { copyPicture(); }},
        {"mask.save-png", [this] { savePicture(false); }},
        {"mask.save-svg", [this] { savePicture(true); }},
        {"run.start", [this] { measure(); }},
        {"edit.undo", [this] { program_->editor()->undo(); }},
        {"edit.redo", [this] { program_->editor()->redo(); }},
        {"edit.copy", [this] { copyPicture(); }},
        {"edit.copy-why", [this] { QGuiApplication::clipboard()->setText(copyText()); }},
        {"zoom.in", [this] { map_->zoomBy(1.4); }},
        {"zoom.out", [this] { map_->zoomBy(1 / 1.4); }},
        {"zoom.all", [this] { map_->showAll(); }},
        {"select.clear",
         [this] {
             if (measuring_.mine) {
                 context().runs->stop();
             }
             map_->unpin();
         }},
    };
    const auto found = commands.find(action);
    if (found == commands.end()) {
        return View::perform(action);
    }
    if (whyNot(action).isEmpty()) {
        found->second();
    }
    return true;
}

QString MaskLabView::whyNot(const QString& action) const {
    const MaskLab::Side& side = lab_->side(shown_);
    if (action == QLatin1String("mask.measure") || action == QLatin1String("run.start")) {
        if (context().runs == nullptr) {
            return tr("Nothing can be started here");
        }
        if (context().runs->running()) {
            return tr("A run is in progress");
        }
        if (!side.study || side.study->problem) {
            return tr("The program has an error");
        }
        return {};
    }
    if (action == QLatin1String("mask.export") || action == QLatin1String("mask.copy-picture") ||
        action.startsWith(QLatin1String("mask.save"))) {
        return side.map ? QString() : tr("There is no mask yet");
    }
    if (action == QLatin1String("mask.difference")) {
        return lab_->side(0).map && lab_->side(1).map ? QString() : tr("There are no two masks");
    }
    if (action == QLatin1String("edit.undo")) {
        return program_->editor()->document()->isUndoAvailable() ? QString() : tr("Nothing was edited here");
    }
    if (action == QLatin1String("edit.redo")) {
        return program_->editor()->document()->isRedoAvailable() ? QString() : tr("Nothing was undone here");
    }
    return View::whyNot(action);
}

QString MaskLabView::find(const QString& text, int direction) {
    static const QRegularExpression pattern(
        QStringLiteral("^\\s*(?:q\\s*)?([\\d,]*\\d[kKmM]?)\\s*(?:[;/x×]|\\s)\\s*(?:kv\\s*)?([\\d,]*\\d[kKmM]?)\\s*$"));
    static const QRegularExpression plane(QStringLiteral("^\\s*(head|batch|sequence|layer)\\s+(\\d+)\\s*$"));
    const auto place = pattern.match(text);
    const auto named = plane.match(text);
    if (direction == 0 && !text.isEmpty()) {
        return place.hasMatch() || named.hasMatch() ? tr("Enter goes") : tr("q kv, head n");
    }
    if (place.hasMatch()) {
        const auto number = [](const QString& word) { return word == QLatin1String("0") ? 0 : parseLength(word); };
        const MaskCell cell{number(place.captured(1)), number(place.captured(2))};
        if (cell.q >= lab_->sizes().queries || cell.kv >= lab_->sizes().keys) {
            return tr("outside");
        }
        map_->goTo(cell, true);
        return tr("pinned");
    }
    if (named.hasMatch()) {
        const std::int64_t number = named.captured(2).toLongLong();
        const QString what = named.captured(1);
        if (what == QLatin1String("layer")) {
            if (!model_ || number >= static_cast<std::int64_t>(model_->layers.size())) {
                return tr("no such layer");
            }
            emit program_->layerChosen(static_cast<int>(number));
        } else if (what == QLatin1String("head")) {
            lab_->setPlane(lab_->batch(), number);
        } else {
            lab_->setPlane(number, lab_->head());
        }
        updateSizes();
        return tr("shown");
    }
    return {};
}

QList<QWidget*> MaskLabView::focusStops() const {
    QList<QWidget*> stops;
    if (dockTab_->isVisible()) {
        stops << dockTab_;
    }
    if (left_->isVisible()) {
        stops << program_->editor() << captures_;
    }
    return stops << map_;
}

QList<QWidget*> MaskLabView::focusOrder() const {
    QList<QWidget*> parts = {dockTab_, program_};
    for (int i = 0; i < sliderColumn_->count(); ++i) {
        parts << sliderColumn_->itemAt(i)->widget();
    }
    return parts << captures_ << heads_ << map_;
}

bool MaskLabView::settled() const {
    return lab_->settled() && map_->settled() && !modelJob_.busy() && !exportJob_.busy();
}

void MaskLabView::activated() {
    updateMeasure();
    updateStatus();
    map_->setFocus();
}

void MaskLabView::deactivated() {
    keepDrafts();
}

void MaskLabView::takeExperiment(const QString& experimentJson) {
    const nlohmann::json spec = parsedObject(experimentJson.toStdString());
    lab_->setSizes(sizesOfExperiment(spec, lab_->sizes()));
    lab_->setSource(shown_, withCatalogueText(sourceOfExperiment(spec, {})));
}

void MaskLabView::takeFolder(const QString& path) {
    readModel(path.toStdString(), {});
}

// Runs.

void MaskLabView::onRuns() {
    SessionDocument* document = context().document;
    // A run of this view becomes the run of its side as soon as the session shows it.
    for (std::size_t i = 0; i < wantedRun_.size(); ++i) {
        if (wantedRun_[i] != 0 && document->run(wantedRun_[i]) != nullptr) {
            const sessions::RunId run = std::exchange(wantedRun_[i], 0);
            i == 0 ? document->setRunA(run) : document->setRunB(run);
        }
    }
    const sessions::RunId now[] = {document->runA(), document->runB()};
    if (now[0] != 0 && now[1] != 0 && loaded_[0] == now[1] && loaded_[1] == now[0]) {
        std::swap(loaded_[0], loaded_[1]);
        lab_->swapSides();
        updateStudy();
        return;
    }
    for (int i = 0; i < MaskLab::kSides; ++i) {
        const RunInfo* run = document->run(now[i]);
        auto& loaded = loaded_[static_cast<std::size_t>(i)];
        if (run == nullptr || !isAttention(*run)) {
            continue;
        }
        if (run->id != loaded) {
            loaded = run->id;
            loadRun(i, *run);
        } else if (timesPending_[static_cast<std::size_t>(i)] && run->status != sessions::RunStatus::Running) {
            timesPending_[static_cast<std::size_t>(i)] = false;
            lab_->setTimes(i, maskTimes(run->metricsJson), run->id, lab_->side(i).source);
        }
    }
    const RunInfo* a = document->run(now[0]);
    const nlohmann::json spec = a != nullptr ? parsedObject(a->specJson) : nlohmann::json::object();
    const std::string model = textAt(spec, "model").toStdString();
    if (!model.empty() && model != modelName_) {
        std::map<std::string, std::string> overrides;
        if (const auto set = spec.find("set"); set != spec.end() && set->is_object()) {
            for (const auto& [key, value] : set->items()) {
                overrides[key] = value.is_string() ? value.get<std::string>() : value.dump();
            }
        }
        readModel(model, overrides);
    }
}

void MaskLabView::loadRun(int side, const RunInfo& run) {
    const nlohmann::json spec = parsedObject(run.specJson);
    if (!spec.contains("mods") || spec["mods"].empty()) {
        takeRun(side, run, {});
        return;
    }
    // Texts of files stand in the session as they were when the run began.
    context().document->readTexts(run.id, this, [this, side, run](const std::vector<sessions::RunText>& texts) {
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

void MaskLabView::takeRun(int side, const RunInfo& run, const std::vector<std::string>& modTexts) {
    const nlohmann::json spec = parsedObject(run.specJson);
    MaskSource source = withCatalogueText(sourceOfExperiment(spec, modTexts));
    source.name = run.name;
    const auto times = maskTimes(run.metricsJson);
    MaskSizes sizes = sizesOfExperiment(spec, lab_->sizes());
    if (!spec.contains("random") && times) {
        const std::int64_t block = sizes.block;
        sizes = times->sizes; // tensors of a file
        sizes.block = block;
    }
    lab_->setSizes(sizes);
    lab_->setSource(side, source);
    lab_->setTimes(side, times, run.id, source);
    timesPending_[static_cast<std::size_t>(side)] = run.status == sessions::RunStatus::Running;
}

std::pair<QString, int> MaskLabView::measureDevice() const {
    const DeviceFeed* devices = context().devices;
    const int chosen = devices != nullptr ? devices->chosen() : -1;
    if (chosen < 0) {
        return {QStringLiteral("cpu"), 0};
    }
    const DeviceEntry device = devices->devices()[static_cast<std::size_t>(chosen)];
    return {device.backend, device.ordinal};
}

void MaskLabView::measure() {
    if (!whyNot(QStringLiteral("mask.measure")).isEmpty()) {
        return;
    }
    lab_->flush();
    const MaskLab::Side& side = lab_->side(shown_);
    const auto [backend, device] = measureDevice();
    measuring_ = {shown_, side.source, side.study->title(), 0, true};
    showError({});
    panel_->setMeasuring(tr("Measuring"));
    context().runs->start(
        measureExperiment(side.source, side.study->maskName, side.study->scoreName, lab_->sizes(), backend, device),
        context().document->isOpen() ? context().document->path() : QString());
    updateMeasure();
}

std::vector<std::int64_t> MaskLabView::lengthsOfRun(sessions::RunId id) const {
    const RunInfo* run = context().document->run(id);
    std::vector<std::int64_t> lengths;
    if (run == nullptr) {
        return lengths;
    }
    const nlohmann::json spec = parsedObject(run->specJson);
    for (const std::string& line : sourceOfExperiment(spec, {}).captures) {
        if (const auto found = captureLengths(line); !found.empty()) {
            return found;
        }
    }
    const nlohmann::json metrics = parsedObject(run->metricsJson);
    const auto prompts = metrics.find("prompt_tokens");
    if (prompts != metrics.end() && prompts->is_array()) {
        for (const nlohmann::json& length : *prompts) {
            if (length.is_number_integer() && length.get<std::int64_t>() > 0) {
                lengths.push_back(length.get<std::int64_t>());
            }
        }
    } else if (prompts != metrics.end() && prompts->is_number_integer() && prompts->get<std::int64_t>() > 0) {
        const auto batch = static_cast<std::size_t>(numberAt(spec, "batch").value_or(1));
        lengths.assign(std::clamp<std::size_t>(batch, 1, 4096), prompts->get<std::int64_t>());
    }
    return lengths;
}

void MaskLabView::takeLengthsOfRun(const QString& capture) {
    SessionDocument* document = context().document;
    lengthsFor_.clear();
    std::vector<std::int64_t> lengths = lengthsOfRun(document->runA());
    if (lengths.empty() && document->runA() != 0) {
        // Of a run that served requests the events say it; they may have to be read first.
        const TimelineState& state = document->timeline(document->runA());
        lengths = requestLengths(state.timeline);
        if (lengths.empty() && !state.complete && state.error.isEmpty()) {
            lengthsFor_ = capture;
            setReadout(tr("Reading the requests of run A"));
            return;
        }
    }
    if (lengths.empty()) {
        showError(tr("Run A tells no lengths of sequences. Choose a run that served requests or generated from several "
                     "prompts, or one of attention with documents."));
        return;
    }
    showError({});
    lab_->setCapture(shown_, capture.toStdString(), engine::documentsText(capture.toStdString(), lengths));
}

// Models and files.

void MaskLabView::readModel(const std::string& name, const std::map<std::string, std::string>& overrides) {
    modelName_ = name;
    if (name.empty()) {
        program_->setModel(std::nullopt, tr("Run A names no model"));
        return;
    }
    modelJob_.start(
        [name, overrides]() -> std::pair<std::optional<MaskModel>, QString> {
            try {
                return {maskModel(name, overrides), QString()};
            } catch (const std::exception& error) {
                return {std::nullopt, QString::fromUtf8(error.what())};
            }
        },
        [this](std::pair<std::optional<MaskModel>, QString> found) {
            model_ = found.first;
            program_->setModel(std::move(found.first), found.second);
        });
}

void MaskLabView::chooseModelFolder() {
    const QString path = QFileDialog::getExistingDirectory(this, tr("Choose a model folder"));
    if (!path.isEmpty()) {
        readModel(path.toStdString(), {});
    }
}

void MaskLabView::chooseTensors() {
    const QString path = QFileDialog::getOpenFileName(this, tr("Captured tensors"), QString(),
                                                      tr("safetensors files (*.safetensors);;All files (*)"));
    if (!path.isEmpty()) {
        lab_->setTensorsFile(shown_, path.toStdString());
    }
}

void MaskLabView::chooseExport() {
    QString path = QFileDialog::getSaveFileName(this, tr("Export arrays"), QStringLiteral("block_mask.safetensors"),
                                                tr("safetensors files (*.safetensors)"));
    if (!path.isEmpty()) {
        exportArrays(path);
    }
}

void MaskLabView::exportArrays(const QString& path) {
    const MaskMapPtr map = lab_->side(shown_).map;
    if (!map) {
        return;
    }
    exportJob_.start(
        [map, path]() -> QString {
            try {
                engine::writeBlockMaskArrays(*map->blocks, path.toStdString());
            } catch (const std::exception& error) {
                return QString::fromUtf8(error.what());
            }
            return {};
        },
        [this, path](const QString& error) {
            showError(error);
            said_ = error.isEmpty() ? tr("Arrays written to %1").arg(path) : QString();
            setReadout(said_);
        });
}

void MaskLabView::savePicture(bool vector) {
    const QString name = vector ? QStringLiteral("mask.svg") : QStringLiteral("mask.png");
    const QString path = QFileDialog::getSaveFileName(this, tr("Save the picture"), name,
                                                      vector ? tr("SVG images (*.svg)") : tr("PNG images (*.png)"));
    if (path.isEmpty()) {
        return;
    }
    try {
        vector ? map_->saveSvg(path) : map_->savePng(path, 2);
        said_ = tr("Picture written to %1").arg(path);
        setReadout(said_);
    } catch (const std::exception& error) {
        showError(QString::fromUtf8(error.what()));
    }
}

void MaskLabView::copyPicture() {
    auto* copied = new QMimeData;
    copied->setImageData(map_->picture(2));
    copied->setData(QStringLiteral("image/svg+xml"), map_->svg());
    QGuiApplication::clipboard()->setMimeData(copied);
    said_ = tr("The picture is copied, as PNG and as SVG");
    setReadout(said_);
}

QString MaskLabView::copyText() const {
    const MaskLab::Side& side = lab_->side(shown_);
    QString text = QStringLiteral("**%1**, %2 × %3, %4\n\n")
                       .arg(side.mapStudy ? side.mapStudy->title() : title(), countText(lab_->sizes().queries),
                            countText(lab_->sizes().keys), tr("blocks of %1").arg(lab_->sizes().block));
    if (const auto cell = map_->cell(); cell && reasons_) {
        text += tr("q %1, kv %2: %3\n\n").arg(countText(cell->q), countText(cell->kv), reasons_->sentence);
    }
    return text + panel_->asText();
}

} // namespace vitrine::ui
