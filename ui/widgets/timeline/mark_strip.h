// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rows of marks on an axis, 16 px each: squares and diamonds, filled, outlined or in accent, with words beside the ones
// that need them.

#include <QString>
#include <vector>

#include "ui/widgets/timeline/time_strip.h"

namespace vitrine::ui {

struct StripMark {
    enum class Shape : std::uint8_t { Square, Diamond };
    enum class Look : std::uint8_t { Filled, Outline, Accent };
    base::TimeNs place = 0;
    Shape shape = Shape::Square;
    Look look = Look::Filled;
    QString label; ///< beside it, where there is room
    QString tip;
};

struct MarkRow {
    QString title;
    std::vector<StripMark> marks; ///< by place
};

class MarkStrip final : public TimeStrip {
    Q_OBJECT

public:
    MarkStrip(const QString& title, TimeCursor* time, QWidget* parent);
    void setRows(std::vector<MarkRow> rows);
    const std::vector<MarkRow>& rows() const { return rows_; }
    /// Dotted lines, as in the lanes below.
    void setRules(std::vector<base::TimeNs> places);
    QString spoken() const override;

signals:
    void markClicked(int row, int mark);

protected:
    void paintEvent(QPaintEvent* event) override;
    void clickedAt(QPointF position, Qt::KeyboardModifiers modifiers) override;
    bool event(QEvent* event) override;

private:
    struct Hit {
        int row = -1, mark = -1;
    };
    Hit hitAt(QPointF position) const;
    void paintRow(QPainter& painter, const MarkRow& row, double top);

    std::vector<MarkRow> rows_;
    std::vector<base::TimeNs> rules_;
};

} // namespace vitrine::ui
