// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/precision/keep_panel.h"

#include <QCheckBox>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/models/common/format.h"
#include "ui/models/precision/group_columns.h"
#include "ui/models/precision/number_ticks.h"
#include "ui/widgets/base/controls.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

constexpr int kKeepRow = 24;
constexpr double kKibibyte = 1 << 10, kMebibyte = 1 << 20, kMillinats = 1000;
constexpr std::uint64_t kSmallModel = 256 << 20; ///< below it parts are told apart in KiB

TextLabel* rightLabel(const QString& text, TypeRole role, TextColor color, bool strong, QWidget* parent) {
    auto* label = new TextLabel(text, role, color, strong, parent);
    label->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    return label;
}

} // namespace

KeepPanel::KeepPanel(QWidget* parent) : QWidget(parent) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    auto* list = new QWidget(this);
    grid_ = new QGridLayout(list);
    grid_->setContentsMargins(12, 0, 12, 0);
    grid_->setHorizontalSpacing(12);
    grid_->setVerticalSpacing(0);
    grid_->setColumnStretch(0, 1);
    column->addWidget(list);
    auto* sum = new Surface(Surface::Fill::Panel, Surface::Top, this);
    sum->setFixedHeight(kKeepRow + 2);
    auto* sumRow = new QHBoxLayout(sum);
    sumRow->setContentsMargins(12, 1, 12, 0);
    sumRow->addWidget(new TextLabel(tr("as checked"), TypeRole::Table, TextColor::Text1, true, sum), 1);
    sumBytes_ = rightLabel({}, TypeRole::Table, TextColor::Text1, true, sum);
    sumKl_ = rightLabel({}, TypeRole::Table, TextColor::Text1, true, sum);
    sumKl_->setMinimumWidth(64);
    sumRow->addWidget(sumBytes_);
    sumRow->addWidget(sumKl_);
    column->addWidget(sum);
    auto* buttons = new QHBoxLayout;
    buttons->setContentsMargins(12, 4, 12, 8);
    note_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, this);
    note_->setElide(true);
    measure_ = new QPushButton(tr("Measure"), this);
    convert_ = new QPushButton(tr("Convert"), this);
    setControlHeight(measure_, 24);
    setControlHeight(convert_, 24);
    setPrimary(convert_);
    buttons->addWidget(note_, 1);
    buttons->addWidget(measure_);
    buttons->addWidget(convert_);
    column->addLayout(buttons);
}

void KeepPanel::clear() {
    data_.reset();
    rows_.clear();
    boxes_.clear();
    while (QLayoutItem* item = grid_->takeAt(0)) {
        if (item->widget() != nullptr) {
            item->widget()->hide();
            item->widget()->deleteLater(); // a check box that is being clicked may be among them
        }
        delete item;
    }
}

void KeepPanel::setRows(PrecisionDataPtr shown, std::size_t format) {
    const std::vector<std::string> before = checkedPatterns();
    clear();
    data_ = std::move(shown);
    format_ = format;
    rows_ = keepRows(data_->result, format);
    small_ = data_->result.formats.front().bytes < kSmallModel;
    const QString heads[] = {tr("Tensors"), small_ ? tr("KiB") : tr("MiB"), tr("KL x %1").arg(unitText(-3))};
    for (int column = 0; column < 3; ++column) {
        auto* head = new TextLabel(heads[column], TypeRole::Axis, TextColor::Text3, false, this);
        head->setFixedHeight(kKeepRow);
        head->setAlignment((column == 0 ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
        grid_->addWidget(head, 0, column);
    }
    for (int row = 0; row < static_cast<int>(rows_.size()); ++row) {
        addRow(row);
        if (QCheckBox* own = box(row); own != nullptr) {
            own->setChecked(std::ranges::find(before, rows_[static_cast<std::size_t>(row)].pattern) != before.end());
        }
    }
    updateSum();
}

void KeepPanel::addRow(int row) {
    const KeepRow& keep = rows_[static_cast<std::size_t>(row)];
    auto* check = new QCheckBox(keep.name, this);
    check->setFixedHeight(kKeepRow);
    check->setAccessibleName(tr("Keep in BF16: %1").arg(keep.name));
    check->setChecked(!keep.klSaved);
    check->setEnabled(keep.klSaved.has_value());
    boxes_.push_back(keep.klSaved ? check : nullptr);
    connect(check, &QCheckBox::toggled, this, &KeepPanel::updateSum);
    const double units = static_cast<double>(keep.bytes) / (small_ ? kKibibyte : kMebibyte);
    auto* bytes = rightLabel(keep.klSaved ? signedDecimalText(units, 0) : decimalText(units, 0), TypeRole::Table,
                             keep.klSaved ? TextColor::Text1 : TextColor::Text2, false, this);
    bytes->setToolTip(exactBytesText(keep.bytes));
    const double saved = keep.klSaved.value_or(0) * kMillinats;
    const QString change =
        !keep.klSaved ? tr("in A")
                      : (saved >= 0 ? QStringLiteral("▼ ") : QStringLiteral("▲ ")) + signedDecimalText(-saved, 2);
    auto* kl = rightLabel(change, TypeRole::Table,
                          !keep.klSaved ? TextColor::Text3
                          : saved >= 0  ? TextColor::Good
                                        : TextColor::Bad,
                          false, this);
    grid_->addWidget(check, row + 1, 0);
    grid_->addWidget(bytes, row + 1, 1);
    grid_->addWidget(kl, row + 1, 2);
}

QCheckBox* KeepPanel::box(int row) const {
    return row >= 0 && row < static_cast<int>(boxes_.size()) ? boxes_[static_cast<std::size_t>(row)] : nullptr;
}

std::vector<bool> KeepPanel::checked() const {
    std::vector<bool> on;
    on.reserve(boxes_.size());
    for (const QCheckBox* own : boxes_) {
        on.push_back(own != nullptr && own->isChecked());
    }
    return on;
}

std::vector<std::string> KeepPanel::checkedPatterns() const {
    std::vector<std::string> patterns;
    for (std::size_t i = 0; i < boxes_.size(); ++i) {
        if (boxes_[i] != nullptr && boxes_[i]->isChecked() && !rows_[i].pattern.empty()) {
            patterns.push_back(rows_[i].pattern);
        }
    }
    return patterns;
}

void KeepPanel::updateSum() {
    if (!data_ || boxes_.size() != rows_.size()) {
        return; // rows are being made
    }
    const KeepSum sum = keepSum(data_->result, format_, rows_, checked());
    sumBytes_->setText(bytesText(sum.bytes));
    const bool effects = std::ranges::any_of(rows_, [](const KeepRow& row) { return row.klSaved.has_value(); });
    QString rate;
    if (sum.rate) {
        rate = sum.change && *sum.change != 0
                   ? tr("decode %1 tok/s, %2 %").arg(decimalText(*sum.rate, 0), signedDecimalText(*sum.change * 100, 1))
                   : tr("decode %1 tok/s").arg(decimalText(*sum.rate, 0));
    }
    note_->setText(effects ? rate : tr("single effects: not measured"));
    note_->setToolTip(effects && sum.rate ? tr("As planned for the device of the run") : QString());
    sumKl_->setText(sum.kl ? decimalText(*sum.kl * kMillinats, 2) : unknownText());
    // A sum of single effects is a guess until the set was measured as a whole.
    sumKl_->setColor(checkedPatterns().empty() ? TextColor::Text1 : TextColor::Text2);
}

QString KeepPanel::sumText() const {
    return sumBytes_->text() + QStringLiteral(", ") + sumKl_->text();
}

} // namespace vitrine::ui
