// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rows of the table of formats: the letters of A and B stand before the names.

#include "ui/widgets/plots/fact_table.h"

namespace vitrine::ui {

class FormatDelegate final : public FactDelegate {
    Q_OBJECT

public:
    using FactDelegate::FactDelegate;
    void setFormats(int a, int b) { a_ = a, b_ = b; } ///< rows
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;

private:
    int a_ = -1, b_ = -1;
};

} // namespace vitrine::ui
