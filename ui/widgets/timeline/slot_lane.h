// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Lanes of a batch: slots x steps, and a row for each request. A click chooses a request, which is framed in every lane
// that shows it; the pointer and the keyboard say what lies under them.

#include <optional>
#include <vector>

#include "ui/widgets/timeline/lane.h"
#include "ui/widgets/timeline/slot_painter.h"

class QScrollBar;

namespace vitrine::ui {

/// What is common: the map, the chosen request and who points at what.
class BatchLane : public Lane {
    Q_OBJECT

public:
    using Lane::Lane;

    virtual void setMap(BatchMapPtr map);
    const BatchMapPtr& map() const { return map_; }
    /// The framed request; -1: none.
    virtual void setChosen(std::int32_t request);
    std::int32_t chosen() const { return chosen_; }
    QString spoken() const override;
    /// Words about what lies at a place of the lane; empty: nothing.
    virtual QString wordsAt(QPointF position) const = 0;
    virtual std::int32_t requestAt(QPointF position) const = 0; ///< -1: none

signals:
    void requestChosen(qint32 request); ///< -1: let go
    void pointed(const QString& words); ///< empty: nothing

protected:
    void choose(std::int32_t request);
    void clickedAt(QPointF position, Qt::KeyboardModifiers modifiers) override;
    void hoveredAt(std::optional<QPointF> position) override;
    bool event(QEvent* event) override;
    /// A rectangle of the plot in a frame of 2 px.
    void paintFrame(QPainter& painter, const QRectF& box) const;

private:
    BatchMapPtr map_;
    std::int32_t chosen_ = -1;
};

class SlotLane final : public BatchLane {
    Q_OBJECT

public:
    SlotLane(const QString& title, TimeCursor* time, QWidget* parent);

    void setMap(BatchMapPtr map) override;
    void setGain(std::optional<SlotGain> gain);
    /// Few slots take no more than tall rows need, or whatever height there is.
    void setFills(bool fills);
    std::int32_t slot() const { return slot_; } ///< of the keyboard
    QString wordsAt(QPointF position) const override;
    std::int32_t requestAt(QPointF position) const override;
    QString spoken() const override;
    /// To the next or previous stretch of the keyboard's slot.
    bool step(int direction) override;
    /// The rectangle of a span on the lane.
    std::optional<QRectF> spanRect(std::size_t span) const;
    /// Frames of the chosen request: its stretches in a slot that touch stand in one. Costs what is seen, not what is
    /// there.
    std::vector<QRectF> chosenFrames() const;

signals:
    void slotChosen(qint32 slot); ///< by a click or the keyboard

protected:
    QImage paint(const PlotFrame& frame) override;
    void paintOver(QPainter& painter, const PlotFrame& frame) override;
    void clickedAt(QPointF position, Qt::KeyboardModifiers modifiers) override;
    void doubleClickedAt(QPointF position) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void fitHeight();
    SlotRows rows() const;
    std::optional<std::size_t> spanAt(QPointF position) const;
    QString spanText(std::size_t span) const;
    std::optional<SlotGain> gain_;
    bool fills_ = false;
    std::int32_t slot_ = 0;
    std::optional<std::size_t> span_; ///< of the keyboard
};

class RequestLane final : public BatchLane {
    Q_OBJECT

public:
    RequestLane(const QString& title, TimeCursor* time, QWidget* parent);

    void setMap(BatchMapPtr map) override;
    void setChosen(std::int32_t request) override;
    /// Rows for these requests only (ascending), `none` where there are none; nothing: for all of them.
    void setOnly(std::optional<std::vector<std::int32_t>> requests, const QString& none = {});
    const std::optional<std::vector<std::int32_t>>& only() const { return only_; }
    int first() const; ///< the topmost row
    void setFirst(int row);
    int visibleRows() const;
    int rowCount() const;
    /// Scrolls to where most of these requests (ascending) have their rows, while all have one.
    void reveal(const std::vector<std::int32_t>& requests);
    bool clicking() const { return clicking_; } ///< a click moves the cursor: rows must stay under the pointer
    QString wordsAt(QPointF position) const override;
    std::int32_t requestAt(QPointF position) const override;
    bool step(int direction) override;

signals:
    void scrolled(int first);

protected:
    QImage paint(const PlotFrame& frame) override;
    void paintOver(QPainter& painter, const PlotFrame& frame) override;
    void clickedAt(QPointF position, Qt::KeyboardModifiers modifiers) override;
    void resizeEvent(QResizeEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    double pitch() const;
    std::int32_t requestOf(int row) const; ///< -1: none
    int rowOf(std::int32_t request) const; ///< -1: it has none
    void fitBar();
    QScrollBar* bar_;
    std::optional<std::vector<std::int32_t>> only_;
    QString none_;
    bool clicking_ = false;
};

} // namespace vitrine::ui
