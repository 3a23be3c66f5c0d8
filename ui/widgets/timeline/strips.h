// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The strips above the lanes: minimap, ruler, bands of steps and phases, and the legend at the cursor.

#include <functional>

#include "ui/models/session/session_document.h"
#include "ui/widgets/timeline/stack_painter.h"
#include "ui/widgets/timeline/time_strip.h"

namespace vitrine::ui {

/// A mark on the ruler and the minimap: out of memory, a note, a find.
struct TimeMark {
    /// Cursor and Now are filled tags of the ruler: where the cursor stands, where a run is.
    enum class Kind : std::uint8_t { Failure, Note, Find, Loss, Cursor, Now };
    base::TimeNs time = 0;
    Kind kind = Kind::Note;
    QString text;
    base::TimeNs end = 0;  ///< of a note about a stretch; not above `time`: an instant
    std::int64_t note = 0; ///< its number in the session
};

/// Everything at once, with the visible range as a frame that can be dragged by its middle and its grips.
class Minimap final : public QWidget {
    Q_OBJECT

public:
    Minimap(TimeCursor* time, QWidget* parent);
    /// The whole run; `columns` gives the stack for a number of device pixels.
    void setSource(TimelinePtr timeline);
    void setMarks(std::vector<TimeMark> marks);
    /// What stands there on an axis that is not the time of a run: `paint` draws into the plot (logical pixels), `span`
    /// is written at the left.
    void setPicture(std::function<void(QPainter&, const QRectF&)> paint, const QString& span);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    enum class Grip : std::uint8_t { None, Begin, End, Middle };
    double xOf(base::TimeNs time) const;
    base::TimeNs timeAt(double x) const;
    Grip gripAt(double x) const;
    TimeCursor* time_;
    void fillCache(const QRectF& plot, double dpr);
    QString spanText() const;
    TimelinePtr timeline_;
    std::function<void(QPainter&, const QRectF&)> picture_;
    QString span_;
    std::vector<TimeMark> marks_;
    QImage cache_;
    Grip grip_ = Grip::None;
    double pressedX_ = 0;
    TimeRange pressedRange_;
};

/// Ticks and times; the measured range is a band with grips; marks have tags.
class Ruler final : public TimeStrip {
    Q_OBJECT

public:
    Ruler(TimeCursor* time, QWidget* parent);
    void setMarks(std::vector<TimeMark> marks);
    void setUnit(int unit); ///< 0 by size, 1 s, 2 ms, 3 µs
    /// Counts things that are each as long as `length`, "0  200  400 steps"; 0: time.
    void setCounted(base::TimeNs length, const QString& what = {});
    void setLead(const QString& lead); ///< stands in the gutter

signals:
    void noteWanted(qint64 note); ///< its tag was double-clicked

protected:
    void paintEvent(QPaintEvent* event) override;
    void doubleClickedAt(QPointF position) override;

private:
    void paintTags(QPainter& painter);
    /// A number there would lie under an edge of the measured range.
    bool gripCovers(double left, double width) const;
    std::vector<TimeMark> marks_;
    std::vector<std::pair<QRectF, std::int64_t>> noteTags_;
    int unit_ = 0;
    base::TimeNs counted_ = 0;
    QString countedWhat_, lead_;
};

/// Rows of named stretches, 16 px each: Step and Phase.
struct BandRow {
    struct Band {
        TimeRange range;
        QString label;
        quint64 scope = 0;
    };
    QString title;
    std::vector<Band> bands; ///< by begin
    TimelinePtr timeline;    ///< says what bands without a label are called
    bool withTokens = false; ///< in those labels

    QString label(const Band& band) const;
};

class BandStrip final : public TimeStrip {
    Q_OBJECT

public:
    BandStrip(TimeCursor* time, QWidget* parent);
    void setRows(std::vector<BandRow> rows);
    const std::vector<BandRow>& rows() const { return rows_; }
    QString spoken() const override;

protected:
    void paintEvent(QPaintEvent* event) override;
    void clickedAt(QPointF position, Qt::KeyboardModifiers modifiers) override;
    void doubleClickedAt(QPointF position) override;

private:
    const BandRow::Band* bandAt(QPointF position) const;
    std::vector<BandRow> rows_;
};

/// Swatches with the values at the cursor. Click isolates, Ctrl+click toggles, double-click shows all.
class Legend final : public QWidget {
    Q_OBJECT

public:
    struct Item {
        int layer = 0;
        QString name;
        CategoryStyle style;
        std::uint64_t bytes = 0;
        bool present = true; ///< false: nothing of it in the range; drawn only when there is room
    };

    explicit Legend(QWidget* parent);
    void setItems(const QString& lead, std::vector<Item> items, std::uint64_t total, std::uint64_t unit);
    const std::set<int>& only() const { return only_; }
    void setOnly(std::set<int> only);
    QSize sizeHint() const override { return {400, 24}; }

signals:
    void onlyChanged();

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;

private:
    void pick(int layer, bool toggle);
    struct Place {
        QRectF rect;
        int layer;
    };
    QString lead_;
    std::vector<Item> items_;
    std::uint64_t total_ = 0, unit_ = 1;
    std::set<int> only_;
    std::vector<Place> places_;
    int focused_ = 0;
};

/// The steps of a timeline, and its phases; labels are made when they are painted.
BandRow stepBands(const TimelinePtr& timeline);
BandRow phaseBands(const TimelinePtr& timeline);

} // namespace vitrine::ui
