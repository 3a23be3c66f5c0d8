// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/planner/change_list.h"

#include <QGridLayout>
#include <QPushButton>
#include <QVBoxLayout>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/models/planner/plan_words.h"
#include "ui/widgets/base/controls.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

constexpr int kChangeRow = 40;

/// "12.40 spare", "3.41 over": in GiB, which the head says.
QString spareText(const engine::PlanPrice& price) {
    const QString bytes = gibText(static_cast<std::uint64_t>(std::abs(price.spare())));
    return (price.fits ? ChangeList::tr("%1 spare") : ChangeList::tr("%1 over")).arg(bytes);
}

} // namespace

ChangeList::ChangeList(QWidget* parent) : QWidget(parent) {
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Maximum);
    grid_ = new QGridLayout(this);
    grid_->setContentsMargins(12, 0, 12, 4);
    grid_->setHorizontalSpacing(8);
    grid_->setVerticalSpacing(0);
    grid_->setColumnStretch(1, 1);
}

void ChangeList::clear() {
    while (QLayoutItem* item = grid_->takeAt(0)) {
        if (item->widget() != nullptr) {
            item->widget()->deleteLater(); // the button that was pressed may be among them
            item->widget()->hide();
        }
        delete item;
    }
    buttons_.clear();
    text_.clear();
}

void ChangeList::addRow(int row, const engine::PlanChange& change, const engine::Experiment& experiment,
                        const engine::PlanPrice& before) {
    const bool fits = change.price.fits;
    auto* mark = new TextLabel(fits ? QStringLiteral("\u2713") : QStringLiteral("\u2715"), TypeRole::Table,
                               fits ? TextColor::Good : TextColor::Bad, true, this);
    mark->setAccessibleName(fits ? tr("fits") : tr("does not fit"));
    auto* words = new QWidget(this);
    auto* lines = new QVBoxLayout(words);
    lines->setContentsMargins(0, 4, 0, 4);
    lines->setSpacing(0);
    const QString name = changeName(change, experiment);
    auto* title = new TextLabel(name, TypeRole::Table, TextColor::Text1, false, words);
    auto* why = new TextLabel(changeReason(change), TypeRole::Axis, TextColor::Text3, false, words);
    title->setElide(true);
    title->setToolTip(name);
    why->setElide(true);
    lines->addWidget(title);
    lines->addWidget(why);
    words->setMinimumHeight(kChangeRow);
    auto* bytes =
        new TextLabel(spareText(change.price), TypeRole::Table, fits ? TextColor::Good : TextColor::Bad, false, this);
    bytes->setToolTip(tr("%1 of %2").arg(exactBytesText(change.price.reserved), exactBytesText(change.price.budget)));
    auto* time = new TextLabel(stepChangeText(change.price.seconds, before.seconds), TypeRole::Table, TextColor::Text2,
                               false, this);
    bytes->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    time->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    grid_->addWidget(mark, row + 1, 0);
    grid_->addWidget(words, row + 1, 1);
    grid_->addWidget(bytes, row + 1, 2);
    grid_->addWidget(time, row + 1, 3);
    QPushButton* button = nullptr;
    if (fits) {
        button = new QPushButton(tr("Try"), this);
        button->setAccessibleName(tr("Try: %1").arg(name));
        setControlHeight(button, 22);
        grid_->addWidget(button, row + 1, 4);
        connect(button, &QPushButton::clicked, this, [this, row] { emit tried(row); });
    }
    buttons_.push_back(button);
    text_ += tr("%1: %2, step %3").arg(name, spareText(change.price), time->text()) + QLatin1Char('\n');
}

void ChangeList::setChanges(const std::vector<engine::PlanChange>& changes, const engine::Experiment& experiment,
                            const engine::PlanPrice& before) {
    clear();
    const QString heads[] = {{}, tr("Change"), tr("GiB"), tr("Step")};
    for (int column = 1; column < 4; ++column) {
        auto* head = new TextLabel(heads[column], TypeRole::Axis, TextColor::Text3, false, this);
        head->setFixedHeight(24);
        head->setAlignment((column == 1 ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
        grid_->addWidget(head, 0, column);
    }
    int row = 0;
    for (const engine::PlanChange& change : changes) {
        addRow(row++, change, experiment, before);
    }
}

QPushButton* ChangeList::tryButton(int row) const {
    return row >= 0 && row < static_cast<int>(buttons_.size()) ? buttons_[static_cast<std::size_t>(row)] : nullptr;
}

QString ChangeList::asText() const {
    return text_;
}

} // namespace vitrine::ui
