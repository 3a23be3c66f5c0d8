// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/mask_lab/mask_lab_view.h"

#include <QKeyEvent>
#include <QTableView>
#include <QToolButton>
#include <algorithm>

#include "ui/models/common/flat_tree.h"
#include "ui/models/common/format.h"
#include "ui/views/mask_lab/mask_controls.h"
#include "ui/views/mask_lab/mask_editor.h"
#include "ui/views/mask_lab/mask_exports.h"
#include "ui/views/mask_lab/mask_inspector.h"
#include "ui/views/mask_lab/program_panel.h"
#include "ui/widgets/base/focus_order.h"
#include "ui/widgets/forms/code_edit.h"

namespace vitrine::ui {

namespace {

constexpr int kNarrowView = 990; ///< the editor is a tab below this width
constexpr std::int64_t kMostTableRows = 65536;

} // namespace

QAbstractButton* MaskLabView::dockTab() const {
    return dockTab_;
}

int MaskLabView::shownSide() const {
    return editor_->side();
}

void MaskLabView::showSide(BlockMap::Side side) {
    map_->setSide(side);
    controls_->showSide(side);
    const int shown = side == BlockMap::Side::B ? 1 : 0;
    if (shown != shownSide()) {
        editor_->setSide(shown);
        updateStudy();
    }
    updateMaps();
}

void MaskLabView::updateStudy() {
    if (editor_->showStudy()) {
        orderFocus(focusOrder()); // sliders and tables come and go
    }
    updateMeasure();
    updateStatus();
    emit availabilityChanged();
}

void MaskLabView::updateMaps() {
    map_->setMaps(lab_->side(0).map, lab_->side(1).map);
    editor_->showMap();
    updateNumbers();
    updatePointed();
    updateTable();
    emit availabilityChanged();
}

void MaskLabView::updateNumbers() {
    panel_->setLab(*lab_, shownSide());
    updateStatus();
}

void MaskLabView::updateSizes() {
    controls_->showSizes();
    editor_->showSizes();
    updateMeasure();
}

void MaskLabView::updatePointed() {
    const MaskLab::Side& side = shownLab();
    const auto cell = map_->cell();
    reasons_.reset();
    if (cell && side.map && side.mapStudy && cell->q < side.map->queries() && cell->kv < side.map->keys()) {
        const kernels::ProgramRow row{side.map->batch, side.map->head, cell->q};
        reasons_ = maskReasons(side.mapStudy->mask.get(), side.mapStudy->score.get(), row, cell->kv);
    }
    panel_->setReasons(reasons_);
    editor_->setPointed(cell ? cell->q : -1, cell ? cell->kv : -1);
    int line = 0;
    if (reasons_ && reasons_->deciding >= 0) {
        line = lineOfSpan(side.mapStudy->mask->program,
                          reasons_->reasons[static_cast<std::size_t>(reasons_->deciding)].span,
                          editor_->program()->editor()->text());
    }
    editor_->setTintedLine(line, !reasons_ || !reasons_->allowed);
    setReadout(reasons_
                   ? tr("q %1, kv %2: %3%4")
                         .arg(countText(cell->q), countText(cell->kv), reasons_->sentence,
                              reasons_->score.isEmpty() ? QString() : tr(", score of 0 is %1").arg(reasons_->score))
                   : exports_->said());
}

void MaskLabView::updateStatus() {
    const MaskLab::Side& side = shownLab();
    QStringList words;
    if (side.working) {
        words << tr("Building the mask");
    } else if (side.map) {
        words << tr("Built in %1").arg(durationText(static_cast<base::TimeNs>(side.map->buildSeconds * 1e9)));
        if (side.density) {
            words << tr("density in %1").arg(durationText(static_cast<base::TimeNs>(side.densitySeconds * 1e9)));
        }
    }
    emit priced(words.join(QStringLiteral(", ")));
}

void MaskLabView::updateTable() {
    if (!header()->tableShown()) {
        return;
    }
    auto tree = std::make_shared<FlatTree>();
    tree->columns = {{tr("Row of blocks"), true},
                     {tr("First query"), true},
                     {tr("Full"), true},
                     {tr("Partial"), true},
                     {tr("Empty"), true}};
    const MaskMapPtr& map = shownLab().map;
    const auto number = [](std::int64_t value) {
        return FlatCell(countText(value), QVariant(static_cast<qlonglong>(value)), QString::number(value));
    };
    const std::int64_t rows = map ? std::min(map->shape().queryBlocks(), kMostTableRows) : 0;
    for (std::int64_t row = 0; row < rows; ++row) {
        std::int64_t full = 0, partial = 0;
        for (const kernels::BlockRun& run : map->blocks->row(map->batch, map->head, row)) {
            (run.full ? full : partial) += run.count;
        }
        FlatNode node;
        node.key = static_cast<quint64>(row) + 1;
        node.cells = {number(row), number(row * map->shape().queryBlock), number(full), number(partial),
                      number(map->shape().keyBlocks() - full - partial)};
        tree->nodes.push_back(std::move(node));
    }
    twinModel_->setTree(std::move(tree));
}

void MaskLabView::updateMeasure() {
    controls_->showMeasure(*runs_, shownSide());
    const bool running = context().runs != nullptr && context().runs->running();
    if (!runs_->measuring() && !running && shownLab().study && !shownLab().times) {
        panel_->setMeasuring({});
    }
}

void MaskLabView::updateNarrow() {
    const bool narrow = width() < kNarrowView;
    // A square map in a low window leaves room at its side.
    const bool open = dockOpen_.value_or(width() - kLeftWidth - dockTab_->width() >= height());
    dockTab_->setChecked(open);
    editor_->setVisible(!narrow || open);
    if (narrow == narrow_) {
        return;
    }
    narrow_ = narrow;
    dockTab_->setVisible(narrow);
    controls_->setNarrow(narrow);
}

void MaskLabView::setDockOpen(bool open) {
    dockOpen_ = open;
    dockTab_->setChecked(open);
    editor_->setVisible(!narrow_ || open);
    if (narrow_ && open) {
        editor_->program()->editor()->setFocus();
    }
}

void MaskLabView::resizeEvent(QResizeEvent* event) {
    View::resizeEvent(event);
    updateNarrow();
}

bool MaskLabView::eventFilter(QObject* watched, QEvent* event) {
    const bool press = event->type() == QEvent::KeyPress;
    if (watched == map_ && (press || event->type() == QEvent::KeyRelease)) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->key() == Qt::Key_Space) {
            if (press && !key->isAutoRepeat() && !flipping_) {
                flipping_ = true;
                before_ = map_->side();
                showSide(before_ == BlockMap::Side::B ? BlockMap::Side::A : BlockMap::Side::B);
            } else if (!press && !key->isAutoRepeat() && flipping_) {
                flipping_ = false;
                showSide(before_);
            }
            return true;
        }
    }
    if (watched == map_ && event->type() == QEvent::FocusOut && flipping_) {
        flipping_ = false;
        showSide(before_);
    }
    return View::eventFilter(watched, event);
}

} // namespace vitrine::ui
