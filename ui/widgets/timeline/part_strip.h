// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rows of what something consists of, 16 px each: phases, layers, parts of layers. Neighbours have two tones, so that
// narrow ones are told apart by their width; a name is drawn where it fits. A click on a part is reported.

#include <vector>

#include "ui/widgets/timeline/time_strip.h"

namespace vitrine::ui {

struct StripPart {
    TimeRange range;
    QString label;       ///< empty: none
    QString shortLabel;  ///< where the label has no room
    bool dark = false;   ///< the second tone
    bool ahead = false;  ///< where its label has no room, it stands before the part with an arrow
    QString tip;         ///< also what a screen reader says
    QString fullLabel{}; ///< in place of the label where it fits too
};

struct PartRow {
    QString title;
    std::vector<StripPart> parts; ///< by begin
    /// Words that stand once over several parts, in their middle.
    std::vector<std::pair<TimeRange, QString>> captions;
    bool strong = false; ///< labels in text1
};

class PartStrip final : public TimeStrip {
    Q_OBJECT

public:
    PartStrip(const QString& title, TimeCursor* time, QWidget* parent);
    void setRows(std::vector<PartRow> rows);
    const std::vector<PartRow>& rows() const { return rows_; }
    QString spoken() const override;

signals:
    void partClicked(int row, int part);

protected:
    void paintEvent(QPaintEvent* event) override;
    void clickedAt(QPointF position, Qt::KeyboardModifiers modifiers) override;
    bool event(QEvent* event) override;

private:
    struct Hit {
        int row = -1, part = -1;
    };
    Hit hitAt(QPointF position) const;
    void paintRow(QPainter& painter, const PartRow& row, double top);

    std::vector<PartRow> rows_;
};

} // namespace vitrine::ui
