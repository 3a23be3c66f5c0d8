// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/mask_lab/mask_lab_view.h"

#include <QCheckBox>
#include <QComboBox>
#include <QKeyEvent>
#include <QPushButton>
#include <QSplitter>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/models/common/flat_tree.h"
#include "ui/models/common/format.h"
#include "ui/views/mask_lab/capture_panel.h"
#include "ui/views/mask_lab/heads_panel.h"
#include "ui/views/mask_lab/mask_inspector.h"
#include "ui/views/mask_lab/number_field.h"
#include "ui/views/mask_lab/program_panel.h"
#include "ui/widgets/base/focus_order.h"
#include "ui/widgets/forms/code_edit.h"
#include "ui/widgets/forms/number_slider.h"

namespace vitrine::ui {

namespace {

constexpr int kNarrowView = 990; ///< the editor is a tab below this width
constexpr std::int64_t kMostTableRows = 65536;

} // namespace

QAbstractButton* MaskLabView::dockTab() const {
    return dockTab_;
}

std::vector<NumberSlider*> MaskLabView::sliders() const {
    std::vector<NumberSlider*> all;
    for (const auto& [name, slider] : sliders_) {
        all.push_back(slider);
    }
    return all;
}

void MaskLabView::showSide(BlockMap::Side side) {
    map_->setSide(side);
    if (sideChoice_->current() != static_cast<int>(side)) {
        sideChoice_->setCurrent(static_cast<int>(side));
    }
    const int shown = side == BlockMap::Side::B ? 1 : 0;
    if (shown != shown_) {
        shown_ = shown;
        program_->showSide(shown);
        updateStudy();
    }
    updateMaps();
}

void MaskLabView::updateStudy() {
    const MaskLab::Side& side = lab_->side(shown_);
    program_->setStudy(side.study, side.error);
    updateSliders();
    if (side.study && !side.study->problem) {
        captures_->setCaptures(side.study->captures, lab_->sizes().block, textOf(side.source.tensorsFile));
        orderFocus(focusOrder()); // sliders and tables come and go
    }
    updateMeasure();
    updateStatus();
    emit availabilityChanged();
}

void MaskLabView::updateSliders() {
    const MaskStudyPtr& study = lab_->side(shown_).study;
    if (!study || study->problem) {
        return; // what is half written keeps its sliders
    }
    std::map<QString, NumberSlider*> kept;
    int width = 0;
    for (const MaskNumber& number : study->numbers) {
        auto found = sliders_.find(number.name);
        NumberSlider* slider = found == sliders_.end() ? nullptr : found->second;
        if (slider == nullptr || slider->whole() != number.whole) {
            slider = new NumberSlider(number.name, number.whole, left_);
            connect(slider, &NumberSlider::moved, this, [this, name = number.name.toStdString()](double value) {
                lab_->setParameter(shown_, name, value);
            });
            sliderColumn_->addWidget(slider);
        } else {
            sliders_.erase(found);
        }
        slider->setValue(number.value, number.low, number.high);
        slider->show();
        width = std::max(width, slider->nameHint());
        kept[number.name] = slider;
    }
    for (const auto& [name, slider] : sliders_) {
        slider->hide();
        slider->deleteLater();
    }
    sliders_ = std::move(kept);
    for (const auto& [name, slider] : sliders_) {
        slider->setNameWidth(width);
    }
    parameterHead_->setVisible(!sliders_.empty());
}

void MaskLabView::updateMaps() {
    map_->setMaps(lab_->side(0).map, lab_->side(1).map);
    heads_->setMap(lab_->side(shown_).map.get());
    updateNumbers();
    updatePointed();
    updateTable();
    emit availabilityChanged();
}

void MaskLabView::updateNumbers() {
    panel_->setLab(*lab_, shown_);
    updateStatus();
}

void MaskLabView::updateSizes() {
    const MaskSizes& sizes = lab_->sizes();
    queries_->setValue(sizes.queries);
    keys_->setValue(sizes.keys);
    heads_->setSizes(sizes, lab_->batch(), lab_->head());
    std::vector<std::int64_t> blocks(std::begin(kBlockSizes), std::end(kBlockSizes));
    if (std::find(blocks.begin(), blocks.end(), sizes.block) == blocks.end()) {
        blocks.push_back(sizes.block);
        std::sort(blocks.begin(), blocks.end());
    }
    block_->clear();
    for (const std::int64_t block : blocks) {
        block_->addItem(tr("Block %1").arg(block), QVariant(static_cast<qlonglong>(block)));
    }
    block_->setCurrentIndex(block_->findData(QVariant(static_cast<qlonglong>(sizes.block))));
    updateMeasure();
}

void MaskLabView::updatePointed() {
    const MaskLab::Side& side = lab_->side(shown_);
    const auto cell = map_->cell();
    reasons_.reset();
    if (cell && side.map && side.mapStudy && cell->q < side.map->queries() && cell->kv < side.map->keys()) {
        const kernels::ProgramRow row{side.map->batch, side.map->head, cell->q};
        reasons_ = maskReasons(side.mapStudy->mask.get(), side.mapStudy->score.get(), row, cell->kv);
    }
    panel_->setReasons(reasons_);
    captures_->setPointed(cell ? cell->q : -1, cell ? cell->kv : -1);
    int line = 0;
    if (reasons_ && reasons_->deciding >= 0) {
        line = lineOfSpan(side.mapStudy->mask->program,
                          reasons_->reasons[static_cast<std::size_t>(reasons_->deciding)].span,
                          program_->editor()->text());
    }
    program_->editor()->setTintedLine(line, !reasons_ || !reasons_->allowed);
    setReadout(reasons_
                   ? tr("q %1, kv %2: %3%4")
                         .arg(countText(cell->q), countText(cell->kv), reasons_->sentence,
                              reasons_->score.isEmpty() ? QString() : tr(", score of 0 is %1").arg(reasons_->score))
                   : said_);
}

void MaskLabView::updateStatus() {
    const MaskLab::Side& side = lab_->side(shown_);
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
    const MaskMapPtr& map = lab_->side(shown_).map;
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
    const MaskLab::Side& side = lab_->side(shown_);
    const bool running = context().runs != nullptr && context().runs->running();
    measure_->setText(runs_->measuring() ? tr("Stop") : tr("Measure"));
    const QString reason = runs_->whyNotMeasure(shown_);
    measure_->setEnabled(runs_->measuring() || reason.isEmpty());
    const bool gpu = runs_->device().first == QLatin1String("cuda");
    QString smaller;
    measuredSizes(lab_->sizes(), gpu, &smaller);
    QString tip =
        tr("Time it forward and backward, with the mask and without, on the %1").arg(gpu ? tr("GPU") : tr("processor"));
    if (!smaller.isEmpty()) {
        tip += QLatin1Char('\n') + tr("Smaller than what is shown: %1").arg(smaller);
    }
    measure_->setToolTip(runs_->measuring() ? tr("Stop measuring") : reason.isEmpty() ? tip : reason);
    if (!runs_->measuring() && !running && side.study && !side.times) {
        panel_->setMeasuring({});
    }
}

void MaskLabView::updateNarrow() {
    const bool narrow = width() < kNarrowView;
    // A square map in a low window leaves room at its side.
    const bool open = dockOpen_.value_or(width() - kLeftWidth - dockTab_->width() >= height());
    dockTab_->setChecked(open);
    left_->setVisible(!narrow || open);
    if (narrow == narrow_) {
        return;
    }
    narrow_ = narrow;
    dockTab_->setVisible(narrow);
    link_->setVisible(!narrow);
    export_->setVisible(!narrow);
}

void MaskLabView::setDockOpen(bool open) {
    dockOpen_ = open;
    dockTab_->setChecked(open);
    left_->setVisible(!narrow_ || open);
    if (narrow_ && open) {
        program_->editor()->setFocus();
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
