// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Commands, search and focus of the Mask Lab.
#include <QClipboard>
#include <QGuiApplication>
#include <QPushButton>
#include <QRegularExpression>
#include <QTextDocument>
#include <QToolButton>

#include "ui/models/common/format.h"
#include "ui/models/mask_lab/mask_drafts.h"
#include "ui/views/mask_lab/capture_panel.h"
#include "ui/views/mask_lab/mask_controls.h"
#include "ui/views/mask_lab/mask_editor.h"
#include "ui/views/mask_lab/mask_exports.h"
#include "ui/views/mask_lab/mask_inspector.h"
#include "ui/views/mask_lab/mask_lab_view.h"
#include "ui/views/mask_lab/number_field.h"
#include "ui/views/mask_lab/program_panel.h"
#include "ui/widgets/forms/code_edit.h"

namespace vitrine::ui {

bool MaskLabView::perform(const QString& action) {
    const std::map<QString, std::function<void()>> commands = {
        {"mask.go", [this] { emit searchWanted(); }},
        {"mask.measure", [this] { runs_->measure(shownSide()); }},
        {"mask.a", [this] { showSide(BlockMap::Side::A); }},
        {"mask.b", [this] { showSide(BlockMap::Side::B); }},
        {"mask.difference", [this] { showSide(BlockMap::Side::Difference); }},
        {"mask.blocks", [this] { controls_->showContent(BlockMap::Content::Mask); }},
        {"mask.scores", [this] { controls_->showContent(BlockMap::Content::Score); }},
        {"mask.link", [this] { controls_->toggleLink(); }},
        {"mask.catalogue",
         [this] {
             setDockOpen(true);
             editor_->program()->catalogueButton()->showMenu();
         }},
        {"mask.layers",
         [this] {
             setDockOpen(true);
             editor_->program()->layersButton()->showMenu();
         }},
        {"mask.export", [this] { exports_->chooseArrays(shownLab().map); }},
        {"mask.copy-picture", [this] { exports_->copyPicture(); }},
        {"mask.save-png", [this] { exports_->choosePicture(false); }},
        {"mask.save-svg", [this] { exports_->choosePicture(true); }},
        {"run.start", [this] { runs_->measure(shownSide()); }},
        {"edit.undo", [this] { editor_->program()->editor()->undo(); }},
        {"edit.redo", [this] { editor_->program()->editor()->redo(); }},
        {"edit.copy", [this] { exports_->copyPicture(); }},
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
    const MaskLab::Side& side = shownLab();
    if (action == QLatin1String("mask.measure") || action == QLatin1String("run.start")) {
        return runs_->whyNotMeasure(shownSide());
    }
    if (action == QLatin1String("mask.export") || action == QLatin1String("mask.copy-picture") ||
        action.startsWith(QLatin1String("mask.save"))) {
        return side.map ? QString() : tr("There is no mask yet");
    }
    if (action == QLatin1String("mask.difference")) {
        return lab_->side(0).map && lab_->side(1).map ? QString() : tr("There are no two masks");
    }
    if (action == QLatin1String("edit.undo")) {
        return editor_->program()->editor()->document()->isUndoAvailable() ? QString() : tr("Nothing was edited here");
    }
    if (action == QLatin1String("edit.redo")) {
        return editor_->program()->editor()->document()->isRedoAvailable() ? QString() : tr("Nothing was undone here");
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
            if (!editor_->chooseLayer(number)) {
                return tr("no such layer");
            }
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
    if (editor_->isVisible()) {
        stops << editor_->program()->editor() << editor_->captures();
    }
    return stops << map_;
}

QList<QWidget*> MaskLabView::focusOrder() const {
    return QList<QWidget*>{dockTab_} + editor_->focusOrder() + QList<QWidget*>{map_};
}

bool MaskLabView::settled() const {
    return lab_->settled() && map_->settled() && !editor_->busy() && !exports_->busy();
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
    runs_->takeExperiment(shownSide(), experimentJson);
}

void MaskLabView::takeFolder(const QString& path) {
    editor_->readModel(path.toStdString(), {});
}

QString MaskLabView::copyText() const {
    const MaskLab::Side& side = shownLab();
    QString text = QStringLiteral("**%1**, %2 × %3, %4\n\n")
                       .arg(side.mapStudy ? side.mapStudy->title() : title(), countText(lab_->sizes().queries),
                            countText(lab_->sizes().keys), tr("blocks of %1").arg(lab_->sizes().block));
    if (const auto cell = map_->cell(); cell && reasons_) {
        text += tr("q %1, kv %2: %3\n\n").arg(countText(cell->q), countText(cell->kv), reasons_->sentence);
    }
    return text + panel_->asText();
}

} // namespace vitrine::ui
