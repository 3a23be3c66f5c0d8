// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Small pictures in cells of comparisons: a change as a bar about zero, and repeats of two runs over their noise.

#include "ui/widgets/plots/fact_table.h"

namespace vitrine::ui {

/// The text of a change and, where its cell is wide enough, a bar at its right: ShareRole from -1 to 1 about zero, in
/// the category's colour.
class DeltaBarDelegate final : public FactDelegate {
    Q_OBJECT

public:
    /// `hollow`: bars below zero are outlines, in tables whose rows have no colour.
    explicit DeltaBarDelegate(QObject* parent = nullptr, bool hollow = false) : FactDelegate(parent), hollow_(hollow) {}
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;

private:
    bool hollow_;
};

/// The seven numbers of MarksRole on the row's own scale: smallest, last and largest of the repeats of A and of B, and
/// the half width of the noise. The band around A's last is hatched; A is a dot with its span above, B a square below.
/// Text where there are none.
class NoiseDelegate final : public FactDelegate {
    Q_OBJECT

public:
    static constexpr int kWidth = 132; ///< px of a cell that shows the picture

    using FactDelegate::FactDelegate;
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

} // namespace vitrine::ui
