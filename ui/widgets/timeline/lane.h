// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A lane: a header of 23 px that collapses and pins it, and a plot whose picture is cached until its data, its axis,
// its size or the theme change.

#include <QHBoxLayout>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/trace.h"
#include "ui/widgets/base/controls.h"
#include "ui/widgets/timeline/time_strip.h"

namespace vitrine::ui {

class Lane : public TimeStrip {
    Q_OBJECT

public:
    static constexpr int kHeaderHeight = 23;

    Lane(const QString& title, TimeCursor* time, QWidget* parent);

    void setHeader(bool visible);
    bool hasHeader() const { return header_ != nullptr && !headerHidden_; }
    void setFacts(const QString& facts, TextColor color = TextColor::Text2);
    QString facts() const;
    void addHeaderControl(QWidget* control);
    /// The same at the right of the facts.
    void addHeaderEnd(QWidget* control);
    /// The letter of run A or B before a strong title; null: none.
    void setBadge(QChar letter);

    bool collapsed() const { return collapsed_; }
    void setCollapsed(bool collapsed);
    /// Folds the lane while it has nothing to show. Only a change does something: a lane that the user opened stays
    /// open.
    void foldWhileEmpty(bool empty);
    bool pinned() const { return pinned_; }
    void setPinned(bool pinned);
    /// Height of the plot: fixed when `stretch` is 0, else its share of what is left, at least `height`.
    void setPlotHeight(int height, int stretch);
    /// No taller than this, where it stretches: more would show nothing more.
    void setMostPlotHeight(int height);
    int stretch() const { return collapsed_ ? 0 : stretch_; }

    void setAxis(const AxisMap& axis) override;
    /// Where records of the run were lost: hatched over the plot.
    void setGaps(std::vector<base::GapEvent> gaps);
    void invalidate();
    /// Only what lies right of a place is painted anew, for values that came at the end. Lanes that cannot do that
    /// paint all of it.
    void invalidateFrom(base::TimeNs place);
    /// Frames painted so far and the time of the last one, for the frame budget.
    int pictures() const { return pictures_; }
    double lastPictureMs() const { return lastPictureMs_; }
    /// Columns of pixels that all of them had together.
    std::int64_t paintedColumns() const { return paintedColumns_; }
    PlotFrame frame() const;
    /// The plot's picture of now at any ratio.
    QImage picture(double dpr);

    /// Goes to the next or previous thing in the lane; false: there is none.
    virtual bool step(int direction);

signals:
    void collapsedChanged();
    void pinnedChanged();

protected:
    virtual QImage paint(const PlotFrame& frame) = 0;
    /// Replaces what lies right of x in a picture that paint() made before. False: it cannot, and nothing was changed.
    virtual bool paintFrom(QImage& picture, const PlotFrame& frame, double x);
    virtual void paintOver(QPainter& painter, const PlotFrame& frame);
    QRectF plotRect() const override;
    int headerHeight() const { return hasHeader() ? kHeaderHeight : 0; }
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    class Header;
    void updateHeights();
    void updatePicture(const PlotFrame& frame);
    QImage paintWithGaps(const PlotFrame& frame);

    Header* header_ = nullptr;
    bool headerHidden_ = false;
    bool collapsed_ = false, pinned_ = false, empty_ = false;
    int plotHeight_ = 96, stretch_ = 1, mostPlotHeight_ = QWIDGETSIZE_MAX / 2;
    std::vector<base::GapEvent> gaps_;
    QImage cache_;
    bool dirty_ = true;
    std::optional<base::TimeNs> dirtyFrom_; ///< of a picture that is right up to there
    int pictures_ = 0;
    std::int64_t paintedColumns_ = 0;
    double lastPictureMs_ = 0;
};

} // namespace vitrine::ui
