// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Paints the rows of the queue: icons of states, progress with the course of the loss, the peak against the budget, two
// lines where a run needs them, and the buttons of a run that does not fit.

#include <QStyledItemDelegate>
#include <cstdint>

namespace vitrine::ui {

struct QueueRow;

class QueueDelegate final : public QStyledItemDelegate {
    Q_OBJECT

public:
    using QStyledItemDelegate::QStyledItemDelegate;

    /// In a narrow page rows have one line and no course of the loss.
    void setNarrow(bool narrow) { narrow_ = narrow; }
    int rowHeight(const QueueRow& row) const;
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    bool editorEvent(QEvent* event, QAbstractItemModel* model, const QStyleOptionViewItem& option,
                     const QModelIndex& index) override;

signals:
    void nearestWanted(qint64 number);
    void whyWanted(qint64 number);
    void foldWanted(int row);

private:
    void paintFold(QPainter& painter, const QStyleOptionViewItem& option, const QueueRow& row) const;
    void paintState(QPainter& painter, const QRectF& rect, const QueueRow& row) const;
    void paintProgress(QPainter& painter, const QRectF& rect, const QueueRow& row) const;
    void paintPeak(QPainter& painter, const QRectF& rect, const QueueRow& row) const;
    /// Where the buttons of a row lie, in the columns from Peak to Left.
    QRectF nearestButton(const QRectF& rect, const QueueRow& row) const;
    QRectF whyButton(const QRectF& rect, const QueueRow& row) const;

    bool narrow_ = false;
};

} // namespace vitrine::ui
