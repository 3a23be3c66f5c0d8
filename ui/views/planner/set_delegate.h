// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Cells of the table of sets: the first one has the square with the set's number before its name, and where the peak
// is looks like what can be clicked.

#include "ui/widgets/plots/fact_table.h"

namespace vitrine::ui {

class SetDelegate final : public FactDelegate {
    Q_OBJECT

public:
    using FactDelegate::FactDelegate;
    void setChosen(int row) { chosen_ = row; }
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;

private:
    int chosen_ = 0;
};

} // namespace vitrine::ui
