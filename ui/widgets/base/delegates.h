// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Delegates for tables and trees over FlatTreeModel: swatches, share bars and deltas, and the set-up of such views.

#include <QStyledItemDelegate>

class QTreeView;

namespace vitrine::ui {

class FlatTreeModel;

/// Text in the theme's colours (muted, emphasis), with the category's swatch before it where the node has one and
/// `swatches` is on. Rows are 24 high.
class SwatchDelegate : public QStyledItemDelegate {
    Q_OBJECT

public:
    explicit SwatchDelegate(bool swatches, QObject* parent = nullptr);
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

protected:
    void paintGround(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const;
    void paintText(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index, double left) const;

private:
    bool swatches_;
};

/// A bar of 64x8 in the category's colour for ShareRole; text where there is no share.
class ShareBarDelegate final : public SwatchDelegate {
    Q_OBJECT

public:
    explicit ShareBarDelegate(QObject* parent = nullptr) : SwatchDelegate(false, parent) {}
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

/// "▲ +12.27" in bad, "▼ −16.67" in good, "=" in text3: DeltaRole says which.
class DeltaDelegate final : public SwatchDelegate {
    Q_OBJECT

public:
    explicit DeltaDelegate(QObject* parent = nullptr) : SwatchDelegate(false, parent) {}
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

/// The looks that all tables share: no frame, uniform rows, whole rows selected, 11 px head. `panel` true: on a panel
/// instead of the canvas.
void setUpTable(QTreeView* view, bool tree, bool panel);

/// Ctrl+C copies the selected rows, or all where none are, and a context menu offers both: tab-separated, with a head,
/// raw values and their units.
void setUpCopy(QTreeView* view, FlatTreeModel* model);

} // namespace vitrine::ui
