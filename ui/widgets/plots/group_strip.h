// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The errors of all groups of a matrix, of which each pixel column shows many: their median, the band from 5 to 95 %,
// and the largest as a dot. The group that is looked at has a frame.

#include <memory>
#include <vector>

#include "ui/models/common/latest_job.h"
#include "ui/models/precision/group_columns.h"
#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

class GroupStrip final : public ItemPlot {
    Q_OBJECT

public:
    GroupStrip(const QString& title, QWidget* parent);
    /// RMS errors of the groups in their order; null: nothing is known. Columns are made on a worker thread.
    void setGroups(GroupErrorsPtr groups);
    void setChosen(std::int64_t group); ///< -1: none

    bool settled() const { return !job_.busy(); }
    const std::vector<GroupColumn>& columns() const { return columns_; }
    QImage picture(const QSizeF& size, double dpr) const override;
    QString spoken() const override;
    QSize sizeHint() const override { return {410, 138}; }
    QSize minimumSizeHint() const override { return {220, 110}; }

signals:
    void groupChosen(qint64 group); ///< the largest one of a column that was clicked

protected:
    int itemCount() const override { return static_cast<int>(columns_.size()); }
    int itemAt(QPointF position) const override;
    int itemBeside(int item, int key) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void makeColumns();
    static QRectF plotOf(const QSizeF& size);
    double top() const; ///< of the scale
    void paintColumns(QPainter& painter, const QRectF& plot) const;
    void paintChosen(QPainter& painter, const QRectF& plot) const;

    GroupErrorsPtr groups_;
    std::int64_t chosen_ = -1;
    std::vector<GroupColumn> columns_;
    int power_ = 0; ///< errors are shown in units of 10^power
    double largest_ = 0;
    LatestJob<std::vector<GroupColumn>> job_;
};

} // namespace vitrine::ui
