// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Copies between device and host on the axis of the lanes above: a row for each direction, with words in its free part.

#include <array>
#include <vector>

#include "ui/widgets/timeline/lane.h"

namespace vitrine::ui {

struct LaneCopy {
    TimeRange range;
    bool toHost = false;
    base::TimeNs waited = 0; ///< above 0: framed, with this time beside it
    QString label;           ///< beside it, where there is room
};

class CopyLane final : public Lane {
    Q_OBJECT

public:
    static constexpr int kPlotHeight = 42;

    CopyLane(const QString& title, TimeCursor* time, QWidget* parent);
    /// `words` are of both directions, to the host first: they stand where no copy is in sight.
    void setCopies(std::vector<LaneCopy> copies, std::array<QString, 2> words);
    const std::vector<LaneCopy>& copies() const { return copies_; }
    QString spoken() const override;

protected:
    QImage paint(const PlotFrame& frame) override;

private:
    struct Shown { ///< a copy in sight, px
        double begin = 0, end = 0;
        const LaneCopy* copy = nullptr;
    };
    void paintRow(QPainter& painter, const PlotFrame& frame, bool toHost, double top) const;
    /// True where at least one label has room.
    bool paintLabels(QPainter& painter, const QRectF& plot, const std::vector<Shown>& shown, double top) const;
    static void paintWords(QPainter& painter, const QRectF& plot, const std::vector<Shown>& shown, const QString& words,
                           double top);
    std::vector<LaneCopy> copies_; ///< by begin
    std::array<QString, 2> words_;
};

} // namespace vitrine::ui
