// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/lane_stack.h"

#include <QPainter>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "profiler/timeline/gap_facet.h"
#include "profiler/timeline/run_timeline.h"

namespace vitrine::ui {

LaneStack::LaneStack(TimeCursor* time, int strips, QWidget* parent) : QWidget(parent), time_(time) {
    column_ = new QVBoxLayout(this);
    column_->setContentsMargins(0, 0, 0, 0);
    column_->setSpacing(0);
    if (strips & WithMinimap) {
        minimap_ = new Minimap(time, this);
        column_->addWidget(minimap_);
    }
    if (strips & WithRuler) {
        ruler_ = new Ruler(time, this);
        connect(ruler_, &Ruler::noteWanted, this, &LaneStack::noteWanted);
        column_->addWidget(ruler_);
        adopt(ruler_);
    }
    if (strips & WithBands) {
        bands_ = new BandStrip(time, this);
        column_->addWidget(bands_);
        adopt(bands_);
    }
    if (strips & WithLegend) {
        legend_ = new Legend(this);
        column_->addWidget(legend_);
    }
    connect(time, &TimeCursor::rangeChanged, this, &LaneStack::updateAxis);
}

void LaneStack::adopt(TimeStrip* strip) {
    strips_.push_back(strip);
    connect(strip, &TimeStrip::hoverChanged, this, &LaneStack::hovered);
    connect(strip, &TimeStrip::menuWanted, this, &LaneStack::menuWanted);
    connect(strip, &TimeStrip::laneWanted, this, [this, strip](int direction) {
        std::vector<TimeStrip*> stops;
        std::copy_if(strips_.begin(), strips_.end(), std::back_inserter(stops),
                     [](const TimeStrip* s) { return s->focusPolicy() != Qt::NoFocus && s->isVisible(); });
        const auto at = std::find(stops.begin(), stops.end(), strip) - stops.begin() + direction;
        if (at >= 0 && at < static_cast<std::ptrdiff_t>(stops.size())) {
            stops[static_cast<std::size_t>(at)]->setFocus(Qt::TabFocusReason);
        }
    });
    strip->setAxis(axis_);
}

void LaneStack::setTimeline(TimelinePtr timeline) {
    timeline_ = std::move(timeline);
    if (minimap_ != nullptr) {
        minimap_->setSource(timeline_);
    }
    if (bands_ != nullptr) {
        std::vector<BandRow> rows;
        if (timeline_) {
            rows = {stepBands(timeline_), phaseBands(timeline_)};
        }
        bands_->setRows(std::move(rows));
    }
    for (Lane* lane : lanes_) {
        lane->setGaps(gaps());
    }
    updateAxis();
}

std::vector<base::GapEvent> LaneStack::gaps() const {
    if (!timeline_) {
        return {};
    }
    return {timeline_->gaps().all().begin(), timeline_->gaps().all().end()};
}

void LaneStack::setAxisKind(AxisKind kind) {
    kind_ = kind;
    updateAxis();
}

void LaneStack::setEventTimes(std::shared_ptr<const std::vector<base::TimeNs>> times) {
    eventTimes_ = std::move(times);
    updateAxis();
}

void LaneStack::setMarks(const std::vector<TimeMark>& marks) {
    if (minimap_ != nullptr) {
        minimap_->setMarks(marks);
    }
    if (ruler_ != nullptr) {
        std::vector<TimeMark> tagged;
        std::copy_if(marks.begin(), marks.end(), std::back_inserter(tagged),
                     [](const TimeMark& mark) { return mark.kind != TimeMark::Kind::Find; });
        ruler_->setMarks(std::move(tagged));
    }
}

void LaneStack::nextTimeUnit() {
    unit_ = (unit_ + 1) % 4;
    for (TimeStrip* strip : strips_) {
        if (auto* ruler = qobject_cast<Ruler*>(strip)) {
            ruler->setUnit(unit_);
        }
    }
}

void LaneStack::setPacked() {
    packed_ = true;
    column_->addStretch(0); // lanes that stretch come first
}

void LaneStack::addLane(Lane* lane, const Lane* before) {
    const auto at = std::find(lanes_.begin(), lanes_.end(), before);
    const int row = at == lanes_.end() ? column_->count() - (packed_ ? 1 : 0) : column_->indexOf(*at);
    lanes_.insert(at, lane);
    column_->insertWidget(row, lane, lane->stretch());
    adopt(lane);
    lane->setGaps(gaps());
    if (before != nullptr) {
        std::rotate(std::find(strips_.begin(), strips_.end(), before), strips_.end() - 1, strips_.end());
    }
    connect(lane, &Lane::collapsedChanged, this, [this, lane] { column_->setStretchFactor(lane, lane->stretch()); });
    connect(lane, &Lane::pinnedChanged, this, &LaneStack::placeLanes);
}

void LaneStack::addStrip(TimeStrip* strip, bool above) {
    column_->insertWidget(above ? 0 : column_->count() - (packed_ ? 1 : 0), strip);
    adopt(strip);
}

Ruler* LaneStack::addRuler() {
    auto* ruler = new Ruler(time_, this);
    column_->insertWidget(column_->count() - (packed_ ? 1 : 0), ruler);
    adopt(ruler);
    if (ruler_ == nullptr) {
        ruler_ = ruler;
    }
    return ruler;
}

void LaneStack::placeLanes() {
    // Pinned lanes come first, each part in its own order.
    std::vector<Lane*> order = lanes_;
    std::stable_partition(order.begin(), order.end(), [](const Lane* lane) { return lane->pinned(); });
    int first = column_->count();
    for (const Lane* lane : lanes_) {
        first = std::min(first, column_->indexOf(const_cast<Lane*>(lane)));
    }
    for (Lane* lane : lanes_) {
        column_->removeWidget(lane);
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
        column_->insertWidget(first + static_cast<int>(i), order[i], order[i]->stretch());
    }
}

Lane* LaneStack::focusedLane() const {
    for (Lane* lane : lanes_) {
        if (lane->hasFocus()) {
            return lane;
        }
    }
    return nullptr;
}

bool LaneStack::perform(const QString& action) {
    Lane* lane = focusedLane();
    if (action == QLatin1String("view.time-unit")) {
        nextTimeUnit();
    } else if (action == QLatin1String("lane.pin") && lane != nullptr) {
        lane->setPinned(!lane->pinned());
    } else if (action == QLatin1String("lane.collapse") && lane != nullptr) {
        lane->setCollapsed(!lane->collapsed());
    } else {
        return false;
    }
    return true;
}

QString LaneStack::whyNot(const QString& action) const {
    const bool about = action == QLatin1String("lane.pin") || action == QLatin1String("lane.collapse");
    return about && focusedLane() == nullptr ? tr("Focus a lane first") : QString();
}

QList<QWidget*> LaneStack::focusStops() const {
    QList<QWidget*> stops;
    if (bands_ != nullptr) {
        stops << bands_;
    }
    if (legend_ != nullptr) {
        stops << legend_;
    }
    for (Lane* lane : lanes_) {
        if (lane->isVisibleTo(this)) {
            stops << lane;
        }
    }
    return stops;
}

void LaneStack::setLow(bool low) {
    if (low_ == low) {
        return;
    }
    low_ = low;
    if (minimap_ != nullptr) {
        minimap_->setFixedHeight(low ? 24 : 40);
    }
    if (!low) {
        for (Lane* lane : std::exchange(foldedByLow_, {})) {
            lane->setCollapsed(false);
        }
        return;
    }
    for (std::size_t i = keptOpen_; i < lanes_.size(); ++i) {
        if (!lanes_[i]->collapsed()) {
            lanes_[i]->setCollapsed(true);
            foldedByLow_.push_back(lanes_[i]);
        }
    }
}

void LaneStack::updateAxis() {
    const double width = std::max(1.0, this->width() - (strips_.empty() ? kGutter : strips_.front()->gutter()));
    const TimeRange range = time_->range();
    if (kind_ == AxisKind::Time) {
        axis_ = AxisMap::ofTime(range, width);
    } else if (eventTimes_) {
        axis_ = AxisMap::ofTimes(*eventTimes_, range, width);
    } else {
        axis_ = timeline_ ? AxisMap::ofEvents(*timeline_, range, width) : AxisMap::ofTime(range, width);
    }
    for (TimeStrip* strip : strips_) {
        strip->setAxis(axis_);
    }
    emit axisChanged();
}

void LaneStack::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    setLow(window()->height() < 760);
    updateAxis();
}

void LaneStack::paintEvent(QPaintEvent*) {
    QPainter(this).fillRect(rect(), themeTokens().canvas);
}

} // namespace vitrine::ui
