// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Commands of the Mask Lab, and the files it reads and writes.
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

#include "base/error.h"
#include "engine/attention/block_mask_file.h"
#include "ui/models/common/format.h"
#include "ui/models/mask_lab/mask_drafts.h"
#include "ui/views/mask_lab/capture_panel.h"
#include "ui/views/mask_lab/heads_panel.h"
#include "ui/views/mask_lab/mask_inspector.h"
#include "ui/views/mask_lab/mask_lab_view.h"
#include "ui/views/mask_lab/number_field.h"
#include "ui/views/mask_lab/program_panel.h"
#include "ui/widgets/forms/code_edit.h"

namespace vitrine::ui {

bool MaskLabView::perform(const QString& action) {
    const std::map<QString, std::function<void()>> commands = {
        {"mask.go", [this] { emit searchWanted(); }},
        {"mask.measure", [this] { runs_->measure(shown_); }},
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
        {"run.start", [this] { runs_->measure(shown_); }},
        {"edit.undo", [this] { program_->editor()->undo(); }},
        {"edit.redo", [this] { program_->editor()->redo(); }},
        {"edit.copy", [this] { copyPicture(); }},
        {"edit.copy-why", [this] { QGuiApplication::clipboard()->setText(copyText()); }},
        {"zoom.in", [this] { map_->zoomBy(1.4); }},
        {"zoom.out", [this] { map_->zoomBy(1 / 1.4); }},
        {"zoom.all", [this] { map_->showAll(); }},
        {"select.clear",
         [this] {
             runs_->stop();
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
        return runs_->whyNotMeasure(shown_);
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
    keepDrafts(*lab_, context().settingsFile);
}

void MaskLabView::takeExperiment(const QString& experimentJson) {
    runs_->takeExperiment(shown_, experimentJson);
}

void MaskLabView::takeFolder(const QString& path) {
    readModel(path.toStdString(), {});
}

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
