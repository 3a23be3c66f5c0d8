// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Lanes under one ruler: it makes the axis when the range, the size or the kind of axis changes and hands it to all.

#include <memory>
#include <vector>

#include "ui/widgets/timeline/lane.h"
#include "ui/widgets/timeline/strips.h"

class QVBoxLayout;

namespace vitrine::ui {

class LaneStack final : public QWidget {
    Q_OBJECT

public:
    enum Strip : std::uint8_t {
        NoStrips = 0,
        WithMinimap = 1,
        WithRuler = 2,
        WithBands = 4,
        WithLegend = 8,
        AllStrips = 15
    };

    LaneStack(TimeCursor* time, int strips, QWidget* parent);

    /// The timeline that minimap, bands and the axis of events need; lanes get theirs from their owner.
    void setTimeline(TimelinePtr timeline);
    void setAxisKind(AxisKind kind);
    AxisKind axisKind() const { return kind_; }
    const AxisMap& axis() const { return axis_; }
    void setMarks(const std::vector<TimeMark>& marks);
    void nextTimeUnit();

    /// At the end, or before another lane.
    void addLane(Lane* lane, const Lane* before = nullptr);
    /// A ruler at the bottom, for stacks whose lanes are compared (Load).
    Ruler* addRuler();
    /// A strip of another kind, above or below the strips that are there; before the first lane.
    void addStrip(TimeStrip* strip, bool above);
    const std::vector<Lane*>& lanes() const { return lanes_; }
    Legend* legend() const { return legend_; }
    BandStrip* bands() const { return bands_; }
    Minimap* minimap() const { return minimap_; }
    Ruler* ruler() const { return ruler_; }
    Lane* focusedLane() const;
    QList<QWidget*> focusStops() const;
    /// Does a command of the ActionList that is about lanes; false: not about them.
    bool perform(const QString& action);
    /// Why such a command cannot be done now; empty: it can, or it is none of them.
    QString whyNot(const QString& action) const;
    /// Low windows: a minimap of 24 px and all lanes but the first ones collapsed.
    void setLow(bool low);
    /// Lanes of fixed height stand close under each other, with what is left below them. Before the first lane.
    void setPacked();
    /// How many lanes low windows leave open.
    void setKeptOpen(std::size_t lanes) { keptOpen_ = lanes; }
    /// Instants that take equal room on the axis of events, by time; without them those of the timeline do.
    void setEventTimes(std::shared_ptr<const std::vector<base::TimeNs>> times);

signals:
    void noteWanted(qint64 note);
    void hovered(); ///< the pointer moved over some strip
    void menuWanted(const QPoint& position, qint64 time);
    void axisChanged();

protected:
    void resizeEvent(QResizeEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    void updateAxis();
    std::vector<base::GapEvent> gaps() const;
    void adopt(TimeStrip* strip);
    void placeLanes();

    TimeCursor* time_;
    TimelinePtr timeline_;
    AxisKind kind_ = AxisKind::Time;
    AxisMap axis_;
    int unit_ = 0;
    QVBoxLayout* column_;
    Minimap* minimap_ = nullptr;
    Ruler* ruler_ = nullptr;
    BandStrip* bands_ = nullptr;
    Legend* legend_ = nullptr;
    std::vector<Lane*> lanes_;
    std::vector<TimeStrip*> strips_;
    bool low_ = false, packed_ = false;
    std::size_t keptOpen_ = 1;
    std::vector<Lane*> foldedByLow_; ///< unfolded again when there is more height
    std::shared_ptr<const std::vector<base::TimeNs>> eventTimes_;
};

} // namespace vitrine::ui
