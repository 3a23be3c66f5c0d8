// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"
#include "ui/models/common/format.h"
#include "ui/models/memory/alive_tree.h"
#include "ui/widgets/timeline/lanes.h"

namespace vitrine::ui {

namespace {

/// Up to this many allocations a picture is made at once; more are painted on a pool thread.
constexpr std::size_t kPaintAtOnce = 60'000;
constexpr int kProgressMs = 300; ///< what takes less shows no progress

} // namespace

AllocationLane::AllocationLane(const QString& title, TimeCursor* time, QWidget* parent)
    : Lane(title, time, parent), job_(this) {
    setPlotHeight(96, 262);
    connect(time, &TimeCursor::selectionChanged, this, QOverload<>::of(&QWidget::update));
    stacking_.setInterval(kProgressMs);
    connect(&stacking_, &QTimer::timeout, this, [this] {
        if (!job_.busy() || byAddress_ || !timeline_) {
            stacking_.stop();
        } else if (timeline_->memory().stackedPart() < 1) {
            setFacts(tr("Stacking the blocks of %1 events, %2 %")
                         .arg(countText(static_cast<qint64>(timeline_->memory().events())))
                         .arg(static_cast<int>(timeline_->memory().stackedPart() * 100)));
        }
    });
}

void AllocationLane::showFacts() {
    setFacts(picture_.small == 0 ? tr("%1 shapes drawn").arg(countText(static_cast<qint64>(picture_.shapes)))
                                 : tr("%1 shapes drawn, %2 too small: shown as hatch")
                                       .arg(countText(static_cast<qint64>(picture_.shapes)),
                                            countText(static_cast<qint64>(picture_.small))));
}

void AllocationLane::setTimeline(TimelinePtr timeline) {
    timeline_ = std::move(timeline);
    pictureValid_ = false;
    invalidate();
}

void AllocationLane::setByAddress(bool byAddress) {
    byAddress_ = byAddress;
    pictureValid_ = false;
    invalidate();
}

void AllocationLane::setBudget(std::optional<std::uint64_t> budget) {
    budget_ = budget;
    pictureValid_ = false;
    invalidate();
}

void AllocationLane::setCategories(std::set<int> only) {
    only_ = std::move(only);
    pictureValid_ = false;
    invalidate();
}

void AllocationLane::setFound(std::vector<std::size_t> rows) {
    found_ = std::move(rows);
    pictureValid_ = false;
    invalidate();
}

void AllocationLane::setOnlyName(std::optional<std::uint32_t> name) {
    onlyName_ = name;
    pictureValid_ = false;
    invalidate();
}

AllocationInput AllocationLane::input(const PlotFrame&) const {
    return {timeline_, axis(), byAddress_, budget_, only_, onlyName_, found_};
}

ByteScale AllocationLane::scale() const {
    return allocationScale(input(frame()), plotRect().height());
}

QImage AllocationLane::paint(const PlotFrame& frame) {
    const AllocationInput in = input(frame);
    if (!timeline_ || timeline_->memory().allocations().size() <= kPaintAtOnce) {
        picture_ = paintAllocations(in, frame, themeTokens());
        pictureAxis_ = axis();
        pictureValid_ = true;
        showFacts();
        QMetaObject::invokeMethod(this, &AllocationLane::pictureChanged, Qt::QueuedConnection);
        return picture_.image;
    }
    const QSize wanted = frame.canvas(Qt::black).size();
    const bool current = pictureValid_ && picture_.image.size() == wanted && pictureAxis_.range() == axis().range() &&
                         pictureAxis_.kind() == axis().kind();
    if (current) {
        return picture_.image;
    }
    job_.start([in, frame, theme = themeTokens()] { return paintAllocations(in, frame, theme); },
               [this, axisThen = axis()](AllocationPicture picture) {
                   picture_ = std::move(picture);
                   pictureAxis_ = axisThen;
                   pictureValid_ = true;
                   stacking_.stop();
                   showFacts();
                   emit pictureChanged();
                   invalidate();
               });
    if (!byAddress_ && !stacking_.isActive()) {
        stacking_.start();
    }
    // Until then the last picture stands in at its new place.
    QImage image = frame.canvas(themeTokens().canvas);
    if (!picture_.image.isNull() && pictureAxis_.range().length() > 0) {
        QPainter painter(&image);
        const QRectF plot = frame.plot();
        const double a = plot.left() + axis().x(pictureAxis_.range().begin),
                     b = plot.left() + axis().x(pictureAxis_.range().end);
        const double dpr = picture_.image.devicePixelRatio();
        painter.drawImage(QRectF(0, 0, gutter(), plot.height()), picture_.image,
                          QRectF(0, 0, gutter() * dpr, picture_.image.height()));
        painter.setClipRect(plot);
        painter.drawImage(QRectF(a, 0, b - a, plot.height()), picture_.image,
                          QRectF(gutter() * dpr, 0, picture_.image.width() - gutter() * dpr, picture_.image.height()));
    }
    return image;
}

void AllocationLane::paintOver(QPainter& painter, const PlotFrame&) {
    const QRectF plot = plotRect();
    if (const std::uint64_t pinned = time()->selection().allocation; pinned != 0 && timeline_) {
        painter.save();
        painter.setClipRect(plot);
        const auto rows = timeline_->memory().allocations();
        for (const AllocationHit& hit : picture_.hits) {
            if (rows[hit.row].id == pinned) {
                painter.setPen(QPen(themeTokens().text1, 2));
                painter.setBrush(Qt::NoBrush);
                painter.drawRect(hit.rect.translated(0, headerHeight()).adjusted(1, 1, -1, -1));
            }
        }
        painter.restore();
    }
    paintCursor(painter, plot);
}

const AllocationHit* AllocationLane::hitAt(QPointF position) const {
    const QPointF at = position - QPointF(0, headerHeight());
    for (auto hit = picture_.hits.rbegin(); hit != picture_.hits.rend(); ++hit) {
        if (hit->rect.contains(at)) {
            return &*hit;
        }
    }
    return nullptr;
}

QString AllocationLane::tipOf(const AllocationHit& hit) const {
    const profiler::AllocationRow row = timeline_->memory().allocations()[hit.row];
    if (hit.count > 1) {
        return tr("%1 allocations, too small to draw alone; the largest is %2 of %3")
            .arg(countText(hit.count), shortTensorName(timeline_->text(row.name)), bytesText(row.bytes));
    }
    const base::TimeNs freed = row.freed < 0 ? timeline_->end() : row.freed;
    QStringList lines;
    lines << shortTensorName(timeline_->text(row.name))
          << tr("%1 (%2), %3")
                 .arg(bytesText(row.bytes), exactBytesText(row.bytes), textOf(base::categoryName(row.category)));
    if (const QString tensor = tensorText(*timeline_, row); !tensor.isEmpty()) {
        lines << tensor;
    }
    if (const std::string path = timeline_->scopes().path(row.scope); !path.empty()) {
        lines << QString::fromStdString(path);
    }
    lines << tr("%1, from %2").arg(durationText(freed - row.born), instantText(row.born));
    return lines.join(QLatin1Char('\n'));
}

void AllocationLane::clickedAt(QPointF position, Qt::KeyboardModifiers modifiers) {
    Lane::clickedAt(position, modifiers);
    const AllocationHit* hit = hitAt(position);
    time()->select({hit != nullptr ? timeline_->memory().allocations()[hit->row].id : 0, 0});
}

void AllocationLane::doubleClickedAt(QPointF position) {
    if (const AllocationHit* hit = hitAt(position)) {
        const profiler::AllocationRow row = timeline_->memory().allocations()[hit->row];
        const base::TimeNs freed = row.freed < 0 ? timeline_->end() : row.freed;
        const base::TimeNs air = std::max<base::TimeNs>(1, (freed - row.born) / 10);
        time()->setRange({row.born - air, freed + air});
    }
}

void AllocationLane::hoveredAt(std::optional<QPointF> position) {
    const AllocationHit* hit = position ? hitAt(*position) : nullptr;
    emit pointed(hit != nullptr ? static_cast<qint64>(hit->row) : -1);
}

bool AllocationLane::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        if (const AllocationHit* hit = hitAt(help->pos())) {
            QToolTip::showText(help->globalPos(), tipOf(*hit), this);
        } else {
            QToolTip::hideText();
        }
        return true;
    }
    return Lane::event(event);
}

bool AllocationLane::step(int direction) {
    if (!timeline_ || timeline_->memory().allocations().empty()) {
        return false;
    }
    const auto rows = timeline_->memory().allocations();
    const std::uint64_t pinned = time()->selection().allocation;
    std::ptrdiff_t at = -1;
    if (pinned != 0) {
        const auto found = timeline_->memory().findAllocation(pinned);
        at = found ? static_cast<std::ptrdiff_t>(*found) + direction : -1;
    } else {
        const base::TimeNs from = time()->cursor().value_or(time()->range().begin);
        at = std::ranges::lower_bound(rows, from, {}, [](const profiler::AllocationRow& row) { return row.born; }) -
             rows.begin() - (direction < 0 ? 1 : 0);
    }
    if (at < 0 || at >= static_cast<std::ptrdiff_t>(rows.size())) {
        return false;
    }
    time()->select({rows[static_cast<std::size_t>(at)].id, 0});
    time()->goTo(rows[static_cast<std::size_t>(at)].born);
    return true;
}

QString AllocationLane::spoken() const {
    if (timeline_ && time()->selection().allocation != 0) {
        const auto rows = timeline_->memory().allocations();
        for (const AllocationHit& hit : picture_.hits) {
            if (rows[hit.row].id == time()->selection().allocation) {
                return tipOf(hit).replace(QLatin1Char('\n'), QStringLiteral(", "));
            }
        }
    }
    return facts();
}

} // namespace vitrine::ui
