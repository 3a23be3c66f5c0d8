// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/mask_lab/heads_panel.h"

#include <QGridLayout>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/models/common/format.h"
#include "ui/views/mask_lab/number_field.h"
#include "ui/widgets/plots/head_strip.h"

namespace vitrine::ui {

namespace {

constexpr std::int64_t kMost = 1024;

} // namespace

HeadsPanel::HeadsPanel(QWidget* parent) : QWidget(parent) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 10);
    column->setSpacing(0);
    auto* header = new DockHeader(tr("Heads"), this);
    range_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, header);
    range_->setContentsMargins(0, 0, 4, 0);
    header->addControl(range_);
    column->addWidget(header);
    strip_ = new HeadStrip(this);
    column->addWidget(strip_);
    sentence_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, this);
    sentence_->setContentsMargins(12, 0, 12, 8);
    sentence_->setWordWrap(true);
    column->addWidget(sentence_);
    auto* grid = new QGridLayout;
    grid->setContentsMargins(12, 0, 12, 0);
    grid->setHorizontalSpacing(4);
    grid->setVerticalSpacing(6);
    const auto field = [&](const QString& name, const QString& tip, int row, int place) {
        auto* made = new NumberField(name, tip, 46, 22, this);
        made->setRange(1, kMost);
        grid->addWidget(made, row, place, Qt::AlignRight);
        return made;
    };
    batch_ = field(tr("sequence"), tr("The sequence of the batch that the map shows, from 0"), 0, 0);
    batches_ = field(tr("of"), tr("Sequences in the batch"), 0, 1);
    kvHeads_ = field(tr("KV heads"), tr("Heads of keys and values"), 0, 2);
    head_ = field(tr("head"), tr("The head that the map shows, from 0"), 1, 0);
    heads_ = field(tr("of"), tr("Query heads"), 1, 1);
    headDim_ = field(tr("head dim"), tr("Numbers in a head: of what is measured"), 1, 2);
    grid->setColumnStretch(1, 1);
    column->addLayout(grid);
    const auto plane = [this] { emit planeChosen(batch_->value(), head_->value()); };
    connect(batch_, &NumberField::changed, this, plane);
    connect(head_, &NumberField::changed, this, plane);
    connect(strip_, &ItemPlot::itemClicked, this, [this](int head) { emit planeChosen(planeBatch_, head); });
    connect(strip_, &PlotWidget::readoutChanged, this, &HeadsPanel::readoutChanged);
    for (NumberField* one : {batches_, heads_, kvHeads_, headDim_}) {
        connect(one, &NumberField::changed, this, [this] {
            MaskSizes sizes = sizes_;
            sizes.batch = batches_->value();
            sizes.heads = heads_->value();
            sizes.kvHeads = kvHeads_->value();
            sizes.headDim = headDim_->value();
            emit sizesChosen(sizes);
        });
    }
    refresh();
}

QString HeadsPanel::sentence() const {
    return sentence_->text();
}

void HeadsPanel::setSizes(const MaskSizes& sizes, std::int64_t batch, std::int64_t head) {
    sizes_ = sizes;
    planeBatch_ = batch;
    planeHead_ = head;
    batch_->setRange(0, sizes.batch - 1);
    head_->setRange(0, sizes.heads - 1);
    batch_->setValue(batch);
    batches_->setValue(sizes.batch);
    head_->setValue(head);
    heads_->setValue(sizes.heads);
    kvHeads_->setValue(sizes.kvHeads);
    headDim_->setValue(sizes.headDim);
    refresh();
}

void HeadsPanel::setMap(const MaskMap* map) {
    known_ = map != nullptr;
    shares_.clear();
    usesHead_ = known_ && map->usesHead;
    usesBatch_ = known_ && map->usesBatch;
    for (std::size_t i = 0; known_ && i < map->heads.size(); ++i) {
        const MaskHead& head = map->heads[i];
        const auto all = static_cast<double>(std::max<std::int64_t>(1, head.full + head.partial + head.empty));
        shares_.push_back(static_cast<double>(head.full + head.partial) / all);
    }
    refresh();
}

void HeadsPanel::refresh() {
    range_->setText(sizes_.heads == 1 ? tr("1 head") : tr("0 to %1").arg(sizes_.heads - 1));
    strip_->setHeads(shares_, static_cast<int>(sizes_.heads), static_cast<int>(planeHead_));
    batch_->setEnabled(usesBatch_);
    head_->setEnabled(usesHead_);
    if (!known_) {
        sentence_->setText({});
    } else if (usesHead_) {
        const auto [least, most] = std::minmax_element(shares_.begin(), shares_.end());
        sentence_->setText(tr("Each head has its own mask: %1 to %2 of the blocks are computed.")
                               .arg(shareText(*least), shareText(*most)));
    } else {
        const QString heads = sizes_.heads == 1 ? tr("1 head") : tr("%1 heads").arg(sizes_.heads);
        sentence_->setText(usesBatch_ ? tr("h is not used: one mask of each sequence serves %1.").arg(heads)
                                      : tr("h is not used: one mask serves all %1.").arg(heads));
    }
}

} // namespace vitrine::ui
