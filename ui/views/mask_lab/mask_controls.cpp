// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/mask_lab/mask_controls.h"

#include <QCheckBox>
#include <QComboBox>
#include <QMenu>
#include <QPushButton>
#include <algorithm>

#include "ui/models/mask_lab/mask_runs.h"
#include "ui/views/mask_lab/number_field.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

MaskControls::MaskControls(MaskLab* lab, BlockMap* map, const ActionList& actions, ViewHeader* header)
    : QObject(header), lab_(lab), map_(map) {
    buildChoices(header);
    buildSizes(header);
    buildButtons(actions, header);
}

void MaskControls::buildChoices(ViewHeader* header) {
    sides_ = header->addSegments({tr("A"), tr("B"), tr("A − B")}, tr("Which mask"));
    sides_->button(0)->setToolTip(tr("Mask A; hold Space over the map to see the other one"));
    sides_->button(1)->setToolTip(tr("Mask B; hold Space over the map to see the other one"));
    sides_->button(2)->setToolTip(tr("What only A or only B allows"));
    contents_ = header->addSegments({tr("Mask"), tr("Score")}, tr("What the map shows"));
    scores_ = header->addCombo(tr("Scores before the score program"));
    scores_->addItems({tr("q·k = 0"), tr("q·k = 1"), tr("q, k of file")});
    scores_->setToolTip(tr("What the score program starts from"));
    scores_->setMinimumWidth(84);
    scores_->hide();
    connect(sides_, &SegmentedControl::currentChanged, this,
            [this](int index) { emit sideChosen(static_cast<BlockMap::Side>(index)); });
    connect(contents_, &SegmentedControl::currentChanged, this, [this](int index) {
        map_->setContent(static_cast<BlockMap::Content>(index));
        scores_->setVisible(index == 1);
    });
    connect(scores_, &QComboBox::activated, this,
            [this](int index) { lab_->setScores(static_cast<MaskLab::Scores>(index)); });
}

void MaskControls::buildSizes(ViewHeader* header) {
    block_ = header->addCombo(tr("Block size"));
    block_->setMinimumWidth(88);
    block_->setToolTip(tr("Queries and keys of a block"));
    queries_ = new NumberField(tr("q"), tr("Queries: 16384, 16k, 1M"), 68, 24, header);
    keys_ = new NumberField(tr("kv"), tr("Keys: 16384, 16k, 1M"), 68, 24, header);
    header->addControl(queries_);
    header->addControl(keys_);
    link_ = header->addCheck(tr("Link"), true);
    link_->setToolTip(tr("Link rows and columns: one scale, one range"));
    connect(block_, &QComboBox::activated, this, [this] {
        MaskSizes sizes = lab_->sizes();
        sizes.block = block_->currentData().toLongLong();
        lab_->setSizes(sizes);
    });
    const auto lengths = [this] {
        MaskSizes sizes = lab_->sizes();
        sizes.queries = queries_->value();
        sizes.keys = keys_->value();
        lab_->setSizes(sizes);
    };
    connect(queries_, &NumberField::changed, this, lengths);
    connect(keys_, &NumberField::changed, this, lengths);
    connect(link_, &QCheckBox::toggled, this, [this](bool on) { map_->setLinked(on); });
}

void MaskControls::buildButtons(const ActionList& actions, ViewHeader* header) {
    export_ = new QPushButton(tr("Arrays"), header);
    export_->setAccessibleName(tr("Export arrays"));
    export_->setToolTip(tr("Write the BlockMask arrays as PyTorch has them, a safetensors file"));
    auto* picture = new QPushButton(tr("Picture"), header);
    picture->setToolTip(tr("Copy or save the map as a picture"));
    measure_ = new QPushButton(tr("Measure"), header);
    setPrimary(measure_);
    // A button of its own: what ends under the pointer must not start again by the same click.
    stop_ = new QPushButton(tr("Stop"), header);
    stop_->setToolTip(tr("Stop measuring"));
    stop_->hide();
    auto* menu = new QMenu(picture);
    for (const char* id : {"mask.copy-picture", "mask.save-png", "mask.save-svg"}) {
        menu->addAction(actions.action(QString::fromLatin1(id)));
    }
    picture->setMenu(menu);
    for (QPushButton* button : {export_, picture, stop_, measure_}) {
        setControlHeight(button, 24);
        header->addRightControl(button);
    }
    connect(export_, &QPushButton::clicked, actions.action(QStringLiteral("mask.export")), &QAction::trigger);
    connect(measure_, &QPushButton::clicked, this, &MaskControls::measureClicked);
    connect(stop_, &QPushButton::clicked, this, &MaskControls::stopClicked);
}

void MaskControls::showSide(BlockMap::Side side) {
    if (sides_->current() != static_cast<int>(side)) {
        sides_->setCurrent(static_cast<int>(side));
    }
}

void MaskControls::showContent(BlockMap::Content content) {
    contents_->setCurrent(static_cast<int>(content));
}

void MaskControls::toggleLink() {
    link_->toggle();
}

void MaskControls::showSizes() {
    const MaskSizes& sizes = lab_->sizes();
    queries_->setValue(sizes.queries);
    keys_->setValue(sizes.keys);
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
}

void MaskControls::showMeasure(const MaskRuns& runs, int side) {
    stop_->setVisible(runs.measuring()); // left of Measure, which stays where it is
    const QString reason = runs.whyNotMeasure(side);
    measure_->setEnabled(reason.isEmpty());
    const bool gpu = runs.device().first == QLatin1String("cuda");
    QString smaller;
    measuredSizes(lab_->sizes(), gpu, &smaller);
    QString tip =
        tr("Time it forward and backward, with the mask and without, on the %1").arg(gpu ? tr("GPU") : tr("processor"));
    if (!smaller.isEmpty()) {
        tip += QLatin1Char('\n') + tr("Smaller than what is shown: %1").arg(smaller);
    }
    measure_->setToolTip(reason.isEmpty() ? tip : reason);
}

void MaskControls::setNarrow(bool narrow) {
    link_->setVisible(!narrow);
    export_->setVisible(!narrow);
}

} // namespace vitrine::ui
