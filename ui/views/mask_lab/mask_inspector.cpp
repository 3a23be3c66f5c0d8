// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/mask_lab/mask_inspector.h"

#include <QHBoxLayout>
#include <QLocale>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/models/kernels/kernel_stats.h"
#include "ui/widgets/plots/fact_rows.h"

namespace vitrine::ui {

namespace {

constexpr int kLeastPointed = 48; ///< two lines of the hint

/// Sparsity has two decimals.
QString sparsityText(double part) {
    return QLocale::c().toString(part * 100, 'f', 2) + QChar(0x00a0) + QLatin1Char('%');
}

FactRow plainRow(const QString& name, const QString& value, const QString& tip = {}) {
    FactRow row;
    row.name = name;
    row.muted = true;
    row.values = {{value, TextColor::Text1}};
    row.tip = tip;
    return row;
}

QString sideName(int side) {
    return side == 0 ? QStringLiteral("A") : QStringLiteral("B");
}

/// How this is against that: fewer is better.
FactValue deltaOf(double mine, double theirs) {
    if (mine == theirs) {
        return {QStringLiteral("="), TextColor::Text3};
    }
    if (theirs <= 0) {
        return {}; // nothing has no ratio, and a sign alone says neither how much nor than what
    }
    const double part = mine / theirs - 1;
    return {(part < 0 ? QStringLiteral("▼ ") : QStringLiteral("▲ ")) + shareText(std::fabs(part)),
            part < 0 ? TextColor::Good : TextColor::Bad};
}

/// What the mask gains beside what its sparsity allows, and the rate.
FactRow gainRow(const MaskDirectionTimes& times, double sparsity) {
    const QString rate = times.tflops ? flopRateText(*times.tflops * 1e12) : QString();
    FactRow row;
    row.muted = true;
    row.name = QObject::tr("rate");
    if (const auto saved = times.saved()) {
        row.name =
            *saved >= 0
                ? QObject::tr("Saves %1, sparsity allows %2").arg(shareText(*saved), shareText(sparsity))
                : QObject::tr("Takes %1 longer, sparsity allows %2").arg(shareText(-*saved), shareText(sparsity));
    }
    row.values = {{rate, TextColor::Text1}};
    row.tip = QObject::tr("%1. %2 of FLOPs in blocks that are computed").arg(row.name, rate);
    return row;
}

FactRow againstRow(const QString& name, const QString& mine, const QString& theirs, FactValue delta) {
    FactRow row = plainRow(name, mine);
    row.values.push_back({theirs, TextColor::Text3});
    row.values.push_back(std::move(delta));
    return row;
}

} // namespace

MaskInspector::MaskInspector(QWidget* parent) : QScrollArea(parent) {
    setFrameShape(QFrame::NoFrame);
    setWidgetResizable(true);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    header_ = new DockHeader(tr("Mask"));
    auto* content = new Surface(Surface::Fill::Panel, Surface::None, this);
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    auto* row = new QHBoxLayout;
    row->setContentsMargins(12, 8, 12, 8);
    row->setSpacing(18);
    const QString captions[] = {tr("block sparsity"), tr("full share"), tr("density")};
    const QString tips[] = {tr("Blocks that are not computed, of all blocks"),
                            tr("Blocks without a blocked element, of those computed"),
                            tr("Allowed elements, of all elements")};
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
        auto* pair = new QVBoxLayout;
        pair->setSpacing(0);
        numbers_[i] = new TextLabel(unknownText(), TypeRole::Sentence, TextColor::Text1, false, content);
        numbers_[i]->setAccessibleName(captions[i]);
        numbers_[i]->setToolTip(tips[i]);
        auto* caption = new TextLabel(captions[i], TypeRole::Table, TextColor::Text2, false, content);
        caption->setToolTip(tips[i]);
        pair->addWidget(numbers_[i]);
        pair->addWidget(caption);
        row->addLayout(pair);
    }
    row->addStretch(1);
    column->addLayout(row);
    facts_ = new FactRows(tr("Form and metadata"), content);
    column->addWidget(facts_);

    pointed_ = section(tr("Under the pointer"), content);
    reasons_ = pointed_.rows;
    pointedBox_ = new QWidget(content);
    auto* box = new QVBoxLayout(pointedBox_);
    box->setContentsMargins(0, 0, 0, 0);
    box->setSpacing(0);
    pointedHint_ = new TextLabel(tr("Point at an element, or move the cell with the arrow keys."), TypeRole::Table,
                                 TextColor::Text3, false, pointedBox_);
    box->addWidget(reasons_);
    box->addWidget(pointedHint_);
    box->addStretch(1);
    pointedBox_->setFixedHeight(kLeastPointed);
    forward_ = section(tr("Time, forward"), content);
    timeHint_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, content);
    backward_ = section(tr("Time, backward"), content);
    timeNote_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, content);
    sizes_ = section(tr("Block size"), content);
    blocks_ = sizes_.rows;
    sizes_.fact->setText(tr("computed share, metadata"));
    other_ = section({}, content);
    against_ = other_.rows;
    for (TextLabel* label : {pointedHint_, timeHint_, timeNote_}) {
        label->setWordWrap(true);
        label->setContentsMargins(12, 4, 12, 8);
    }
    for (QWidget* part : std::initializer_list<QWidget*>{pointed_.head, pointedBox_, forward_.head, forward_.rows,
                                                         timeHint_, backward_.head, backward_.rows, timeNote_,
                                                         sizes_.head, blocks_, other_.head, against_}) {
        column->addWidget(part);
    }
    column->addStretch(1);
    setWidget(content);
    for (FactRows* rows : {facts_, reasons_, forward_.rows, backward_.rows, blocks_, against_}) {
        connect(rows, &PlotWidget::readoutChanged, this, &MaskInspector::readoutChanged);
    }
    connect(blocks_, &ItemPlot::itemClicked, this,
            [this](int item) { emit blockSizeChosen(blockSizes_[static_cast<std::size_t>(item)]); });
    setReasons(std::nullopt);
}

MaskInspector::Section MaskInspector::section(const QString& title, QWidget* content) {
    Section made;
    made.head = new Surface(Surface::Fill::Panel, Surface::Top | Surface::Bottom, content);
    made.head->setFixedHeight(29);
    auto* row = new QHBoxLayout(made.head);
    row->setContentsMargins(12, 0, 12, 0);
    row->setSpacing(10);
    made.title = new TextLabel(title, TypeRole::Table, TextColor::Text1, true, made.head);
    made.fact = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, made.head);
    made.fact->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    made.fact->setElide(true);
    row->addWidget(made.title);
    row->addWidget(made.fact, 1);
    made.rows = new FactRows(title.isEmpty() ? tr("Against the other mask") : title, content);
    return made;
}

QString MaskInspector::number(int index) const {
    return numbers_[static_cast<std::size_t>(index)]->text();
}

QString MaskInspector::hint() const {
    return timeHint_->text();
}

void MaskInspector::setLab(const MaskLab& lab, int side) {
    const MaskLab::Side& shown = lab.side(side);
    header_->setTitle(shown.mapStudy ? tr("%1: %2").arg(sideName(side), shown.mapStudy->title())
                                     : tr("Mask %1").arg(sideName(side)));
    const MaskMap* map = shown.map.get();
    numbers_[0]->setText(map != nullptr ? sparsityText(map->blockSparsity()) : unknownText());
    numbers_[1]->setText(map != nullptr ? sparsityText(map->fullShare()) : unknownText());
    numbers_[2]->setText(map != nullptr && shown.density ? sparsityText(*shown.density) : unknownText());
    std::vector<FactRow> facts;
    if (map != nullptr) {
        const kernels::BlockMask& blocks = *map->blocks;
        const MaskBlockSize size = blockSizeOf(*map);
        facts.push_back(
            plainRow(tr("Computed blocks"), tr("%1 of %2")
                                                .arg(countText(blocks.full + blocks.partial),
                                                     countText(blocks.full + blocks.partial + blocks.empty))));
        facts.push_back(plainRow(tr("Form"), maskForm(*map)));
        facts.push_back(plainRow(tr("Metadata, runs"), size.metadata == 0 ? tr("none") : bytesText(size.metadata),
                                 size.metadata == 0 ? tr("Kernels compute each row's keys from the closed form")
                                                    : exactBytesText(size.metadata)));
        facts.push_back(plainRow(tr("Metadata, four dense arrays"), bytesText(size.denseBytes),
                                 tr("PyTorch's kv_num_blocks, kv_indices, full_kv_num_blocks and full_kv_indices: %1")
                                     .arg(exactBytesText(size.denseBytes))));
    }
    facts_->setRows(std::move(facts), {});
    std::vector<FactRow> rows;
    blockSizes_.clear();
    double most = 0;
    for (const MaskBlockSize& size : shown.blockSizes) {
        most = std::max(most, size.computedShare);
    }
    for (const MaskBlockSize& size : shown.blockSizes) {
        FactRow row;
        row.name = QString::number(size.block);
        const bool own = map != nullptr && size.block == map->shape().queryBlock;
        row.strong = own;
        row.share = most > 0 ? size.computedShare / most : 0;
        row.fill = own ? FactFill::Full : FactFill::Neutral;
        row.values = {{sparsityText(size.computedShare), TextColor::Text1},
                      {size.metadata == 0 ? tr("none") : bytesText(size.metadata), TextColor::Text3}};
        row.tip = tr("Blocks of %1: %2 of them are computed, %3 of those are full. Click to look at the mask in them.")
                      .arg(QString::number(size.block), sparsityText(size.computedShare), sparsityText(size.fullShare));
        rows.push_back(std::move(row));
        blockSizes_.push_back(size.block);
    }
    sizes_.head->setVisible(!rows.empty());
    blocks_->setVisible(!rows.empty());
    blocks_->setRows(std::move(rows), {62, 68}, 34);
    reserveReasons(shown);
    setTimes(lab, side);
    setAgainst(lab, side);
}

void MaskInspector::reserveReasons(const MaskLab::Side& shown) {
    if (shown.mapStudy == reserved_) {
        return;
    }
    reserved_ = shown.mapStudy;
    const MaskReasons any =
        reserved_ ? maskReasons(reserved_->mask.get(), reserved_->score.get(), {0, 0, 0}, 0) : MaskReasons();
    const int rows = static_cast<int>(any.reasons.size()) + (any.score.isEmpty() ? 0 : 1);
    pointedBox_->setFixedHeight(std::max(kLeastPointed, rows * FactRows::kRow));
}

void MaskInspector::setReasons(const std::optional<MaskReasons>& reasons) {
    std::vector<FactRow> rows;
    if (reasons) {
        for (const MaskReason& reason : reasons->reasons) {
            FactRow row;
            row.name = reason.text;
            row.mono = true;
            row.mark = reason.holds;
            row.values = {{reason.values, reason.decides ? TextColor::Text1 : TextColor::Text2}};
            row.tip = tr("%1: %2%3").arg(reason.text, reason.values, reason.decides ? tr(", decides") : QString());
            rows.push_back(std::move(row));
        }
        if (!reasons->score.isEmpty()) {
            rows.push_back(plainRow(tr("score of 0"), reasons->score));
        }
    }
    pointed_.fact->setText(!reasons ? QString() : reasons->allowed ? tr("allowed") : tr("blocked"));
    reasons_->setVisible(!rows.empty());
    pointedHint_->setVisible(rows.empty());
    pointedHint_->setText(reasons ? tr("Nothing blocks an element: there is no mask.")
                                  : tr("Point at an element, or move the cell with the arrow keys."));
    reasons_->setRows(std::move(rows), {});
}

void MaskInspector::setMeasuring(const QString& text) {
    measuring_ = text;
    timeHint_->setText(text.isEmpty() ? timeWords_ : text);
    timeHint_->setVisible(!timeHint_->text().isEmpty());
}

void MaskInspector::fillTimes(const Section& section, const std::optional<MaskDirectionTimes>& times,
                              const MaskPlan* plan, const MaskPlan::Direction& planned,
                              std::optional<double> sparsity) {
    std::vector<FactRow> rows;
    const double longest = times ? std::max({times->measured, times->full.value_or(0), times->predicted.value_or(0)})
                           : plan != nullptr ? std::max(planned.full, planned.masked)
                                             : 0;
    const auto bar = [&](const QString& name, double milliseconds, FactFill fill) {
        FactRow row;
        row.name = name;
        row.muted = true;
        row.share = longest > 0 ? milliseconds / longest : 0;
        row.fill = fill;
        row.values = {{millisecondsText(milliseconds), TextColor::Text1}};
        rows.push_back(std::move(row));
    };
    if (times) {
        if (times->full) {
            bar(tr("no mask"), *times->full, FactFill::Neutral);
        }
        if (times->predicted) {
            bar(tr("predicted"), *times->predicted, FactFill::Partial);
        }
        bar(tr("measured"), times->measured, FactFill::Full);
        rows.push_back(gainRow(*times, sparsity.value_or(0)));
        if (plan != nullptr) { // another device: not on the scale of the bars
            rows.push_back(plainRow(
                tr("%1, predicted").arg(plan->device), millisecondsText(planned.masked),
                tr("By the plan of the kernel in bfloat16, %1 without the mask").arg(millisecondsText(planned.full))));
        }
    } else if (plan != nullptr) {
        bar(tr("no mask"), planned.full, FactFill::Neutral);
        bar(tr("predicted"), planned.masked, FactFill::Partial);
    }
    section.rows->setVisible(!rows.empty());
    section.rows->setRows(std::move(rows), {84}, 76);
}

void MaskInspector::setTimes(const MaskLab& lab, int side) {
    const MaskLab::Side& shown = lab.side(side);
    // Times of another program or other sizes would stand beside numbers that they do not belong to.
    const bool stale = shown.timesStale(lab.sizes());
    const std::optional<MaskTimes> times = stale ? std::nullopt : shown.times;
    const bool planShown = shown.plan && (!times || times->cpu);
    const MaskPlan* plan = planShown ? &*shown.plan : nullptr;
    const QString where = times ? times->where() : plan != nullptr ? tr("%1, predicted").arg(plan->device) : QString();
    const QString tip = times || plan == nullptr
                            ? where
                            : tr("%1: by the plan of the kernel in bfloat16, not measured").arg(plan->device);
    forward_.fact->setText(where);
    forward_.fact->setToolTip(tip);
    const std::optional<double> sparsity = times ? times->sparsity : std::nullopt;
    fillTimes(forward_, times ? times->forward : std::nullopt, plan,
              plan != nullptr ? plan->forward : MaskPlan::Direction(), sparsity);
    const bool backward = times ? times->backward.has_value() : plan != nullptr;
    fillTimes(backward_, times ? times->backward : std::nullopt, backward ? plan : nullptr,
              plan != nullptr ? plan->backward : MaskPlan::Direction(), sparsity);
    backward_.head->setVisible(backward);
    timeWords_ = times   ? QString()
                 : stale ? tr("The program or the sizes were changed since it was measured. Measure it again.")
                         : tr("Measure times forward and backward with the mask and without, and keeps the run.");
    QStringList notes;
    if (times) {
        const MaskSizes& was = times->sizes;
        const MaskSizes& now = lab.sizes();
        if (was.queries != now.queries || was.keys != now.keys || was.heads != now.heads || was.batch != now.batch) {
            notes << tr("Measured on %1 × %2 with %3: %4 of blocks empty there.")
                         .arg(countText(was.queries), countText(was.keys),
                              was.heads == 1 ? tr("1 head") : tr("%1 heads").arg(was.heads),
                              shareText(times->sparsity.value_or(0)));
        }
        if (times->estimated) {
            notes << tr("Estimated on Meta, not measured.");
        }
    }
    timeNote_->setText(notes.join(QLatin1Char(' ')));
    timeNote_->setVisible(!notes.isEmpty());
    setMeasuring(measuring_);
}

void MaskInspector::setAgainst(const MaskLab& lab, int side) {
    const MaskLab::Side& mine = lab.side(side);
    const MaskLab::Side& other = lab.side(1 - side);
    const bool both = mine.map && other.map;
    other_.head->setVisible(both);
    against_->setVisible(both);
    if (!both) {
        return;
    }
    other_.title->setText(tr("Against %1, %2").arg(sideName(1 - side), other.mapStudy->title()));
    other_.fact->setText(side == 0 ? tr("A to B") : tr("B to A"));
    std::vector<FactRow> rows;
    // Masks that all heads share are computed for each of them.
    const auto planes = [](const MaskLab::Side& one) { return one.map->shape().heads * one.map->shape().batch; };
    const std::int64_t most = std::max(planes(mine), planes(other));
    const auto blocks = [&](const MaskLab::Side& one) {
        return (one.map->blocks->full + one.map->blocks->partial) * (most / planes(one));
    };
    rows.push_back(againstRow(tr("Computed blocks"), countText(blocks(mine)), countText(blocks(other)),
                              deltaOf(static_cast<double>(blocks(mine)), static_cast<double>(blocks(other)))));
    if (mine.density && other.density) {
        rows.push_back(againstRow(tr("Density"), sparsityText(*mine.density), sparsityText(*other.density),
                                  deltaOf(*mine.density, *other.density)));
    }
    const auto time = [&](const QString& name, std::optional<MaskDirectionTimes> MaskTimes::* which) {
        const MaskTimes *ours = mine.timesOf(lab.sizes()), *theirs = other.timesOf(lab.sizes());
        if (ours != nullptr && theirs != nullptr && (*ours).*which && (*theirs).*which) {
            const double a = ((*ours).*which)->measured, b = ((*theirs).*which)->measured;
            rows.push_back(againstRow(name, millisecondsText(a), millisecondsText(b), deltaOf(a, b)));
        }
    };
    time(tr("Forward"), &MaskTimes::forward);
    time(tr("Backward"), &MaskTimes::backward);
    const std::uint64_t mineBytes = blockSizeOf(*mine.map).metadata, otherBytes = blockSizeOf(*other.map).metadata;
    const auto bytes = [](std::uint64_t count) { return count == 0 ? tr("none") : bytesText(count); };
    rows.push_back(againstRow(tr("Metadata"), bytes(mineBytes), bytes(otherBytes),
                              deltaOf(static_cast<double>(mineBytes), static_cast<double>(otherBytes))));
    against_->setRows(std::move(rows), {56, 62, 60});
}

QString MaskInspector::asText() const {
    QString text = QStringLiteral("- %1: %2\n- %3: %4\n- %5: %6\n")
                       .arg(numbers_[0]->accessibleName(), number(0), numbers_[1]->accessibleName(), number(1),
                            numbers_[2]->accessibleName(), number(2));
    text += facts_->asText();
    for (const Section* section : {&pointed_, &forward_, &backward_, &sizes_, &other_}) {
        if (section->rows->isVisibleTo(this)) {
            text += QStringLiteral("\n%1 %2\n\n").arg(section->title->text(), section->fact->text()) +
                    section->rows->asText();
        }
    }
    return text;
}

} // namespace vitrine::ui
