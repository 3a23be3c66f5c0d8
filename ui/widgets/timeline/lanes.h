// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The kinds of lanes: stacked areas, allocations as shapes, curves, and rows of spans.

#include <QTimer>

#include "profiler/timeline/timeline_rows.h"
#include "ui/models/common/latest_job.h"
#include "ui/models/session/session_document.h"
#include "ui/widgets/timeline/allocation_painter.h"
#include "ui/widgets/timeline/lane.h"
#include "ui/widgets/timeline/stack_forecast.h"
#include "ui/widgets/timeline/stack_painter.h"

namespace vitrine::profiler {
class RunTimeline;
} // namespace vitrine::profiler

namespace vitrine::ui {

class StackLane final : public Lane {
    Q_OBJECT

public:
    StackLane(const QString& title, TimeCursor* time, QWidget* parent);

    void setTimeline(TimelinePtr timeline);
    void setGroupBy(profiler::GroupBy groupBy);
    void setOnly(std::set<int> layers);
    void setBudget(std::optional<std::uint64_t> budget);
    void setReserved(bool shown);
    /// Lays the total of a plan over the areas, matched by phase; null: none.
    void setPlan(TimelinePtr plan);
    void setGuides(std::vector<base::TimeNs> guides);
    void setMarks(bool peakAndFailures); ///< the triangle, the ghost of a failed request
    /// What the triangle is called where "Peak" could be read as another number of the page.
    void setPeakName(const QString& name);
    /// What a plan says of all of it, over the areas; nothing: no plan.
    void setForecast(std::optional<StackForecast> forecast);
    const std::optional<StackForecast>& forecast() const { return forecast_; }
    /// The scale follows the areas, and a budget far above them stands behind a break of the axis.
    void setBreak(bool on);
    bool broken() const; ///< there is a break now
    /// One scale for several lanes; 0: its own.
    void setTop(std::uint64_t bytes);
    /// A model that was not made from a timeline (parts of a load); null: by the timeline again.
    void setModel(std::function<StackModelPtr(const AxisMap&, int columns)> make);
    const StackModelPtr& model() const { return model_; }
    bool waiting() const { return job_.busy() || planJob_.busy(); }
    ByteScale scale() const;
    QString spoken() const override;
    /// Bytes of every layer at an instant, in the order of the layers; by category from the timeline, else from the
    /// model.
    std::vector<std::uint64_t> valuesAt(base::TimeNs time) const;
    std::uint64_t totalAt(base::TimeNs time) const;

signals:
    void modelChanged();

protected:
    QImage paint(const PlotFrame& frame) override;
    void paintOver(QPainter& painter, const PlotFrame& frame) override;
    void doubleClickedAt(QPointF position) override;

private:
    StackInput input(const PlotFrame& frame);
    bool budgetIsFar() const;                           ///< above the break, or above a plot that is too low for one
    PlotFrame stackFrame(const PlotFrame& frame) const; ///< the part under the break
    TimelinePtr timeline_;
    profiler::GroupBy groupBy_ = profiler::GroupBy::Category;
    std::set<int> only_;
    std::optional<std::uint64_t> budget_;
    bool reserved_ = false, marks_ = true;
    QString peakName_;
    std::vector<base::TimeNs> guides_;
    std::uint64_t top_ = 0;
    std::optional<StackForecast> forecast_;
    bool breaks_ = false;
    std::optional<profiler::MemoryColumn> peak_;
    std::function<StackModelPtr(const AxisMap&, int)> make_;
    StackModelPtr model_;   ///< what was painted last
    StackModelPtr grouped_; ///< result of the job for groupedFor_
    AxisMap groupedAxis_;
    int groupedColumns_ = 0;
    LatestJob<StackModelPtr> job_;

    using PlanColumns = std::vector<std::optional<std::uint64_t>>;
    const PlanColumns& planColumns(int columns);
    TimelinePtr plan_;
    std::uint64_t planPeak_ = 0;
    PlanColumns planColumns_;
    AxisMap planAxis_;
    int planCount_ = 0;
    LatestJob<PlanColumns> planJob_;
};

class AllocationLane final : public Lane {
    Q_OBJECT

public:
    AllocationLane(const QString& title, TimeCursor* time, QWidget* parent);

    void setTimeline(TimelinePtr timeline);
    void setByAddress(bool byAddress);
    bool byAddress() const { return byAddress_; }
    void setBudget(std::optional<std::uint64_t> budget);
    void setCategories(std::set<int> only);
    void setFound(std::vector<std::size_t> rows);
    /// Only this allocation and those of its name; 0 shows all.
    void setOnlyName(std::optional<std::uint32_t> name);
    bool waiting() const { return job_.busy(); }
    const AllocationPicture& drawn() const { return picture_; }
    QString spoken() const override;
    bool step(int direction) override;
    ByteScale scale() const;

signals:
    void pointed(qint64 row); ///< under the pointer, -1: none
    void pictureChanged();

protected:
    QImage paint(const PlotFrame& frame) override;
    void paintOver(QPainter& painter, const PlotFrame& frame) override;
    void clickedAt(QPointF position, Qt::KeyboardModifiers modifiers) override;
    void hoveredAt(std::optional<QPointF> position) override;
    void doubleClickedAt(QPointF position) override;
    bool event(QEvent* event) override;

private:
    AllocationInput input(const PlotFrame& frame) const;
    const AllocationHit* hitAt(QPointF position) const;
    QString tipOf(const AllocationHit& hit) const;
    TimelinePtr timeline_;
    bool byAddress_ = true;
    std::optional<std::uint64_t> budget_;
    std::set<int> only_;
    std::vector<std::size_t> found_;
    std::optional<std::uint32_t> onlyName_;
    void showFacts();
    AllocationPicture picture_;
    AxisMap pictureAxis_;
    bool pictureValid_ = false;
    LatestJob<AllocationPicture> job_;
    QTimer stacking_; ///< while another thread places the blocks of the Stack layout
};

/// One or more curves over one scale of plain numbers or bytes.
struct Curve {
    QString name;
    std::function<std::vector<std::optional<double>>(const AxisMap&, int columns)>
        values; ///< the lowest of each column
    std::function<QColor(const ThemeTokens&)> color;
    bool dashed = false;
};

class CurveLane final : public Lane {
    Q_OBJECT

public:
    CurveLane(const QString& title, TimeCursor* time, QWidget* parent);
    void setCurves(std::vector<Curve> curves, double top, bool bytes);
    /// What stands at the top of a scale of plain numbers: "5 TB/s"; empty: the number. `middle` stands with a line at
    /// half of it where there is room.
    void setTopText(const QString& text, const QString& middle = {});
    void setFailures(std::vector<base::TimeNs> times);
    QString spoken() const override;

protected:
    QImage paint(const PlotFrame& frame) override;

private:
    std::vector<Curve> curves_;
    double top_ = 1;
    bool bytes_ = true;
    QString topText_, middleText_;
    std::vector<base::TimeNs> failures_;
};

/// Rows of named spans: stages of a load, kernels on streams.
struct SpanRow {
    struct Span {
        TimeRange range;
        QString label;
        quint64 scope = 0;
    };
    QString title;
    std::vector<Span> spans; ///< by begin
};

QImage paintSpans(const std::vector<SpanRow>& rows, const AxisMap& axis, int rowHeight, const PlotFrame& frame,
                  const ThemeTokens& theme);

class SpanLane final : public Lane {
    Q_OBJECT

public:
    SpanLane(const QString& title, TimeCursor* time, QWidget* parent);
    void setRows(std::vector<SpanRow> rows, int rowHeight = 19);
    QString spoken() const override;

protected:
    QImage paint(const PlotFrame& frame) override;

private:
    std::vector<SpanRow> rows_;
    int rowHeight_ = 19;
};

} // namespace vitrine::ui
