// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The pages of a pool at an instant, with their owners, over lanes of what the pool held: the lanes' cursor moves the
// map. A click on a page chooses its request for all views (RequestChoice); its pages stand in frames.

#include <QTimer>
#include <QWidget>

#include "ui/models/common/time_cursor.h"
#include "ui/models/kv_cache/kv_pool.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

class CurveLane;
class LaneStack;
class LegendStrip;
class PageMap;

/// Fills of pages: those of requests in turn, that of pages kept for a prefix, and last that of padding, which no
/// request has.
std::vector<CategoryStyle> kvPoolStyles(const ThemeTokens& t);

class KvPoolView final : public QWidget {
    Q_OBJECT

public:
    KvPoolView(TimeCursor* time, QWidget* parent);

    /// `live`: without a cursor the newest instant is shown, else the fullest one.
    void setPool(KvPoolPtr pool, bool live);
    bool live() const { return live_; } ///< the run goes on
    base::TimeNs moment() const;
    /// To the next or previous change of a page.
    bool step(int direction);
    /// Moves the cursor through the visible range by itself.
    void setPlaying(bool on);
    bool playing() const { return player_.isActive(); }
    PageMap* map() const { return map_; }
    LaneStack* lanes() const { return lanes_; }
    QList<QWidget*> focusStops() const;

signals:
    void momentChanged();
    void playingChanged(bool on);
    void readoutChanged(const QString& text);

protected:
    void showEvent(QShowEvent* event) override;

private:
    void showMoment();
    void choosePage(int item);
    void updateLanes();
    void play();

    TimeCursor* time_;
    KvPoolPtr pool_;
    bool live_ = false, stale_ = true;
    std::vector<std::vector<KvPoolPanel>> shown_; ///< by group, at moment()
    LegendStrip* legend_;
    PageMap* map_;
    LaneStack* lanes_;
    CurveLane *pressure_, *waste_;
    QTimer player_;
};

} // namespace vitrine::ui
