// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/strips.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

constexpr int kBandHeight = 16;

std::vector<BandRow::Band> bandsOf(const profiler::RunTimeline& timeline,
                                   const profiler::LazyRows<profiler::ScopeRow>& scopes) {
    std::vector<BandRow::Band> bands;
    bands.reserve(scopes.size());
    for (const profiler::ScopeRow scope : scopes) {
        bands.push_back({{scope.begin, scope.end < 0 ? timeline.end() : scope.end}, {}, scope.id});
    }
    return bands;
}

} // namespace

Ruler::Ruler(TimeCursor* time, QWidget* parent) : TimeStrip(tr("Time ruler"), time, parent) {
    setFixedHeight(21);
    setFocusPolicy(Qt::NoFocus);
}

void Ruler::setMarks(std::vector<TimeMark> marks) {
    marks_ = std::move(marks);
    update();
}

void Ruler::setUnit(int unit) {
    unit_ = unit;
    update();
}

void Ruler::setCounted(base::TimeNs length, const QString& what) {
    counted_ = length;
    countedWhat_ = what;
    update();
}

void Ruler::setLead(const QString& lead) {
    lead_ = lead;
    update();
}

void Ruler::doubleClickedAt(QPointF position) {
    for (const auto& [box, note] : noteTags_) {
        if (box.contains(position)) {
            emit noteWanted(note);
            return;
        }
    }
    time()->fitAll();
}

bool Ruler::gripCovers(double left, double width) const {
    const auto covers = [&](base::TimeNs edge) { return xOf(edge) + 3 > left && xOf(edge) - 3 < left + width; };
    return time()->measured() && (covers(time()->measured()->begin) || covers(time()->measured()->end));
}

void Ruler::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    QPainter painter(this);
    painter.fillRect(rect(), t.panel);
    hairline(painter, 0, width(), height() - 1, t.line0);
    drawText(painter, QRectF(8, 0, gutter() - 10, height() - 1), Qt::AlignVCenter, lead_, t.text3, font);
    painter.setClipRect(plotRect());
    const TimeRange range = axis().range();
    if (range.length() > 0) {
        const TimeGrid grid = timeGrid(range, axis().width());
        static constexpr base::TimeNs kUnits[] = {0, 1'000'000'000, 10'000'000, 10'000};
        const base::TimeNs shown = unit_ == 0 ? grid.step : std::min(grid.step, kUnits[unit_]);
        double lastRight = 0;
        const base::TimeNs minor = std::max<base::TimeNs>(1, grid.step / grid.minor);
        for (base::TimeNs tick = (range.begin / minor) * minor; tick <= range.end; tick += minor) {
            const double x = xOf(tick);
            const bool major = tick % grid.step == 0;
            plumbline(painter, x, height() - (major ? 8 : 4), height() - 1, major ? t.line2 : t.line1);
            if (major && x + 4 > lastRight) {
                if (counted_ > 0 && tick % counted_ != 0) {
                    continue;
                }
                const QString text = counted_ > 0
                                         ? (countText(tick / counted_) + QLatin1Char(' ') + countedWhat_).trimmed()
                                         : instantText(tick, shown);
                const double wide = textWidth(text, font);
                const bool covered = std::ranges::any_of(marks_, [&](const TimeMark& mark) {
                    const bool filled = mark.kind == TimeMark::Kind::Now || mark.kind == TimeMark::Kind::Cursor;
                    const double half = filled ? textWidth(mark.text, font) / 2 + 8 : 0;
                    return xOf(mark.time) + half > x + 4 && xOf(mark.time) - half < x + 4 + wide && filled;
                });
                if (covered || gripCovers(x + 4, wide) || x + 6 + wide > width()) {
                    continue; // half a number says another one
                }
                drawText(painter, QRectF(x + 4, 0, wide + 2, 16), Qt::AlignVCenter, text, t.text2, font);
                lastRight = x + 4 + wide + 8;
            }
        }
    }
    if (time()->measured()) {
        const double a = xOf(time()->measured()->begin), b = xOf(time()->measured()->end);
        painter.fillRect(QRectF(a, 0, b - a, height() - 1), withAlpha(t.accent, 0.28));
        painter.fillRect(QRectF(a - 2, 5, 4, 10), t.accent);
        painter.fillRect(QRectF(b - 2, 5, 4, 10), t.accent);
    }
    painter.setClipping(false);
    paintTags(painter);
    if (time()->cursor()) {
        plumbline(painter, xOf(*time()->cursor()), height() - 8, height(), t.text1);
    }
}

void Ruler::paintTags(QPainter& painter) {
    const ThemeTokens& t = themeTokens();
    const QFont strong = Theme::instance().font(TypeRole::Axis, true);
    LabelPlaces places;
    noteTags_.clear();
    std::vector<TimeMark> marks = marks_;
    if (const auto mark = time()->mark()) {
        marks.insert(marks.begin(), {mark->begin, TimeMark::Kind::Loss, tr("Mark, Shift+M keeps it"), mark->end, 0});
    }
    for (const TimeMark& mark : marks) {
        const double x = xOf(mark.time);
        if (x < gutter() || x > width() + 1) {
            continue;
        }
        const bool bad = mark.kind == TimeMark::Kind::Failure;
        const bool now = mark.kind == TimeMark::Kind::Now, filled = now || mark.kind == TimeMark::Kind::Cursor;
        const QColor color = bad                                 ? t.bad
                             : mark.kind == TimeMark::Kind::Loss ? t.warn
                             : now                               ? t.accent
                             : filled                            ? t.text1
                                                                 : t.text2;
        plumbline(painter, std::min(x, width() - 1.0), 0, height(), color);
        if (mark.end > mark.time) {
            painter.fillRect(QRectF(x, height() - 4, std::min(xOf(mark.end), static_cast<double>(width())) - x, 3),
                             color);
        }
        if (mark.text.isEmpty()) {
            continue;
        }
        const double w = textWidth(mark.text, strong) + 10;
        const QRectF box(std::clamp(std::round(x - w / 2), gutter(), std::max(gutter(), width() - w - 1)), 1,
                         std::ceil(w), 18);
        if (places.take(box)) {
            painter.setPen(color);
            painter.setBrush(bad                                 ? t.badFill
                             : mark.kind == TimeMark::Kind::Loss ? t.warnFill
                             : filled                            ? color
                                                                 : t.raised);
            painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
            drawText(painter, box, Qt::AlignCenter, mark.text, filled ? t.window : color, strong);
            if (mark.note != 0) {
                noteTags_.emplace_back(box, mark.note);
            }
        }
    }
}

QString BandRow::label(const Band& band) const {
    const profiler::ScopeRow* scope = timeline ? timeline->scopes().find(band.scope) : nullptr;
    if (scope == nullptr) {
        return band.label;
    }
    QString label = textOf(profiler::scopeTitle(*timeline, *scope, withTokens));
    if (withTokens && !label.isEmpty()) {
        label[0] = label[0].toUpper();
    }
    return label;
}

BandRow stepBands(const TimelinePtr& timeline) {
    return {QObject::tr("Step"), bandsOf(*timeline, timeline->scopes().steps()), timeline, true};
}

BandRow phaseBands(const TimelinePtr& timeline) {
    return {QObject::tr("Phase"), bandsOf(*timeline, timeline->scopes().phases()), timeline, false};
}

BandStrip::BandStrip(TimeCursor* time, QWidget* parent) : TimeStrip(tr("Steps and phases"), time, parent) {
    setFixedHeight(2 * kBandHeight + 1);
}

void BandStrip::setRows(std::vector<BandRow> rows) {
    rows_ = std::move(rows);
    setFixedHeight(static_cast<int>(std::max<std::size_t>(1, rows_.size())) * kBandHeight + 1);
    update();
}

QString BandStrip::spoken() const {
    QStringList words;
    if (const auto at = time()->cursor()) {
        for (const BandRow& row : rows_) {
            for (const BandRow::Band& band : row.bands) {
                if (band.range.contains(*at)) {
                    words << row.title + QLatin1Char(' ') + row.label(band);
                }
            }
        }
    }
    return words.join(QStringLiteral(", "));
}

const BandRow::Band* BandStrip::bandAt(QPointF position) const {
    const auto row = static_cast<std::size_t>(std::max(0.0, position.y()) / kBandHeight);
    if (row >= rows_.size()) {
        return nullptr;
    }
    const base::TimeNs at = timeAt(position.x());
    const auto& bands = rows_[row].bands;
    auto next = std::upper_bound(bands.begin(), bands.end(), at,
                                 [](base::TimeNs t, const BandRow::Band& band) { return t < band.range.begin; });
    return next == bands.begin() || !(next - 1)->range.contains(at) ? nullptr : &*(next - 1);
}

void BandStrip::clickedAt(QPointF position, Qt::KeyboardModifiers modifiers) {
    if (const BandRow::Band* band = bandAt(position)) {
        time()->setMeasured(band->range); // a band measures itself
        time()->setCursor(timeAt(position.x()));
    } else {
        TimeStrip::clickedAt(position, modifiers);
    }
}

void BandStrip::doubleClickedAt(QPointF position) {
    if (const BandRow::Band* band = bandAt(position)) {
        time()->setRange(band->range);
    }
}

void BandStrip::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    QPainter painter(this);
    painter.fillRect(rect(), t.canvas);
    hairline(painter, 0, width(), height() - 1, t.line1);
    const QRectF plot = plotRect();
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        const double top = static_cast<double>(r) * kBandHeight;
        drawText(painter, QRectF(8, top, gutter() - 10, kBandHeight), Qt::AlignVCenter, rows_[r].title, t.text3, font);
        const auto& bands = rows_[r].bands;
        const base::TimeNs begin = axis().range().begin;
        auto band = std::lower_bound(bands.begin(), bands.end(), begin,
                                     [](const BandRow::Band& b, base::TimeNs at) { return b.range.end < at; });
        int crowdFrom = -1, crowdTo = -1; // pixels in which bands are narrower than one
        const auto flush = [&] {
            if (crowdFrom >= 0) {
                painter.fillRect(QRectF(crowdFrom, top, std::max(1, crowdTo - crowdFrom), kBandHeight - 1),
                                 freeHatch(t, 6, deviceRatio(painter)));
                crowdFrom = -1;
            }
        };
        for (; band != bands.end() && band->range.begin <= axis().range().end; ++band) {
            const double a = std::max(plot.left(), xOf(band->range.begin)),
                         b = std::min(plot.right(), xOf(band->range.end));
            if (b - a < 2) {
                if (crowdFrom >= 0 && a > crowdTo + 1) {
                    flush();
                }
                crowdFrom = crowdFrom < 0 ? static_cast<int>(a) : crowdFrom;
                crowdTo = static_cast<int>(std::ceil(b));
                continue;
            }
            flush();
            const QRectF box(std::round(a), top, std::max(1.0, std::round(b) - std::round(a) - 1), kBandHeight - 1);
            painter.fillRect(box, r == 0 ? t.pressed : t.hover);
            if (box.width() > 26) {
                const QString label = rows_[r].label(*band);
                const double need = textWidth(label, font) + 10;
                if (box.width() >= need || box.width() > 34) {
                    drawText(painter, box.adjusted(5, 0, -3, 0), Qt::AlignVCenter, label, r == 0 ? t.text1 : t.text2,
                             font);
                }
            }
        }
        flush();
    }
    paintCursor(painter, plot, false);
    paintFocus(painter, rect());
}

Legend::Legend(QWidget* parent) : QWidget(parent) {
    setFixedHeight(24);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(tr("Legend at the cursor"));
    connect(&Theme::instance(), &Theme::changed, this, QOverload<>::of(&QWidget::update));
}

void Legend::setItems(const QString& lead, std::vector<Item> items, std::uint64_t total, std::uint64_t unit) {
    lead_ = lead;
    items_ = std::move(items);
    total_ = total;
    unit_ = std::max<std::uint64_t>(1, unit);
    QStringList spoken;
    for (const Item& item : items_) {
        if (item.bytes > 0) {
            spoken << item.name + QLatin1Char(' ') + bytesText(item.bytes);
        }
    }
    setAccessibleDescription(spoken.join(QStringLiteral(", ")));
    update();
}

void Legend::setOnly(std::set<int> only) {
    if (only_ != only) {
        only_ = std::move(only);
        update();
        emit onlyChanged();
    }
}

void Legend::pick(int layer, bool toggle) {
    std::set<int> next = only_;
    if (!toggle) {
        next = only_ == std::set<int>{layer} ? std::set<int>{} : std::set<int>{layer};
    } else {
        if (next.empty()) {
            for (const Item& item : items_) {
                next.insert(item.layer);
            }
        }
        next.contains(layer) ? (void)next.erase(layer) : (void)next.insert(layer);
        if (next.size() == items_.size()) {
            next.clear();
        }
    }
    setOnly(std::move(next));
}

void Legend::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Table), strong = Theme::instance().font(TypeRole::Table, true);
    QPainter painter(this);
    painter.fillRect(rect(), t.panel);
    hairline(painter, 0, width(), height() - 1, t.line0);
    places_.clear();
    const auto amount = [this](std::uint64_t bytes) {
        return QString::number(static_cast<double>(bytes) / static_cast<double>(unit_), 'f', unit_ == 1 ? 0 : 2);
    };
    const QString total = tr("total %1").arg(amount(total_));
    const double totalWidth = textWidth(total, strong) + 2;
    drawText(painter, QRectF(width() - totalWidth - 8, 0, totalWidth, height()), Qt::AlignVCenter, total, t.text1,
             strong);
    double x = 8;
    x += drawText(painter, QRectF(x, 0, width() - totalWidth - 24, height()), Qt::AlignVCenter, lead_, t.text3, font) +
         16;
    const double limit = width() - totalWidth - 24;
    // What does not fit loses its gaps first, then the smallest items go.
    std::vector<const Item*> shown;
    for (const Item& item : items_) {
        if (item.present) {
            shown.push_back(&item);
        }
    }
    const auto widthOf = [&](const Item& item) {
        return 16 + textWidth(item.name, font) + 5 + textWidth(amount(item.bytes), font);
    };
    const auto neededFor = [&](double gapWidth) {
        double sum = x;
        for (const Item* item : shown) {
            sum += widthOf(*item) + gapWidth;
        }
        return sum;
    };
    double gap = neededFor(22) <= limit ? 22 : neededFor(16) <= limit ? 16 : 12;
    const std::size_t all = shown.size();
    while (shown.size() > 1 && neededFor(gap) > limit - (shown.size() < all ? 14 : 0)) {
        shown.erase(std::min_element(shown.begin(), shown.end(), [this](const Item* a, const Item* b) {
            const bool chosenA = only_.contains(a->layer), chosenB = only_.contains(b->layer);
            return chosenA != chosenB ? chosenB : a->bytes < b->bytes;
        }));
    }
    for (const Item* shownItem : shown) {
        const Item& item = *shownItem;
        const QString value = amount(item.bytes);
        const double w = widthOf(item);
        const bool off = !only_.empty() && !only_.contains(item.layer);
        painter.setOpacity(off ? 0.35 : 1.0);
        drawSwatch(painter, QRectF(x, 6, 12, 12), item.style);
        double at = x + 16;
        at += drawText(painter, QRectF(at, 0, 400, height()), Qt::AlignVCenter, item.name, t.text2, font) + 5;
        drawText(painter, QRectF(at, 0, 200, height()), Qt::AlignVCenter, value, t.text1, font);
        painter.setOpacity(1.0);
        places_.push_back({QRectF(x - 4, 2, w + 8, 20), item.layer});
        if (hasFocus() && focused_ == static_cast<int>(places_.size()) - 1) {
            painter.setPen(QPen(t.accent, 2));
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(places_.back().rect);
        }
        x += w + gap;
    }
    if (shown.size() < all) {
        drawText(painter, QRectF(x, 0, 20, height()), Qt::AlignVCenter, QStringLiteral("…"), t.text2, font);
    }
}

void Legend::mousePressEvent(QMouseEvent* event) {
    for (const Place& place : places_) {
        if (place.rect.contains(event->position()) && event->button() == Qt::LeftButton) {
            pick(place.layer, event->modifiers() & Qt::ControlModifier);
            return;
        }
    }
}

void Legend::mouseDoubleClickEvent(QMouseEvent*) {
    setOnly({});
}

void Legend::keyPressEvent(QKeyEvent* event) {
    const int count = static_cast<int>(places_.size());
    if (count > 0 && (event->key() == Qt::Key_Left || event->key() == Qt::Key_Right)) {
        focused_ = (focused_ + (event->key() == Qt::Key_Right ? 1 : count - 1)) % count;
        update();
    } else if (count > 0 && (event->key() == Qt::Key_Space || event->key() == Qt::Key_Return)) {
        pick(places_[static_cast<std::size_t>(std::min(focused_, count - 1))].layer,
             event->modifiers() & Qt::ControlModifier);
    } else {
        QWidget::keyPressEvent(event);
    }
}

bool Legend::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        for (const Place& place : places_) {
            for (const Item& item : items_) {
                if (item.layer == place.layer && place.rect.contains(help->pos())) {
                    QToolTip::showText(help->globalPos(),
                                       tr("%1: %2\nClick shows it alone, Ctrl+click hides it")
                                           .arg(item.name, exactBytesText(item.bytes)),
                                       this);
                    return true;
                }
            }
        }
    }
    return QWidget::event(event);
}

} // namespace vitrine::ui
