// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A small table for inspectors: a head of 24 px with the badges of A and B, and rows of 24 px that never scroll. It
// shows a FlatTree; cells with DeltaRole get the arrow's colour.

#include <QStyledItemDelegate>
#include <QTableView>
#include <QWidget>
#include <vector>

#include "ui/models/common/flat_tree.h"

namespace vitrine::ui {

class FactTable final : public QWidget {
    Q_OBJECT

public:
    explicit FactTable(const QString& accessibleName, QWidget* parent = nullptr);

    /// Head texts come from the columns' titles, and without any there is no head; `badges` gives letters by column, '
    /// ' for none ("  AB"[column]).
    void setTable(FlatTreePtr table, const QString& badges = {});
    void setRowHeight(int pixels);
    /// Width of the columns after the first, which takes the rest.
    void setNumberWidth(int pixels);
    /// The same for each column after the first.
    void setNumberWidths(std::vector<int> pixels);
    FlatTreeModel* model() const { return model_; }
    QTableView* view() const { return view_; }
    QString asText() const; ///< Markdown table

protected:
    void resizeEvent(QResizeEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    class Head;
    void fit();
    int widthOf(int column) const;   ///< of a column after the first
    int widthFrom(int column) const; ///< of this one and those after it
    FlatTreeModel* model_;
    Head* head_;
    QTableView* view_;
    QString badges_;
    int rowHeight_ = 24;
    int numberWidth_ = 78;
    std::vector<int> numberWidths_; ///< empty: all have numberWidth_
};

/// Cells of fact tables and of table twins: theme colours, right-aligned numbers, deltas with their colour. In fact
/// tables the swatch of a row's category stands before its name.
class FactDelegate : public QStyledItemDelegate {
    Q_OBJECT

public:
    using QStyledItemDelegate::QStyledItemDelegate;
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

/// The look of a table twin: rows of 24, whole rows selected, sortable head, Ctrl+C copies as tab-separated raw values.
void setUpTwin(QTableView* view, FlatTreeModel* model, const QString& accessibleName);

} // namespace vitrine::ui
